-- The business table of the endpoint "orders". No unique key on order_id, on purpose: an
-- order written twice must show up as two rows, not be refused by the database.
create table if not exists orders (
    id         integer primary key,
    order_id   text not null,
    customer   text not null,
    cents      integer not null,
    message_id text not null
);
