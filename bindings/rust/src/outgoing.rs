// SPDX-License-Identifier: Apache-2.0
//! Messages that a handler asks for.

use crate::failure::{c_text, nanoseconds};
use crate::{ffi, Failure, Message};
use std::os::raw::{c_char, c_void};
use std::ptr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A message to be sent, published or replied: a `wb_outgoing`, which explains each field. What is not set is not given.
///
/// ```ignore
/// context.send("billing", &Outgoing::new("Billing.Charge").body(&json).key(customer).delay(Duration::from_secs(600)))?;
/// ```
#[derive(Clone, Debug)]
#[must_use = "it is not sent until it is handed to send(), publish() or reply()"]
pub struct Outgoing<'a> {
    type_name: &'a str,
    body: &'a [u8],
    headers: Vec<(&'a [u8], &'a [u8])>,
    id: Option<&'a [u8]>,
    key: Option<&'a [u8]>,
    content_type: Option<&'a str>,
    flags: u32,
    cause: Option<Message<'a>>,
    delay: i64,
    deliver_at: i64,
    time_to_be_received: i64,
}

impl<'a> Outgoing<'a> {
    /// A message of a type, "Namespace.Name".
    pub fn new(type_name: &'a str) -> Self {
        Outgoing {
            type_name,
            body: &[],
            headers: Vec::new(),
            id: None,
            key: None,
            content_type: None,
            flags: 0,
            cause: None,
            delay: 0,
            deliver_at: 0,
            time_to_be_received: 0,
        }
    }

    /// Any bytes; none given is an empty body.
    pub fn body<B: AsRef<[u8]> + ?Sized>(mut self, bytes: &'a B) -> Self {
        self.body = bytes.as_ref();
        self
    }

    /// One header more; an empty value is a value.
    pub fn header<N, V>(mut self, name: &'a N, value: &'a V) -> Self
    where
        N: AsRef<[u8]> + ?Sized,
        V: AsRef<[u8]> + ?Sized,
    {
        self.headers.push((name.as_ref(), value.as_ref()));
        self
    }

    /// 1 to 255 bytes; without it one is derived that is the same on every attempt. That of the message in hand: it is
    /// sent on, and gets no headers beside its id and type.
    pub fn id<B: AsRef<[u8]> + ?Sized>(mut self, bytes: &'a B) -> Self {
        self.id = Some(bytes.as_ref());
        self
    }

    /// Decides order and partition.
    pub fn key<B: AsRef<[u8]> + ?Sized>(mut self, bytes: &'a B) -> Self {
        self.key = Some(bytes.as_ref());
        self
    }

    /// Without it "application/json".
    pub fn content_type(mut self, text: &'a str) -> Self {
        self.content_type = Some(text);
        self
    }

    /// Delivered so much later. Of this and [`deliver_at`](Self::deliver_at) the last counts.
    pub fn delay(mut self, time: Duration) -> Self {
        self.delay = nanoseconds(time);
        self.deliver_at = 0;
        self
    }

    /// Not delivered before that time.
    pub fn deliver_at(mut self, time: SystemTime) -> Self {
        self.deliver_at = time.duration_since(UNIX_EPOCH).map_or(1, nanoseconds);
        self.delay = 0;
        self
    }

    /// Dropped when nobody has received it by then. None at all, as of a deadline that is over, is the shortest there is.
    pub fn time_to_be_received(mut self, time: Duration) -> Self {
        self.time_to_be_received = nanoseconds(time).max(1); // C's 0 is "for ever"
        self
    }

    /// At once, whatever becomes of the transaction (`WB_IMMEDIATE`).
    pub fn immediate(mut self) -> Self {
        self.flags |= ffi::WB_IMMEDIATE;
        self
    }

    /// The broker may keep it in memory only (`WB_NON_PERSISTENT`).
    pub fn non_persistent(mut self) -> Self {
        self.flags |= ffi::WB_NON_PERSISTENT;
        self
    }

    /// In a batch handler with more than one message: the one that causes this one.
    pub fn cause(mut self, of: &Message<'a>) -> Self {
        self.cause = Some(*of);
        self
    }

    /// Hand it to `take` as C has it, for functions that this crate does not wrap.
    pub fn with_raw<R>(
        &self,
        destination: Option<&str>,
        take: impl FnOnce(&ffi::wb_outgoing) -> R,
    ) -> Result<R, Failure> {
        let type_name = c_text(self.type_name, "type")?;
        let destination = destination.map(|text| c_text(text, "destination")).transpose()?;
        let content_type = self.content_type.map(|text| c_text(text, "content type")).transpose()?;
        let headers: Vec<_> = self.headers.iter().map(|(name, value)| raw_header(name, value)).collect();
        Ok(take(&ffi::wb_outgoing {
            r#type: type_name.as_ptr(),
            destination: destination.as_ref().map_or(ptr::null(), |text| text.as_ptr()),
            body: self.body.as_ptr() as *const c_void,
            body_size: self.body.len(),
            headers: if headers.is_empty() { ptr::null() } else { headers.as_ptr() },
            header_count: headers.len(),
            id: start(self.id),
            id_size: self.id.map_or(0, <[u8]>::len),
            content_type: content_type.as_ref().map_or(ptr::null(), |text| text.as_ptr()),
            key: start(self.key),
            key_size: self.key.map_or(0, <[u8]>::len),
            flags: self.flags,
            reserved: 0,
            cause: self.cause.as_ref().map_or(ptr::null(), |message| message.raw() as *const _),
            delay: self.delay,
            deliver_at: self.deliver_at,
            time_to_be_received: self.time_to_be_received,
        }))
    }
}

fn raw_header(name: &[u8], value: &[u8]) -> ffi::wb_header {
    ffi::wb_header {
        name: name.as_ptr() as *const c_char,
        value: value.as_ptr() as *const c_char,
        name_size: name.len(),
        value_size: value.len(),
    }
}

// An empty slice points somewhere, which means "given and empty"; NULL means "not given".
fn start(bytes: Option<&[u8]>) -> *const c_char {
    bytes.map_or(ptr::null(), |given| given.as_ptr() as *const c_char)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_given_is_null() {
        Outgoing::new("A.B")
            .with_raw(None, |raw| {
                assert!(raw.destination.is_null() && raw.headers.is_null() && raw.id.is_null() && raw.key.is_null());
                assert!(raw.content_type.is_null() && raw.cause.is_null());
                assert_eq!((raw.body_size, raw.header_count, raw.id_size, raw.key_size, raw.flags), (0, 0, 0, 0, 0));
            })
            .unwrap();
    }

    #[test]
    fn what_is_empty_is_no_null() {
        Outgoing::new("A.B")
            .key("")
            .header("N", "")
            .with_raw(Some("queue"), |raw| {
                assert!(!raw.key.is_null() && raw.key_size == 0);
                let header = unsafe { *raw.headers };
                assert!(!header.value.is_null() && header.value_size == 0 && header.name_size == 1);
            })
            .unwrap();
    }

    #[test]
    fn flags_and_times_are_what_they_say() {
        let (five, nine) = (Duration::from_secs(5), Duration::from_secs(9));
        let of = |outgoing: Outgoing| outgoing.with_raw(None, |raw| (raw.flags, raw.delay, raw.deliver_at)).unwrap();
        assert_eq!(of(Outgoing::new("A.B").immediate()), (ffi::WB_IMMEDIATE, 0, 0));
        assert_eq!(of(Outgoing::new("A.B").non_persistent()), (ffi::WB_NON_PERSISTENT, 0, 0));
        assert_eq!(of(Outgoing::new("A.B").delay(nine).deliver_at(UNIX_EPOCH + five)), (0, 0, 5_000_000_000));
        assert_eq!(of(Outgoing::new("A.B").deliver_at(UNIX_EPOCH + five).delay(nine)), (0, 9_000_000_000, 0));
    }

    #[test]
    fn no_time_to_be_received_is_not_for_ever() {
        let within = |time| {
            Outgoing::new("A").time_to_be_received(time).with_raw(None, |raw| raw.time_to_be_received).unwrap()
        };
        assert_eq!(within(Duration::ZERO), 1);
        assert_eq!(within(Duration::from_nanos(7)), 7);
        assert_eq!(within(Duration::MAX), i64::MAX);
    }

    #[test]
    fn texts_end_with_a_nul_byte_and_have_no_other() {
        let refused = Outgoing::new("A\0B").with_raw(None, |_| ()).unwrap_err();
        assert_eq!(refused.reason(), Some("a NUL byte in a text: type"));
        assert!(Outgoing::new("A").with_raw(Some("q\0"), |_| ()).is_err());
    }

    #[test]
    fn of_two_times_the_last_counts() {
        let at = UNIX_EPOCH + Duration::from_secs(5);
        let times = |outgoing: Outgoing| outgoing.with_raw(None, |raw| (raw.delay, raw.deliver_at)).unwrap();
        assert_eq!(times(Outgoing::new("A").delay(Duration::from_secs(1)).deliver_at(at)), (0, 5_000_000_000));
        assert_eq!(times(Outgoing::new("A").deliver_at(at).delay(Duration::from_secs(1))), (1_000_000_000, 0));
        assert_eq!(times(Outgoing::new("A").deliver_at(UNIX_EPOCH - Duration::from_secs(1))), (0, 1));
    }
}
