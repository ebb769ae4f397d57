// SPDX-License-Identifier: Apache-2.0
//! What a module exports.

use crate::{Context, Failure, Outcome};
use std::os::raw::c_char;

/// What a module keeps while an endpoint is open: made once an endpoint, on the main thread, shared by all workers, and
/// dropped after the last of them. `waybill::module! { module: Shop, ... }`.
///
/// A panic in a hook refuses like [`Failure::fatal`].
pub trait Module: Send + Sync + Sized + 'static {
    /// Are the settings right? No network, nothing is changed or kept.
    fn check(_context: &Context) -> Outcome {
        Ok(())
    }

    /// Open what is kept. A failure ends the start (exit code 78; 69 for [`Failure::not_connected`], 75 for
    /// [`Failure::retry`]).
    fn open(context: &Context) -> Result<Self, Failure>;
}

/// What a module keeps for each worker: made, used and dropped on the worker's thread.
pub trait Worker: Sized + 'static {
    /// Open it. A failure makes the worker give up; the endpoint is started again after a pause.
    fn open(context: &Context) -> Result<Self, Failure>;
}

/// A literal with its NUL byte, which is the only one.
pub const fn text(with_nul: &'static str) -> *const c_char {
    let bytes = with_nul.as_bytes();
    let mut at = 0;
    while at + 1 < bytes.len() {
        if bytes[at] == 0 {
            panic!("a type with a NUL byte");
        }
        at += 1;
    }
    bytes.as_ptr() as *const c_char
}

/// Define what the module exports: once, in the root of a crate of `crate-type = ["cdylib"]`.
///
/// ```ignore
/// waybill::module! {
///     module: Shop,                              // optional: a Module
///     worker: Bank,                              // optional: a Worker
///     "Sales.PlaceOrder" => one(place_order),    // fn(&Context, &Message) -> Outcome
///     "Sales.Import" => batch(import),           // fn(&Context, &[Message]) -> Outcome
///     "*" => one(anything_else),
/// }
/// ```
#[macro_export]
macro_rules! module {
    ($(module: $module:ty,)? $(worker: $worker:ty,)? $($type:literal => $kind:ident($handler:path)),+ $(,)?) => {
        /// What the host looks for.
        #[no_mangle]
        pub extern "C" fn wb_handlers() -> *const $crate::ffi::wb_handler_module {
            const HANDLERS: &[$crate::ffi::wb_handler] = &[$($crate::module!(@$kind $type, $handler)),+];
            static MODULE: $crate::ffi::wb_handler_module = $crate::ffi::wb_handler_module {
                struct_size: ::std::mem::size_of::<$crate::ffi::wb_handler_module>(),
                abi_major: $crate::ffi::WB_HANDLER_ABI_MAJOR,
                abi_minor_needed: $crate::ffi::WB_HANDLER_ABI_MINOR,
                handler_stride: ::std::mem::size_of::<$crate::ffi::wb_handler>(),
                handler_count: HANDLERS.len(),
                handlers: HANDLERS.as_ptr(),
                check: $crate::module!(@hook check $(::<$module>)?),
                open: $crate::module!(@hook open $(::<$module>)?),
                worker_open: $crate::module!(@hook worker_open $(::<$worker>)?),
                worker_close: $crate::module!(@plain worker_close $($worker)?),
                close: $crate::module!(@plain close $($module)?),
            };
            &MODULE
        }
    };
    (@one $type:literal, $handler:path) => {{
        unsafe extern "C" fn call(
            context: *mut $crate::ffi::wb_context,
            message: *const $crate::ffi::wb_message,
        ) -> ::std::os::raw::c_int {
            $crate::private::one(context, message, $handler)
        }
        $crate::ffi::wb_handler { r#type: $crate::private::text(concat!($type, "\0")), one: Some(call), batch: None }
    }};
    (@batch $type:literal, $handler:path) => {{
        unsafe extern "C" fn call(
            context: *mut $crate::ffi::wb_context,
            messages: *const *const $crate::ffi::wb_message,
            count: usize,
        ) -> ::std::os::raw::c_int {
            $crate::private::batch(context, messages, count, $handler)
        }
        $crate::ffi::wb_handler { r#type: $crate::private::text(concat!($type, "\0")), one: None, batch: Some(call) }
    }};
    (@hook $hook:ident) => { None };
    (@hook $hook:ident ::<$of:ty>) => { Some($crate::private::$hook::<$of>) };
    (@plain $hook:ident) => { None };
    (@plain $hook:ident $of:ty) => { Some($crate::private::$hook) };
}
