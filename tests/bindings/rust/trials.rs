// SPDX-License-Identifier: Apache-2.0
//! Handlers over the crate `waybill`, for rust.t: each does what its type says. What they saw goes into the table `seen`,
//! in the transaction, so that what was rolled back is not there.

use std::cell::Cell;
use std::time::{Duration, SystemTime};
use waybill::{params, Context, Failure, Level, Message, Module, Outcome, Outgoing, Worker};

fn note(context: &Context, message: &Message, what: &str) -> Outcome {
    context.sqlite()?.execute("insert into seen (id, what) values (?, ?)", params![message.id_text()?, what])
}

// ---- panics and failures -------------------------------------------------------------------

struct Evil;
impl Drop for Evil {
    fn drop(&mut self) {
        panic!("again");
    }
}

#[allow(unconditional_panic)]
fn throw_it(context: &Context, message: &Message) -> Outcome {
    note(context, message, "thrown")?;
    let what = message.body_text()?;
    context.send("sink", &Outgoing::new("Rust.Ghost").body(what))?;
    match what {
        "panic" => panic!("the order is upside down"),
        "made" => panic!("order {} is upside down", 7),
        "odd" => std::panic::panic_any(7),
        "evil" => std::panic::panic_any(Evil),
        "index" => {
            let nothing: &[u8] = &[];
            Err(Failure::retry(format!("{}", nothing[what.len()])))
        }
        "borrow" => {
            let cell = std::cell::RefCell::new(1);
            let _first = cell.borrow_mut();
            let _second = cell.borrow_mut();
            Ok(())
        }
        "once" if message.attempt() == 1 => panic!("only once"),
        "error" => Err("x".parse::<i32>().unwrap_err().into()),
        "reject" => Err(Failure::reject("no such customer")),
        "retry" => Err(Failure::retry("not yet")),
        "discard" => Err(Failure::discard("a newer one is known")),
        "move" => Err(Failure::move_to("review", "the amount is odd")),
        "nowhere" => Err(Failure::move_to("review\0", "the amount is odd")),
        "later" => Err(Failure::retry_after(Duration::from_secs(600), "the bank is closed")),
        "long" => panic!("{}", "x".repeat(5000)),
        "percent" => Err(Failure::retry("100%s of %n")),
        _ => Ok(()),
    }
}

// ---- what is received and sent -------------------------------------------------------------

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn look(context: &Context, message: &Message) -> Outcome {
    let mut words = format!(
        "id={} type={} body={} key={} attempt={}",
        message.id_lossy(),
        message.type_name(),
        text(message.body()),
        text(message.key().unwrap_or(b"(none)")),
        message.attempt()
    );
    for header in message.headers().filter(|header| header.name.starts_with(b"Rust.")) {
        words += &format!(" {}={}", text(header.name), text(header.value));
    }
    words += &format!(" found={}", text(message.header("Rust.Second").unwrap_or(b"(none)")));
    words += &format!(" lacks={}", text(message.header("Rust.Secon").unwrap_or(b"(none)")));
    context.log(Level::Info, "looked at 100%s");
    note(context, message, &format!("{} endpoint={}", words, context.endpoint()))
}

fn send_all(context: &Context, message: &Message) -> Outcome {
    let plain = Outgoing::new("Rust.Plain").body("plain body").header("Rust.Empty", "").header("Rust.Nul", b"a\0b");
    context.send("sink", &plain)?;
    let full = Outgoing::new("Rust.Full").body(b"bytes").id("my-id").key("my-key").content_type("text/plain");
    context.send("sink", &full.non_persistent())?;
    context.send("sink", &Outgoing::new("Rust.Bodyless"))?;
    context.send("sink", &Outgoing::new("Rust.Late").delay(Duration::from_secs(2)))?;
    context.send("sink", &Outgoing::new("Rust.At").deliver_at(SystemTime::now() + Duration::from_secs(2)))?;
    context.send("sink", &Outgoing::new("Rust.Expires").time_to_be_received(Duration::from_secs(3600)))?;
    context.send("sink", &Outgoing::new("Rust.Passed").time_to_be_received(Duration::ZERO))?;
    context.publish(&Outgoing::new("Rust.Event").body(message.body()))?;
    context.reply(&Outgoing::new("Rust.Reply").body(message.body()))?;
    context.send("sink", &plain)
}

fn refused(context: &Context, message: &Message) -> Outcome {
    note(context, message, "refused")?;
    let x = Outgoing::new("Rust.X");
    match message.body_text()? {
        "key" => context.send("sink", &x.key("")),
        "id" => context.send("sink", &x.id("")),
        "name" => context.send("sink", &x.header("", "value")),
        "nul" => context.send("sink", &Outgoing::new("Rust\0X")),
        "far" => context.send("sink", &x.delay(Duration::MAX)),
        "reply" => context.reply(&x),
        "caught" => match context.send("sink", &x.key("")) {
            Ok(()) => Ok(()),
            Err(failure) => note(context, message, &format!("caught {}", failure.result())),
        },
        _ => Ok(()),
    }
}

// ---- statements ----------------------------------------------------------------------------

fn store(context: &Context, message: &Message) -> Outcome {
    let db = context.sqlite()?;
    db.execute("create temporary table if not exists kinds (a, b, c, d, e, f, g, h)", params![])?;
    db.execute("delete from kinds", params![])?;
    db.execute(
        "insert into kinds values (?, ?, ?, ?, ?, ?, ?, ?)",
        params!["it's", 42, 0.5, None::<&str>, &b"\0\xff"[..], true, None::<i64>, Some(-5)],
    )?;
    let mut row = db.prepare(
        "select a, b, c, d, hex(e), f, g, h, typeof(a) || typeof(b) || typeof(c) || typeof(e) from kinds",
        params![],
    )?;
    let mut words = format!("{} {} ", row.text(0), row.is_null(0));
    while row.step()? {
        words += &format!("{} {} {} {} {} ", row.text(0), row.integer(1), row.real(2) == 0.5, row.is_null(3), row.text(4));
        words += &format!("{} {} {} {} {}", row.text(5), row.is_null(6), row.integer(7), row.text(8), row.is_null(99));
    }
    note(context, message, &words)
}

fn misstate(context: &Context, message: &Message) -> Outcome {
    note(context, message, "misstated")?;
    let db = context.sqlite()?;
    match message.body_text()? {
        "syntax" => db.execute("insert rubbish", params![]),
        "unique" => (0..2).try_for_each(|_| db.execute("insert into only_once values (?)", params!["secret"])),
        "count" => db.execute("insert into seen values (?, ?)", params![1]),
        "two" => db.execute("select 1; select 2", params![]),
        "none" => db.execute(" -- nothing", params![]),
        "pgsql" => context.pgsql_defer("insert into seen values ($1)", params![1, None::<&str>, "text"]),
        "mysql" => context.mysql_defer("insert into seen values (?)", params![1]),
        "left" => {
            let mut open = db.prepare("select * from seen", params![])?;
            open.step()?;
            panic!("with a statement that is open")
        }
        _ => Ok(()),
    }
}

// ---- batches and hooks ---------------------------------------------------------------------

fn many(context: &Context, messages: &[Message]) -> Outcome {
    for message in messages {
        if message.body() == b"bad" {
            panic!("one of them is bad");
        }
        note(context, message, if messages.len() > 1 { "in a batch" } else { "alone" })?;
        let answer = Outgoing::new("Rust.Answer").body(message.id());
        context.send("sink", &if messages.len() > 1 { answer.cause(message) } else { answer })?;
    }
    Ok(())
}

struct Shop {
    name: String,
}

impl Module for Shop {
    fn check(context: &Context) -> Outcome {
        match context.setting("name") {
            Some("") => Err(Failure::fatal("the setting \"name\" is empty")),
            Some("unchecked") => panic!("the setting \"name\" is a joke"),
            _ => Ok(()),
        }
    }

    fn open(context: &Context) -> Result<Self, Failure> {
        match context.setting("name").unwrap_or("nameless") {
            "panics" => panic!("the shop is on fire"),
            "closed" => Err(Failure::not_connected("the shop is closed")),
            name => Ok(Shop { name: name.to_string() }),
        }
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        if self.name == "ends badly" {
            panic!("the shutters are stuck");
        }
    }
}

struct Counter {
    count: Cell<i32>, // its thread alone has it
}

impl Worker for Counter {
    fn open(_: &Context) -> Result<Self, Failure> {
        Ok(Counter { count: Cell::new(0) })
    }
}

struct Other;
impl Module for Other {
    fn open(_: &Context) -> Result<Self, Failure> {
        Ok(Other)
    }
}

fn remember(context: &Context, message: &Message) -> Outcome {
    let shop = context.module::<Shop>().ok_or_else(|| Failure::reject("no shop"))?;
    let counter = context.worker::<Counter>().ok_or_else(|| Failure::reject("no counter"))?;
    counter.count.set(counter.count.get() + 1);
    let other = context.module::<Other>().is_some();
    note(context, message, &format!("{} {} {}", shop.name, counter.count.get(), other))
}

waybill::module! {
    module: Shop,
    worker: Counter,
    "Rust.Throw" => one(throw_it),
    "Rust.Look" => one(look),
    "Rust.Send" => one(send_all),
    "Rust.Refused" => one(refused),
    "Rust.Store" => one(store),
    "Rust.Misstate" => one(misstate),
    "Rust.Remember" => one(remember),
    "Rust.Many" => batch(many),
}
