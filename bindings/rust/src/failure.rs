// SPDX-License-Identifier: Apache-2.0
//! What becomes of a message that is not handled.

use crate::ffi;
use std::ffi::CString;
use std::os::raw::c_int;
use std::time::Duration;

/// What a handler returns: handled, or why not.
pub type Outcome = Result<(), Failure>;

/// Why a message, or a start, fails, and what becomes of it. Any `std::error::Error` becomes one by `?`: tried again, with
/// its text as the reason.
///
/// Put no secret and no part of a message into a reason: it is logged, and a header in the error queue. It is cut at
/// 1000 bytes, and at a NUL byte.
#[derive(Clone, Debug)]
pub struct Failure {
    result: c_int,
    reason: Option<String>,
    wish: Wish,
}

#[derive(Clone, Debug)]
enum Wish {
    Nothing,
    Discard,
    Move(String),
    RetryAfter(i64),
}

impl Failure {
    fn new(result: c_int, reason: impl Into<String>, wish: Wish) -> Self {
        Failure { result, reason: Some(reason.into()), wish }
    }

    /// Tried again: at once as often as `immediate_retries` says, then later, then the error queue.
    pub fn retry(reason: impl Into<String>) -> Self {
        Self::new(ffi::WB_RETRY, reason, Wish::Nothing)
    }

    /// To the error queue at once.
    pub fn reject(reason: impl Into<String>) -> Self {
        Self::new(ffi::WB_UNRECOVERABLE, reason, Wish::Nothing)
    }

    /// Tried again after that time, more than none, and not at once.
    pub fn retry_after(delay: Duration, reason: impl Into<String>) -> Self {
        Self::new(ffi::WB_RETRY, reason, Wish::RetryAfter(nanoseconds(delay)))
    }

    /// Forgotten: what the handler did is rolled back, the message acknowledged, and one line logged.
    pub fn discard(reason: impl Into<String>) -> Self {
        Self::new(ffi::WB_UNRECOVERABLE, reason, Wish::Discard)
    }

    /// To an error queue of the handler's choice.
    pub fn move_to(queue: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::new(ffi::WB_UNRECOVERABLE, reason, Wish::Move(queue.into()))
    }

    /// Of a hook: what it needs does not answer (with `start = "wait"` it is waited for).
    pub fn not_connected(reason: impl Into<String>) -> Self {
        Self::new(ffi::WB_NOT_CONNECTED, reason, Wish::Nothing)
    }

    /// Of a hook: it can never be, e.g. a setting is wrong.
    pub fn fatal(reason: impl Into<String>) -> Self {
        Self::new(ffi::WB_FATAL, reason, Wish::Nothing)
    }

    /// What a function of C returned; its reason, if it has one, the host has kept.
    pub fn kept(result: c_int) -> Self {
        Failure { result, reason: None, wish: Wish::Nothing }
    }

    pub(crate) fn because(self, reason: String) -> Self {
        Failure { reason: Some(reason), ..self }
    }

    /// A class of [`ffi`], `WB_RETRY` for instance.
    pub fn result(&self) -> c_int {
        self.result
    }

    /// None if the host has kept it.
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// Tell the host. Returns what is to be returned to it.
    ///
    /// # Safety
    /// `context` is that of the call which this thread is in.
    pub unsafe fn tell(&self, context: *mut ffi::wb_context) -> c_int {
        let reason = match &self.reason {
            Some(reason) => c_text_cut(reason),
            None => return self.result,
        };
        let api = &*(*context).api;
        match &self.wish {
            Wish::Nothing => (api.failure)(context, self.result, reason.as_ptr()),
            Wish::Discard => (api.give_up)(context, std::ptr::null(), reason.as_ptr()),
            // cut it would be another queue; one without a name the host refuses
            Wish::Move(queue) => {
                let queue = CString::new(queue.as_str()).unwrap_or_default();
                (api.give_up)(context, queue.as_ptr(), reason.as_ptr())
            }
            Wish::RetryAfter(delay) => (api.retry_after)(context, *delay, reason.as_ptr()),
        }
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Failure::retry(error.to_string())
    }
}

/// What a function of C returned as what `?` takes.
pub(crate) fn outcome(result: c_int) -> Outcome {
    if result == ffi::WB_OK {
        Ok(())
    } else {
        Err(Failure::kept(result))
    }
}

/// What does not fit is what the host refuses.
pub(crate) fn nanoseconds(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

/// A text for a log or a reason: up to a NUL byte, and at most 1000 bytes of whole characters.
pub(crate) fn c_text_cut(text: &str) -> CString {
    let mut end = text.find('\0').unwrap_or(text.len()).min(1000);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    CString::new(&text[..end]).unwrap_or_default()
}

/// A text that C takes up to its NUL byte. One inside of it is refused, for nobody would see what is behind it.
pub(crate) fn c_text(text: &str, what: &str) -> Result<CString, Failure> {
    CString::new(text).map_err(|_| Failure::reject(format!("a NUL byte in a text: {}", what)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_cut_at_whole_characters() {
        assert_eq!(c_text_cut("a\0b").to_bytes(), b"a");
        assert_eq!(c_text_cut(&"x".repeat(2000)).to_bytes().len(), 1000);
        assert_eq!(c_text_cut(&("x".to_string() + &"ä".repeat(1000))).to_bytes().len(), 999);
    }

    #[test]
    fn a_text_with_a_nul_byte_is_refused() {
        assert_eq!(c_text("a\0b", "type").unwrap_err().result(), ffi::WB_UNRECOVERABLE);
        assert!(c_text("", "type").is_ok());
    }

    #[test]
    fn any_error_is_tried_again() {
        fn fails() -> Outcome {
            let _: i32 = "x".parse()?;
            Ok(())
        }
        let failure = fails().unwrap_err();
        assert_eq!((failure.result(), failure.reason()), (ffi::WB_RETRY, Some("invalid digit found in string")));
    }

    #[test]
    fn times_that_do_not_fit_are_the_longest() {
        assert_eq!(nanoseconds(Duration::from_millis(1)), 1_000_000);
        assert_eq!(nanoseconds(Duration::MAX), i64::MAX);
    }
}
