#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The table of the demo tells the truth: business tables with known faults are counted.
top_srcdir=${top_srcdir:-.}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
command -v sqlite3 >/dev/null || { echo "1..0 # SKIP sqlite3 is not installed"; exit 0; }
count=0

# is TEXT EXPECTED ORDERS INVOICES: orders 1 to 10 were sent, 10 twice; ORDERS and INVOICES
# change the tables of a faultless run. EXPECTED: lost ghosts doubles.
is() {
    rm -f "$dir"/*.db
    sqlite3 "$dir/orders.db" ".read '$top_srcdir/contrib/demo/orders.sql'" \
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < 10)
         insert into orders (order_id, customer, cents, message_id) select i, 'x', 1, i from n" "$3"
    sqlite3 "$dir/billing.db" ".read '$top_srcdir/contrib/demo/billing.sql'" \
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < 10)
         insert into invoices (order_id, cents, event_id) select i, 1, 'e' || i from n" "$4"
    (cd "$dir" && sqlite3 -batch -separator ' ' :memory: "create temp table sent (order_id text)" \
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < 10)
         insert into sent select i from n union all select 10" \
        ".read '$top_srcdir/contrib/demo/tally.sql'") >"$dir/tally"
    got=$(awk '$1 ~ /^(lost|ghosts|doubles)$/ { printf "%s%s", sep, $2; sep = " " }' "$dir/tally")
    count=$((count + 1))
    test "$got" = "$2" || { printf 'not '; sed 's/^/# /' "$dir/tally"; }
    echo "ok $count - $1"
}

double_order="insert into orders (order_id, customer, cents, message_id) values ('3', 'x', 1, '3')"
ghost_order="insert into orders (order_id, customer, cents, message_id) values ('99', 'x', 1, '99')"
double_invoice="insert into invoices (order_id, cents, event_id) values ('3', 1, 'e3')"

is "nothing wrong" "0 0 0" "" ""
is "an order was lost, its event was a ghost" "1 1 0" "delete from orders where order_id = '4'" ""
is "an event was lost" "1 0 0" "" "delete from invoices where order_id = '4'"
is "an order twice" "0 0 1" "$double_order" ""
is "an invoice twice" "0 0 1" "" "$double_invoice"
is "an order that was never sent" "1 1 0" "$ghost_order" ""
is "the end of a run that did nothing" "10 0 0" "delete from orders" "delete from invoices"
echo "1..$count"
