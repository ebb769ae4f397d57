-- What happened, counted from the business tables alone. Run by sqlite3 in the directory of
-- the demo with sent(order_id) filled: one row a message sent.
attach 'orders.db' as o;
attach 'billing.db' as b;
create temp table tally (place integer primary key, name text, value integer);
insert into tally (name, value)
    select 'sent', count(distinct order_id) from sent;
insert into tally (name, value)
    select 'duplicates', count(*) - count(distinct order_id) from sent;
insert into tally (name, value)
    select 'orders', count(*) from o.orders;
insert into tally (name, value)
    select 'events published', count(distinct event_id) from b.invoices;
insert into tally (name, value)
    select 'events handled', count(*) from b.invoices;
insert into tally (name, value)
    select 'lost',
           (select count(*) from (select order_id from sent except select order_id from o.orders))
         + (select count(*) from
               (select order_id from o.orders except select order_id from b.invoices));
insert into tally (name, value)
    select 'ghosts',
           (select count(*) from
               (select order_id from b.invoices except select order_id from o.orders))
         + (select count(*) from (select order_id from o.orders except select order_id from sent));
insert into tally (name, value)
    select 'doubles',
           (select count(*) - count(distinct order_id) from o.orders)
         + (select count(*) - count(distinct order_id) from b.invoices);
select name, value from tally order by place;
