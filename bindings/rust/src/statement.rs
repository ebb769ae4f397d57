// SPDX-License-Identifier: Apache-2.0
//! Parameters of statements, and statements that travel with the batch's next round trip.

use crate::failure::{c_text, outcome};
use crate::{ffi, Context, Failure, Outcome};
use std::ffi::CString;
use std::os::raw::{c_char, c_int, c_void};
use std::ptr;

/// A parameter of a statement. Made by [`params!`](crate::params) of what it stands for: texts, bytes, numbers, `bool` (0 or
/// 1), and `Option` of these, whose `None` is SQL NULL.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// SQL NULL.
    Null,
    /// A text. PostgreSQL has none with a NUL byte: refused.
    Text(&'a str),
    /// Bytes: `bytea`, `varbinary`, `blob`.
    Bytes(&'a [u8]),
    /// A whole number.
    Integer(i64),
    /// A floating one.
    Real(f64),
}

macro_rules! value_from {
    ($($from:ty => $to:ident($convert:expr)),* $(,)?) => { $(
        impl<'a> From<$from> for Value<'a> {
            fn from(value: $from) -> Self {
                let convert: fn($from) -> _ = $convert;
                Value::$to(convert(value))
            }
        }
    )* };
}
value_from! {
    &'a str => Text(|v| v), &'a String => Text(|v| v.as_str()),
    &'a [u8] => Bytes(|v| v), &'a Vec<u8> => Bytes(|v| v.as_slice()),
    i8 => Integer(i64::from), i16 => Integer(i64::from), i32 => Integer(i64::from), i64 => Integer(|v| v),
    u8 => Integer(i64::from), u16 => Integer(i64::from), u32 => Integer(i64::from), bool => Integer(i64::from),
    f32 => Real(f64::from), f64 => Real(|v| v),
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}

/// Parameters from a list: `params![order, 42, None::<&str>]`.
#[macro_export]
macro_rules! params {
    ($($value:expr),* $(,)?) => { &[$($crate::Value::from($value)),*] as &[$crate::Value] };
}

/// What C is to see of a value: where it is, its size, and what has to live meanwhile.
struct Sent<'a> {
    made: Option<CString>,
    given: &'a [u8],
    is_null: bool,
}

impl<'a> Sent<'a> {
    fn new(value: &Value<'a>) -> Result<Self, Failure> {
        let made = match value {
            Value::Text(text) => Some(c_text(text, "parameter")?),
            Value::Integer(number) => Some(c_text(&number.to_string(), "parameter")?),
            Value::Real(number) => Some(c_text(&number.to_string(), "parameter")?),
            Value::Null | Value::Bytes(_) => None,
        };
        let given = if let Value::Bytes(bytes) = *value { bytes } else { &[] };
        Ok(Sent { made, given, is_null: matches!(value, Value::Null) })
    }

    fn size(&self) -> usize {
        self.made.as_ref().map_or(self.given.len(), |text| text.as_bytes().len())
    }

    fn start(&self) -> *const c_char {
        if self.is_null {
            return ptr::null();
        }
        self.made.as_ref().map_or(self.given.as_ptr() as *const c_char, |text| text.as_ptr())
    }
}

fn sent<'a>(values: &[Value<'a>]) -> Result<Vec<Sent<'a>>, Failure> {
    values.iter().map(Sent::new).collect()
}

fn number(size: usize) -> Result<c_int, Failure> {
    c_int::try_from(size).map_err(|_| Failure::reject("a parameter is too large"))
}

impl Context {
    /// As `wb_pgsql_defer()`: run a statement with the batch's next round trip. Its failure is the message's, though the
    /// handler has returned by then.
    pub fn pgsql_defer(&self, statement: &str, values: &[Value]) -> Outcome {
        let statement = c_text(statement, "statement")?;
        let sent = sent(values)?;
        let starts: Vec<_> = sent.iter().map(Sent::start).collect();
        let lengths = sent.iter().map(|each| number(each.size())).collect::<Result<Vec<_>, _>>()?;
        let formats: Vec<_> = values.iter().map(|value| matches!(value, Value::Bytes(_)) as c_int).collect();
        let params = ffi::wb_pgsql_params {
            count: number(values.len())?,
            formats: formats.as_ptr(),
            lengths: lengths.as_ptr(),
            types: ptr::null(),
            values: starts.as_ptr(),
        };
        unsafe {
            let (table, session, item) = self
                .storage::<ffi::wb_pgsql_api>(ffi::WB_PGSQL_INTERFACE)
                .ok_or_else(|| Failure::reject("there is no pgsql session here"))?;
            outcome((table.defer)(session, item, statement.as_ptr(), &params))
        }
    }

    /// As `wb_mysql_defer()`, likewise. Whole numbers are numbers to the server (`LIMIT ?`), a floating one is a text
    /// that it converts.
    pub fn mysql_defer(&self, statement: &str, values: &[Value]) -> Outcome {
        let statement = c_text(statement, "statement")?;
        let sent = sent(values)?;
        let starts: Vec<_> = sent.iter().map(Sent::start).collect();
        let lengths: Vec<_> = sent.iter().map(Sent::size).collect();
        let types: Vec<_> = values.iter().map(mysql_type).collect();
        let params = ffi::wb_mysql_params {
            count: number(values.len())?,
            types: types.as_ptr(),
            lengths: lengths.as_ptr(),
            values: starts.as_ptr(),
        };
        unsafe {
            let (table, session, item) = self
                .storage::<ffi::wb_mysql_api>(ffi::WB_MYSQL_INTERFACE)
                .ok_or_else(|| Failure::reject("there is no mysql session here"))?;
            outcome((table.defer)(session, item, statement.as_ptr(), &params))
        }
    }

    /// The `PGconn *` of `wb_pgsql()`, for a binding of libpq; NULL where there is none.
    pub fn pgsql_connection(&self) -> *mut c_void {
        unsafe { self.storage::<ffi::wb_pgsql_api>(ffi::WB_PGSQL_INTERFACE) }
            .map_or(ptr::null_mut(), |(table, session, item)| unsafe { (table.connection)(session, item) })
    }

    /// The `MYSQL *` of `wb_mysql()`, for a binding of MariaDB Connector/C; NULL where there is none.
    pub fn mysql_connection(&self) -> *mut c_void {
        unsafe { self.storage::<ffi::wb_mysql_api>(ffi::WB_MYSQL_INTERFACE) }
            .map_or(ptr::null_mut(), |(table, session, item)| unsafe { (table.connection)(session, item) })
    }

    /// The `sqlite3 *` of `wb_sqlite()`, for a binding of SQLite; NULL where there is none. The feature `sqlite` has one.
    pub fn sqlite_connection(&self) -> *mut c_void {
        unsafe { self.storage::<ffi::wb_sqlite_api>(ffi::WB_SQLITE_INTERFACE) }
            .map_or(ptr::null_mut(), |(table, session, item)| unsafe { (table.connection)(session, item) })
    }
}

fn mysql_type(value: &Value) -> c_int {
    match value {
        Value::Bytes(_) => ffi::WB_MYSQL_TYPE_BINARY,
        Value::Integer(_) => ffi::WB_MYSQL_TYPE_NUMBER,
        Value::Null | Value::Text(_) | Value::Real(_) => ffi::WB_MYSQL_TYPE_TEXT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_what_it_stands_for() {
        let name = String::from("Ada");
        let bytes = vec![0u8, 255];
        assert_eq!(
            params![&name, 42, 0.5, None::<&str>, &bytes, true, Some("x")],
            [
                Value::Text("Ada"),
                Value::Integer(42),
                Value::Real(0.5),
                Value::Null,
                Value::Bytes(&[0, 255]),
                Value::Integer(1),
                Value::Text("x")
            ]
        );
    }

    #[test]
    fn null_is_null_and_empty_is_not() {
        let sent = sent(params![None::<i64>, "", &b""[..], "a", -7]).unwrap_or_default();
        let seen: Vec<_> = sent.iter().map(|each| (each.start().is_null(), each.size())).collect();
        assert_eq!(seen, [(true, 0), (false, 0), (false, 0), (false, 1), (false, 2)]);
        assert!(Sent::new(&Value::Text("a\0b")).is_err());
    }
}
