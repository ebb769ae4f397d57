-- The table the PostgreSQL examples write to.
create table if not exists orders (
    order_id   text primary key,
    message_id text not null,
    body       bytea not null
);
