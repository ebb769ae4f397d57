create table if not exists @TABLE@ (message_id varbinary(255) not null, body longblob not null) engine = InnoDB;
