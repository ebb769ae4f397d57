-- The business table of the endpoint "billing". No unique key on order_id, on purpose:
-- see orders.sql. event_id is the id of the message that caused the invoice.
create table if not exists invoices (
    id       integer primary key,
    order_id text not null,
    cents    integer not null,
    event_id text not null
);
