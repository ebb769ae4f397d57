// SPDX-License-Identifier: Apache-2.0
//! The storage session of SQLite (feature `sqlite`): as much of it as handlers need, over libsqlite3.

use crate::{Context, Failure, Outcome, Value};
use std::marker::PhantomData;
use std::os::raw::{c_char, c_int, c_uchar, c_void};
use std::ptr;

#[link(name = "sqlite3")]
extern "C" {
    fn sqlite3_prepare_v2(
        db: *mut c_void,
        text: *const c_char,
        size: c_int,
        ret_statement: *mut *mut c_void,
        ret_rest: *mut *const c_char,
    ) -> c_int;
    fn sqlite3_finalize(statement: *mut c_void) -> c_int;
    fn sqlite3_step(statement: *mut c_void) -> c_int;
    fn sqlite3_extended_errcode(db: *mut c_void) -> c_int;
    fn sqlite3_bind_parameter_count(statement: *mut c_void) -> c_int;
    fn sqlite3_bind_null(statement: *mut c_void, at: c_int) -> c_int;
    fn sqlite3_bind_int64(statement: *mut c_void, at: c_int, value: i64) -> c_int;
    fn sqlite3_bind_double(statement: *mut c_void, at: c_int, value: f64) -> c_int;
    fn sqlite3_bind_blob64(
        statement: *mut c_void,
        at: c_int,
        bytes: *const c_void,
        size: u64,
        free: *const c_void,
    ) -> c_int;
    fn sqlite3_bind_text64(
        statement: *mut c_void,
        at: c_int,
        text: *const c_char,
        size: u64,
        free: *const c_void,
        encoding: c_uchar,
    ) -> c_int;
    fn sqlite3_data_count(statement: *mut c_void) -> c_int;
    fn sqlite3_column_type(statement: *mut c_void, column: c_int) -> c_int;
    fn sqlite3_column_int64(statement: *mut c_void, column: c_int) -> i64;
    fn sqlite3_column_double(statement: *mut c_void, column: c_int) -> f64;
    fn sqlite3_column_blob(statement: *mut c_void, column: c_int) -> *const c_void;
    fn sqlite3_column_text(statement: *mut c_void, column: c_int) -> *const c_void;
    fn sqlite3_column_bytes(statement: *mut c_void, column: c_int) -> c_int;
}

const SQLITE_OK: c_int = 0;
const SQLITE_ROW: c_int = 100;
const SQLITE_DONE: c_int = 101;
const SQLITE_BLOB: c_int = 4;
const SQLITE_NULL: c_int = 5;
const SQLITE_UTF8: c_uchar = 1;

// SQLITE_TRANSIENT: SQLite makes a copy.
fn transient() -> *const c_void {
    -1isize as *const c_void
}

impl Context {
    /// The connection, inside the framework's transaction. A failure that is tried again where the endpoint's persistence
    /// is another.
    pub fn sqlite(&self) -> Result<Connection<'_>, Failure> {
        let raw = self.sqlite_connection();
        if raw.is_null() {
            return Err(Failure::retry("there is no SQLite connection: the endpoint's persistence is another"));
        }
        Ok(Connection { raw, call: PhantomData })
    }
}

/// The connection of a call.
pub struct Connection<'call> {
    raw: *mut c_void,
    call: PhantomData<&'call Context>,
}

impl<'call> Connection<'call> {
    // SQLite's words may quote a message, so they are not in the reason.
    fn demand(&self, is_right: bool, what: &str) -> Outcome {
        if is_right {
            return Ok(());
        }
        let code = unsafe { sqlite3_extended_errcode(self.raw) };
        Err(Failure::retry(format!("a statement {}: error {}", what, code)))
    }

    /// Prepare one statement, with as many values as it has parameters.
    pub fn prepare(&self, text: &str, values: &[Value]) -> Result<Statement<'call>, Failure> {
        let size = c_int::try_from(text.len()).map_err(|_| Failure::reject("a statement is too long"))?;
        let start = text.as_ptr() as *const c_char;
        let (mut raw, mut rest) = (ptr::null_mut(), ptr::null());
        let code = unsafe { sqlite3_prepare_v2(self.raw, start, size, &mut raw, &mut rest) };
        let statement = Statement { raw, db: Connection { raw: self.raw, call: PhantomData } };
        self.demand(code == SQLITE_OK, "could not be prepared")?;
        let read = if raw.is_null() { 0 } else { rest as usize - start as usize };
        if raw.is_null() || !text[read..].trim_matches(|c: char| c.is_whitespace() || c == ';').is_empty() {
            return Err(Failure::reject("a statement is not exactly one"));
        }
        if unsafe { sqlite3_bind_parameter_count(raw) } as usize != values.len() {
            return Err(Failure::reject("a statement has another number of parameters"));
        }
        for (at, value) in (1..).zip(values) {
            self.demand(statement.bind(at, value) == SQLITE_OK, "does not take a parameter")?;
        }
        Ok(statement)
    }

    /// Run one statement to its end; rows that it answers are dropped.
    pub fn execute(&self, text: &str, values: &[Value]) -> Outcome {
        let mut statement = self.prepare(text, values)?;
        while statement.step()? {}
        Ok(())
    }
}

/// A prepared statement with its parameters; finalized when it is dropped.
pub struct Statement<'call> {
    raw: *mut c_void,
    db: Connection<'call>,
}

impl Statement<'_> {
    fn bind(&self, at: c_int, value: &Value) -> c_int {
        unsafe {
            match *value {
                Value::Null => sqlite3_bind_null(self.raw, at),
                Value::Integer(number) => sqlite3_bind_int64(self.raw, at, number),
                Value::Real(number) => sqlite3_bind_double(self.raw, at, number),
                Value::Bytes(bytes) => {
                    sqlite3_bind_blob64(self.raw, at, bytes.as_ptr() as *const c_void, bytes.len() as u64, transient())
                }
                Value::Text(text) => {
                    let start = text.as_ptr() as *const c_char;
                    sqlite3_bind_text64(self.raw, at, start, text.len() as u64, transient(), SQLITE_UTF8)
                }
            }
        }
    }

    /// Go on to the next row, which is the first at the first call; says whether there is one.
    pub fn step(&mut self) -> Result<bool, Failure> {
        let code = unsafe { sqlite3_step(self.raw) };
        self.db.demand(code == SQLITE_ROW || code == SQLITE_DONE, "failed")?;
        Ok(code == SQLITE_ROW)
    }

    // Of another column, and where there is no row, SQLite would say anything.
    fn has(&self, column: i32) -> bool {
        (0..unsafe { sqlite3_data_count(self.raw) }).contains(&column)
    }

    /// Columns of the row are counted from 0; one that is not there is NULL.
    pub fn is_null(&self, column: i32) -> bool {
        !self.has(column) || unsafe { sqlite3_column_type(self.raw, column) == SQLITE_NULL }
    }

    /// A column as a whole number; 0 for NULL.
    pub fn integer(&self, column: i32) -> i64 {
        if self.has(column) {
            unsafe { sqlite3_column_int64(self.raw, column) }
        } else {
            0
        }
    }

    /// A column as a floating one; 0 for NULL.
    pub fn real(&self, column: i32) -> f64 {
        if self.has(column) {
            unsafe { sqlite3_column_double(self.raw, column) }
        } else {
            0.0
        }
    }

    /// A column as bytes, a text in UTF-8 whatever the file's encoding; empty for NULL. A copy: SQLite's is gone with the next
    /// question.
    pub fn bytes(&self, column: i32) -> Vec<u8> {
        if !self.has(column) {
            return Vec::new();
        }
        unsafe {
            let is_blob = sqlite3_column_type(self.raw, column) == SQLITE_BLOB;
            let start =
                if is_blob { sqlite3_column_blob(self.raw, column) } else { sqlite3_column_text(self.raw, column) };
            crate::message::bytes(start, sqlite3_column_bytes(self.raw, column) as usize).to_vec()
        }
    }

    /// A column as a text; what is no UTF-8 is replaced.
    pub fn text(&self, column: i32) -> String {
        String::from_utf8_lossy(&self.bytes(column)).into_owned()
    }
}

impl Drop for Statement<'_> {
    fn drop(&mut self) {
        unsafe { sqlite3_finalize(self.raw) };
    }
}
