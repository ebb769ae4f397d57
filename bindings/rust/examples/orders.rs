// SPDX-License-Identifier: Apache-2.0
//! A handler module in Rust: writes an order through SQLite, charges it, and publishes it. The dearest order it takes may
//! stand among the endpoint's settings, and is read once, by a hook:
//!
//!     settings = { dearest = "5000"; };
//!
//!     sqlite3 shop.db 'create table orders (id text primary key, cents integer, message_id text)'
//!     cargo build --offline --features sqlite --example orders
//!     handlers = ["target/debug/examples/liborders.so"];
//!     waybill send -c shop.conf --to orders --type Sales.PlaceOrder --header Order=42 --header Cents=1250

use std::time::Duration;
use waybill::{params, Context, Failure, Message, Module, Outcome, Outgoing};

/// What the module keeps while the endpoint is open.
struct Shop {
    dearest: i64,
}

fn number(text: &str, what: &str) -> Result<i64, Failure> {
    text.parse().map_err(|_| Failure::reject(format!("{} is no number", what)))
}

impl Module for Shop {
    fn open(context: &Context) -> Result<Self, Failure> {
        let dearest = context.setting("dearest").unwrap_or("10000");
        Ok(Shop { dearest: number(dearest, "the setting \"dearest\"")? })
    }
}

fn place_order(context: &Context, message: &Message) -> Outcome {
    let order = message.header_text("Order")?;
    let cents = number(message.header_text("Cents")?, "the header \"Cents\"")?;
    if context.module::<Shop>().map_or(false, |shop| cents > shop.dearest) {
        return Err(Failure::move_to("orders.review", "an order that is too dear"));
    }
    let values = params![order, cents, message.id_text()?];
    context.sqlite()?.execute("insert into orders (id, cents, message_id) values (?, ?, ?)", values)?;
    let charge = Outgoing::new("Billing.Charge").body(message.body()).header("Order", order).delay(Duration::from_secs(60));
    context.send("billing", &charge)?;
    context.publish(&Outgoing::new("Sales.OrderPlaced").body(message.body()).key(order))
}

waybill::module! {
    module: Shop,
    "Sales.PlaceOrder" => one(place_order),
}
