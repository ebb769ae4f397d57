-- The table that http-orders writes to. Whose key it is gets the same answer for ever.
create table if not exists shop_order (
    number  bigint generated always as identity,
    key     text primary key,
    request jsonb not null
);
