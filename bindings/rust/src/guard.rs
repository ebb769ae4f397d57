// SPDX-License-Identifier: Apache-2.0
//! From C to Rust and back: no panic passes.

use crate::{ffi, Context, Failure, Level, Message, Module, Outcome, Worker};
use std::any::Any;
use std::os::raw::{c_int, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};

/// What a panic says. Its payload may panic again when it is dropped: then it is leaked.
fn text_of(payload: Box<dyn Any + Send>) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| text.to_string())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "without a text".to_string());
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(again);
    }
    text
}

/// Run `work`; a failure is told to the host, and so is a panic, as `failed`. What was half done is not seen again: the
/// transaction is rolled back, and the message's memory is the host's.
unsafe fn guard(raw: *mut ffi::wb_context, failed: c_int, work: impl FnOnce(&Context) -> Outcome) -> c_int {
    let context = Context::from_raw(raw);
    let said = catch_unwind(AssertUnwindSafe(|| work(&context)));
    // what a handler says may itself allocate, or have a Drop that panics
    let told = catch_unwind(AssertUnwindSafe(|| match said {
        Ok(Ok(())) => ffi::WB_OK,
        Ok(Err(failure)) => failure.tell(raw),
        Err(payload) => Failure::kept(failed).because(format!("panic: {}", text_of(payload))).tell(raw),
    }));
    told.unwrap_or_else(|again| {
        std::mem::forget(again);
        failed
    })
}

/// # Safety
/// The host calls it, as a `wb_handler_fn`.
pub unsafe fn one(
    raw: *mut ffi::wb_context,
    message: *const ffi::wb_message,
    handle: fn(&Context, &Message) -> Outcome,
) -> c_int {
    guard(raw, ffi::WB_RETRY, |context| handle(context, &Message::from_raw(&*message)))
}

/// # Safety
/// The host calls it, as a `wb_batch_handler_fn`.
pub unsafe fn batch(
    raw: *mut ffi::wb_context,
    messages: *const *const ffi::wb_message,
    count: usize,
    handle: fn(&Context, &[Message]) -> Outcome,
) -> c_int {
    // a Message is a pointer, and there is one at least
    guard(raw, ffi::WB_RETRY, |context| handle(context, std::slice::from_raw_parts(messages as *const Message, count)))
}

/// # Safety
/// The host calls it, as a `wb_check_fn`; so for those below.
pub unsafe extern "C" fn check<M: Module>(raw: *mut ffi::wb_context) -> c_int {
    guard(raw, ffi::WB_FATAL, M::check)
}

/// # Safety
/// See [`check`].
pub unsafe extern "C" fn open<M: Module>(raw: *mut ffi::wb_context, ret_data: *mut *mut c_void) -> c_int {
    guard(raw, ffi::WB_FATAL, |context| {
        keep(ret_data, Box::new(M::open(context)?));
        Ok(())
    })
}

/// # Safety
/// See [`check`].
pub unsafe extern "C" fn worker_open<W: Worker>(raw: *mut ffi::wb_context, ret_data: *mut *mut c_void) -> c_int {
    guard(raw, ffi::WB_FATAL, |context| {
        keep(ret_data, Box::new(W::open(context)?));
        Ok(())
    })
}

/// # Safety
/// See [`check`].
pub unsafe extern "C" fn close(raw: *mut ffi::wb_context, data: *mut c_void) {
    forget(raw, data)
}

/// # Safety
/// See [`check`].
pub unsafe extern "C" fn worker_close(raw: *mut ffi::wb_context, data: *mut c_void) {
    forget(raw, data)
}

// Boxed twice: C's pointer is a thin one, and the inner knows its type.
unsafe fn keep(ret_data: *mut *mut c_void, kept: Box<dyn Any>) {
    *ret_data = Box::into_raw(Box::new(kept)) as *mut c_void;
}

unsafe fn forget(raw: *mut ffi::wb_context, data: *mut c_void) {
    let kept = Box::from_raw(data as *mut Box<dyn Any>);
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(kept))) {
        let text = format!("panic while the module was closed: {}", text_of(payload));
        Context::from_raw(raw).log(Level::Error, &text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_has_a_text() {
        let said = |work: fn()| text_of(catch_unwind(work).unwrap_err());
        assert_eq!(said(|| panic!("as it is")), "as it is");
        assert_eq!(said(|| panic!("made of {}", 1)), "made of 1");
        assert_eq!(said(|| std::panic::panic_any(7)), "without a text");
    }

    #[test]
    fn a_payload_that_panics_is_no_end() {
        struct Evil;
        impl Drop for Evil {
            fn drop(&mut self) {
                panic!("again");
            }
        }
        assert_eq!(text_of(catch_unwind(|| std::panic::panic_any(Evil)).unwrap_err()), "without a text");
    }
}
