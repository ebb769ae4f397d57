// SPDX-License-Identifier: Apache-2.0
//! The effects module in Rust, on SQLite and PostgreSQL: what effects.h says, over the crate `waybill`; on PostgreSQL all
//! statements are deferred. Of its orders: fail:K (by a panic), reject, slow:MS. And for the suite `languages`:
//!
//!     CRASH_THROW=N     one call in N panics, or fails, at a place that is drawn, too
//!     CRASH_THROWN=F    a byte is appended to F each time

use std::cell::Cell;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io::Write;
use std::time::Duration;
use waybill::{params, Context, Failure, Message, Outcome, Outgoing, Value};

// ---- as effects.c and digest.h have it -----------------------------------------------------

fn digest(bytes: &[u8]) -> String {
    let add = |sum: u64, next: u64| (sum ^ next).wrapping_mul(1099511628211);
    let sum = bytes.iter().fold(14695981039346656037, |sum, byte| add(sum, u64::from(*byte)));
    format!("{:016x}", add(sum, bytes.len() as u64))
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

struct Effect<'a> {
    id: &'a str,
    seq: i32,
    key: &'a str,
    amount: i32,
    order: &'a str,
    hash: String,
}

fn read<'a>(message: &Message<'a>) -> Option<Effect<'a>> {
    let mut words = std::str::from_utf8(message.body()).ok()?.split(' ');
    let mut field = |name: &str| words.next()?.strip_prefix(name);
    Some(Effect {
        id: std::str::from_utf8(message.id()).ok()?,
        seq: field("seq=")?.parse().ok()?,
        key: field("key=")?,
        amount: field("amount=")?.parse().ok()?,
        order: field("do=")?,
        hash: digest(message.body()),
    })
}

fn follow_orders(e: &Effect, attempt: u32) -> Outcome {
    let number = |name: &str| e.order.strip_prefix(name).and_then(|rest| rest.parse::<u32>().ok());
    if e.order == "reject" {
        return Err(Failure::reject(format!("ordered to reject message {}", e.seq)));
    }
    if number("fail:").map_or(false, |times| attempt <= times) {
        panic!("ordered to fail attempt {}", attempt);
    }
    if let Some(time) = number("slow:") {
        std::thread::sleep(Duration::from_millis(time.into()));
    }
    Ok(())
}

// ---- what goes wrong at random -------------------------------------------------------------

fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

struct Odd;

fn fail_somehow(which: u64) -> Outcome {
    let path = variable("CRASH_THROWN");
    if !path.is_empty() {
        let noted = std::fs::OpenOptions::new().append(true).create(true).open(path).and_then(|mut file| file.write_all(b"x"));
        noted.expect("CRASH_THROWN");
    }
    match which % 4 {
        0 => panic!("a panic at random"),
        1 => std::panic::panic_any(Odd),
        2 => {
            let none: Option<i32> = None;
            none.map(|_| ()).ok_or_else(|| Failure::retry("failed at random"))
        }
        _ => {
            let nothing: Vec<i32> = Vec::new();
            let past = which as usize;
            Err(Failure::retry(format!("{}", nothing[past])))
        }
    }
}

/// Where a call may go wrong: it draws once, and passes them one by one.
struct Dice {
    left: Cell<Option<u64>>,
}

impl Dice {
    fn new() -> Self {
        let share = variable("CRASH_THROW").parse().unwrap_or(0);
        let is_drawn = share > 0 && random() % share == 0;
        Dice { left: Cell::new(if is_drawn { Some(random() % 5) } else { None }) }
    }

    fn roll(&self) -> Outcome {
        match self.left.take() {
            Some(0) => fail_somehow(random()),
            left => {
                self.left.set(left.map(|more| more - 1));
                Ok(())
            }
        }
    }
}

// ---- effects -------------------------------------------------------------------------------

fn write(context: &Context, statement: &str, values: &[Value]) -> Outcome {
    if context.sqlite_connection().is_null() {
        context.pgsql_defer(statement, values)
    } else {
        context.sqlite()?.execute(statement, values)
    }
}

fn send_one(context: &Context, e: &Effect, message: &Message, is_grouped: bool, ordinal: u32) -> Outcome {
    let body = format!("cause={} ordinal={} hash={}", e.id, ordinal, e.hash);
    let prefix = variable("CRASH_PREFIX");
    let event = format!("{}Crash.Happened", prefix);
    let one = Outgoing::new(if ordinal == 2 { &event } else { "Crash.Noted" })
        .body(&body)
        .header("Crash.Key", e.key)
        .header("Crash.Note", "ünïcode=;,")
        .key(e.key);
    let one = if is_grouped { one.cause(message) } else { one };
    if ordinal == 2 {
        context.publish(&one)
    } else {
        context.send(&format!("{}sink", prefix), &one)
    }
}

fn take_effect(context: &Context, message: &Message, variant: &str, is_grouped: bool) -> Outcome {
    let dice = Dice::new();
    let e = read(message).ok_or_else(|| Failure::reject("not a message of the crash suite"))?;
    follow_orders(&e, message.attempt())?;
    dice.roll()?;
    write(
        context,
        "insert into effects (msg_id, seq, body_hash, variant, pid, attempt) values ($1, $2, $3, $4, $5, $6)",
        params![e.id, e.seq, &e.hash, variant, std::process::id(), message.attempt()],
    )?;
    dice.roll()?;
    write(context, "insert into ledger (msg_id, account, amount) values ($1, $2, $3)", params![e.id, e.key, e.amount])?;
    dice.roll()?;
    send_one(context, &e, message, is_grouped, 1)?;
    dice.roll()?;
    if e.seq % 2 == 1 {
        send_one(context, &e, message, is_grouped, 2)?;
    }
    dice.roll()
}

fn plain(context: &Context, message: &Message) -> Outcome {
    take_effect(context, message, "plain", false)
}

fn deferred(context: &Context, message: &Message) -> Outcome {
    take_effect(context, message, "deferred", false)
}

fn batch(context: &Context, messages: &[Message]) -> Outcome {
    messages.iter().try_for_each(|message| take_effect(context, message, "batch", messages.len() > 1))
}

waybill::module! {
    "Crash.Plain" => one(plain),
    "Crash.Deferred" => one(deferred),
    "Crash.Batch" => batch(batch),
}
