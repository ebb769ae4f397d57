-- The table the MySQL examples write to.
create table if not exists orders (
    order_id   varchar(100) character set utf8mb4 collate utf8mb4_bin primary key,
    message_id varbinary(255) not null,
    body       longblob not null
) engine = InnoDB;
