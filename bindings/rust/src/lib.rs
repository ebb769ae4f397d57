// SPDX-License-Identifier: Apache-2.0
//! Handler modules for Waybill in Rust.
//!
//! ```ignore
//! use waybill::{params, Context, Message, Outcome, Outgoing};
//!
//! fn place_order(context: &Context, message: &Message) -> Outcome {
//!     let order = message.header_text("Order")?;
//!     context.pgsql_defer("insert into orders (order_id) values ($1)", params![order])?;
//!     context.publish(&Outgoing::new("Sales.OrderPlaced").body(message.body()))
//! }
//!
//! waybill::module! { "Sales.PlaceOrder" => one(place_order) }
//! ```
//!
//! in a crate of `crate-type = ["cdylib"]`. What a handler may do, when it is called and what is promised is in
//! `<waybill/handler.h>` and `waybill-handler(7)`: all of that holds here.
//!
//! **Panics.** No panic leaves a handler or a hook: one of a handler is a failure that is tried again, with its text as
//! the reason in the log and in the error queue; what was done through the storage session and what was sent is rolled
//! back like that of any failure. Rust itself writes a line to standard error, unless the module sets a panic hook. It
//! takes `panic = "unwind"`, and a crate that aborts does not compile.
//!
//! **Threads.** A handler runs on as many threads as the endpoint's `concurrency` says, each with a [`Context`] of its
//! own, which is neither `Send` nor `Sync`. What a module shares it keeps in its [`Module`], which is both.
//!
//! **Lifetimes.** A [`Message`] and all it hands out is Waybill's, and is gone when the handler returns; what is handed
//! to Waybill is copied before the call returns.
#![warn(missing_docs)]

#[cfg(panic = "abort")]
compile_error!("a panic must not end the host: waybill needs panic = \"unwind\"");

mod context;
mod failure;
#[allow(missing_docs)]
pub mod ffi;
mod guard;
mod message;
mod module;
mod outgoing;
#[cfg(feature = "sqlite")]
pub mod sqlite;
mod statement;

pub use context::{Context, Level};
pub use failure::{Failure, Outcome};
pub use message::{Header, Message};
pub use module::{Module, Worker};
pub use outgoing::Outgoing;
pub use statement::Value;

/// What the macros of this crate write into a module; not for use by name.
#[doc(hidden)]
pub mod private {
    pub use crate::guard::{batch, check, close, one, open, worker_close, worker_open};
    pub use crate::module::text;
}
