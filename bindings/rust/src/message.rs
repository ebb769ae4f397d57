// SPDX-License-Identifier: Apache-2.0
//! Messages as a handler sees them.

use crate::{ffi, Failure};
use std::borrow::Cow;
use std::ffi::CStr;
use std::fmt;
use std::os::raw::{c_char, c_void};

/// `size` bytes that C hands over; no slice begins at NULL, but an empty one may be asked for with it.
pub(crate) unsafe fn bytes<'a>(at: *const c_void, size: usize) -> &'a [u8] {
    if at.is_null() || size == 0 {
        &[]
    } else {
        std::slice::from_raw_parts(at as *const u8, size)
    }
}

unsafe fn string<'a>(at: *const c_char, size: usize) -> &'a [u8] {
    bytes(at as *const c_void, size)
}

/// A header: any bytes, UTF-8 by convention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// Its name, compared byte for byte.
    pub name: &'a [u8],
    /// Its value; an empty one is a value.
    pub value: &'a [u8],
}

/// The message being handled: a `wb_message`, which explains each field.
#[derive(Clone, Copy)]
#[repr(transparent)] // a slice of them is C's array of pointers
pub struct Message<'a> {
    raw: &'a ffi::wb_message,
}

impl<'a> Message<'a> {
    /// # Safety
    /// What it points to is as `<waybill/message.h>` says, for as long as `'a`.
    pub unsafe fn from_raw(raw: &'a ffi::wb_message) -> Self {
        Message { raw }
    }

    /// As C has it.
    pub fn raw(&self) -> &'a ffi::wb_message {
        self.raw
    }

    /// 1 to 255 bytes of any value.
    pub fn id(&self) -> &'a [u8] {
        unsafe { string(self.raw.id, self.raw.id_size) }
    }

    /// The id as a text, or the failure of a message whose id is none: it is rejected.
    pub fn id_text(&self) -> Result<&'a str, Failure> {
        std::str::from_utf8(self.id()).map_err(|_| Failure::reject("the id is no UTF-8"))
    }

    /// The id to be shown: what is no UTF-8 is replaced.
    pub fn id_lossy(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.id())
    }

    /// The type this handler was chosen for; what is no UTF-8 is replaced.
    pub fn type_name(&self) -> Cow<'a, str> {
        unsafe { CStr::from_ptr(self.raw.r#type) }.to_string_lossy()
    }

    /// Any bytes, none for an empty body.
    pub fn body(&self) -> &'a [u8] {
        unsafe { bytes(self.raw.body, self.raw.body_size) }
    }

    /// The body as a text, or the failure of a message whose body is none: it is rejected.
    pub fn body_text(&self) -> Result<&'a str, Failure> {
        std::str::from_utf8(self.body()).map_err(|_| Failure::reject("the body is no UTF-8"))
    }

    /// What decided its order and partition, if anything did.
    pub fn key(&self) -> Option<&'a [u8]> {
        if self.raw.key.is_null() {
            None
        } else {
            Some(unsafe { string(self.raw.key, self.raw.key_size) })
        }
    }

    /// 1 for the first.
    pub fn attempt(&self) -> u32 {
        self.raw.attempt
    }

    /// In the order they were received.
    pub fn headers(&self) -> impl Iterator<Item = Header<'a>> {
        let headers: &'a [ffi::wb_header] = if self.raw.header_count == 0 {
            &[]
        } else {
            unsafe { std::slice::from_raw_parts(self.raw.headers, self.raw.header_count) }
        };
        headers.iter().map(|each| unsafe {
            Header { name: string(each.name, each.name_size), value: string(each.value, each.value_size) }
        })
    }

    /// The value of the first header of that name.
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.headers().find(|each| each.name == name.as_bytes()).map(|each| each.value)
    }

    /// The same as a text, or the failure of a message that has none: it is rejected.
    pub fn header_text(&self, name: &str) -> Result<&'a str, Failure> {
        let value = self.header(name).ok_or_else(|| Failure::reject(format!("no header \"{}\"", name)))?;
        std::str::from_utf8(value).map_err(|_| Failure::reject(format!("the header \"{}\" is no UTF-8", name)))
    }
}

impl fmt::Debug for Message<'_> {
    /// Not its body.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message").field("id", &self.id_lossy()).field("type", &self.type_name()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(headers: &[ffi::wb_header], body: *const c_void, body_size: usize) -> ffi::wb_message {
        ffi::wb_message {
            struct_size: std::mem::size_of::<ffi::wb_message>(),
            id: b"id-1\0".as_ptr() as *const c_char,
            id_size: 4,
            r#type: b"A.B\0".as_ptr() as *const c_char,
            body,
            body_size,
            headers: if headers.is_empty() { std::ptr::null() } else { headers.as_ptr() },
            header_count: headers.len(),
            attempt: 2,
            reserved: 0,
            key: std::ptr::null(),
            key_size: 0,
        }
    }

    #[test]
    fn null_is_nothing() {
        let raw = raw(&[], b"\0".as_ptr() as *const c_void, 0);
        let message = unsafe { Message::from_raw(&raw) };
        assert_eq!((message.id(), message.type_name().as_ref(), message.body()), (&b"id-1"[..], "A.B", &b""[..]));
        assert_eq!(message.id_text().unwrap_or_default(), "id-1");
        assert_eq!((message.key(), message.headers().count(), message.attempt()), (None, 0, 2));
        assert_eq!(message.header_text("X").unwrap_err().reason(), Some("no header \"X\""));
    }

    #[test]
    fn headers_are_any_bytes() {
        let header = |name: &'static [u8], value: &'static [u8]| ffi::wb_header {
            name: name.as_ptr() as *const c_char,
            value: value.as_ptr() as *const c_char,
            name_size: name.len(),
            value_size: value.len(),
        };
        let headers = [header(b"A", b""), header(b"B", b"x\0\xff"), header(b"B", b"second")];
        let raw = raw(&headers, b"ab\xff".as_ptr() as *const c_void, 3);
        let message = unsafe { Message::from_raw(&raw) };
        assert_eq!(message.header("A"), Some(&b""[..]));
        assert_eq!(message.header("B"), Some(&b"x\0\xff"[..]));
        assert_eq!(message.header("C"), None);
        assert_eq!(message.header_text("B").unwrap_err().reason(), Some("the header \"B\" is no UTF-8"));
        assert_eq!(message.body_text().unwrap_err().result(), ffi::WB_UNRECOVERABLE);
    }
}
