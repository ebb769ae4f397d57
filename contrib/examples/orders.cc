/* SPDX-License-Identifier: Apache-2.0
 *
 * A handler in C++17 with <waybill/waybill.hpp>: writes an order through SQLite, charges it, and publishes it. What is
 * wrong is thrown. The dearest order it takes may stand among the endpoint's settings, and is read once, by a hook:
 *
 *     settings = { dearest = "5000"; };
 *
 *     sqlite3 shop.db 'create table orders (id text primary key, cents integer, message_id text)'
 *     c++ -std=c++17 -shared -fPIC -Wl,-z,defs orders.cc $(pkg-config --cflags --libs waybill sqlite3) -o orders.so
 *     waybill send -c shop.conf --to orders --type Sales.PlaceOrder --header Order=42 --header Cents=1250
 */
#include <charconv>
#include <chrono>
#include <string>
#include <waybill/sqlite.hpp>

using namespace std::chrono_literals;

namespace {

std::int64_t number(std::string_view text, const char *what)
{
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
        throw waybill::reject(std::string(what) + " is no number");
    return value;
}

/* What the module keeps while the endpoint is open. */
struct shop {
    explicit shop(const waybill::context &ctx) : dearest(number(ctx.setting("dearest").value_or("10000"), "the setting \"dearest\"")) {}
    const std::int64_t dearest;
};

std::string_view required(const waybill::message &msg, const char *name)
{
    const auto value = msg.header(name);
    if (!value)
        throw waybill::reject(std::string("no header \"") + name + "\"");
    return *value;
}

void place_order(const waybill::context &ctx, const waybill::message &msg)
{
    const std::string_view order = required(msg, "Order");
    const std::int64_t cents = number(required(msg, "Cents"), "the header \"Cents\"");
    if (cents > ctx.module_data<shop>()->dearest)
        throw waybill::move_to("orders.review", "an order that is too dear");

    waybill::sqlite::execute(ctx, "insert into orders (id, cents, message_id) values (?, ?, ?)",
                             { order, cents, msg.id() });
    ctx.send("billing", waybill::outgoing("Billing.Charge").body(msg.body()).header("Order", order).delay(1min));
    ctx.publish(waybill::outgoing("Sales.OrderPlaced").body(msg.body()).key(order));
}

} // namespace

WB_MODULE(WB_HOOKS(NULL, waybill::open_hook<shop>, NULL, NULL, waybill::close_hook<shop>),
          WB_HANDLER("Sales.PlaceOrder", waybill::handler<place_order>))
