// SPDX-License-Identifier: Apache-2.0
//! The C interface as it is: what `<waybill/handler.h>` and its like declare, with their names. They are the
//! reference; `doc/bindings.md` has every size and offset, and a test compares them with these.
//!
//! Structs that grow are read by the size they tell; those here are those of interface 1.0.
#![allow(non_camel_case_types)]

use std::os::raw::{c_char, c_int, c_uint, c_void};

// ---- result.h ------------------------------------------------------------------------------

pub const WB_OK: c_int = 0;
pub const WB_RETRY: c_int = 1;
pub const WB_ABORT: c_int = 2;
pub const WB_REJECT: c_int = 3;
pub const WB_IN_DOUBT: c_int = 4;
pub const WB_NOT_CONNECTED: c_int = 5;
pub const WB_FATAL: c_int = 6;
pub const WB_UNRECOVERABLE: c_int = WB_REJECT;

pub const WB_LOG_ERROR: c_int = 0;
pub const WB_LOG_WARNING: c_int = 1;
pub const WB_LOG_INFO: c_int = 2;
pub const WB_LOG_DEBUG: c_int = 3;

// ---- message.h -----------------------------------------------------------------------------

/// As a size: up to the NUL byte. No slice is that long, so nothing of this crate is taken for it.
pub const WB_TEXT: usize = usize::MAX;
pub const WB_IMMEDIATE: u32 = 1;
pub const WB_NON_PERSISTENT: u32 = 2;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct wb_header {
    pub name: *const c_char,
    pub value: *const c_char,
    pub name_size: usize,
    pub value_size: usize,
}

#[repr(C)]
pub struct wb_message {
    pub struct_size: usize,
    pub id: *const c_char,
    pub id_size: usize,
    pub r#type: *const c_char,
    pub body: *const c_void,
    pub body_size: usize,
    pub headers: *const wb_header,
    pub header_count: usize,
    pub attempt: u32,
    pub reserved: u32,
    pub key: *const c_char,
    pub key_size: usize,
}

#[repr(C)]
pub struct wb_outgoing {
    pub r#type: *const c_char,
    pub destination: *const c_char,
    pub body: *const c_void,
    pub body_size: usize,
    pub headers: *const wb_header,
    pub header_count: usize,
    pub id: *const c_char,
    pub id_size: usize,
    pub content_type: *const c_char,
    pub key: *const c_char,
    pub key_size: usize,
    pub flags: u32,
    pub reserved: u32,
    pub cause: *const wb_message,
    pub delay: i64,
    pub deliver_at: i64,
    pub time_to_be_received: i64,
}

// ---- handler.h -----------------------------------------------------------------------------

pub const WB_KIND_SEND: c_int = 1;
pub const WB_KIND_PUBLISH: c_int = 2;
pub const WB_KIND_REPLY: c_int = 3;
pub const WB_DATA_MODULE: c_int = 1;
pub const WB_DATA_WORKER: c_int = 2;
pub const WB_HANDLER_ABI_MAJOR: u32 = 1;
pub const WB_HANDLER_ABI_MINOR: u32 = 0;

#[repr(C)]
pub struct wb_setting_entry {
    pub name: *const c_char,
    pub value: *const c_char,
}

/// What else the host keeps in it stays the host's: a module never makes one.
#[repr(C)]
pub struct wb_context {
    pub api: *const wb_handler_api,
}

#[repr(C)]
pub struct wb_handler_api {
    pub struct_size: usize,
    pub outgoing: unsafe extern "C" fn(*mut wb_context, c_int, *const wb_outgoing, usize) -> c_int,
    pub storage: unsafe extern "C" fn(
        *mut wb_context,
        *const c_char,
        *mut *mut c_void,
        *mut usize,
    ) -> *const c_void,
    pub failure: unsafe extern "C" fn(*mut wb_context, c_int, *const c_char) -> c_int,
    pub log: unsafe extern "C" fn(*mut wb_context, c_int, *const c_char),
    pub endpoint_name: unsafe extern "C" fn(*mut wb_context) -> *const c_char,
    pub give_up: unsafe extern "C" fn(*mut wb_context, *const c_char, *const c_char) -> c_int,
    pub retry_after: unsafe extern "C" fn(*mut wb_context, i64, *const c_char) -> c_int,
    pub settings: unsafe extern "C" fn(*mut wb_context, *mut usize) -> *const wb_setting_entry,
    pub data: unsafe extern "C" fn(*mut wb_context, c_int) -> *mut c_void,
}

pub type wb_handler_fn = unsafe extern "C" fn(*mut wb_context, *const wb_message) -> c_int;
pub type wb_batch_handler_fn =
    unsafe extern "C" fn(*mut wb_context, *const *const wb_message, usize) -> c_int;
pub type wb_check_fn = unsafe extern "C" fn(*mut wb_context) -> c_int;
pub type wb_open_fn = unsafe extern "C" fn(*mut wb_context, *mut *mut c_void) -> c_int;
pub type wb_close_fn = unsafe extern "C" fn(*mut wb_context, *mut c_void);

#[repr(C)]
pub struct wb_handler {
    pub r#type: *const c_char,
    pub one: Option<wb_handler_fn>,
    pub batch: Option<wb_batch_handler_fn>,
}

#[repr(C)]
pub struct wb_handler_module {
    pub struct_size: usize,
    pub abi_major: u32,
    pub abi_minor_needed: u32,
    pub handler_stride: usize,
    pub handler_count: usize,
    pub handlers: *const wb_handler,
    pub check: Option<wb_check_fn>,
    pub open: Option<wb_open_fn>,
    pub worker_open: Option<wb_open_fn>,
    pub worker_close: Option<wb_close_fn>,
    pub close: Option<wb_close_fn>,
}

// Tables of a module are constants: functions, and texts that live as long as the module.
unsafe impl Sync for wb_handler {}
unsafe impl Sync for wb_handler_module {}

// ---- pgsql.h, mysql.h, sqlite.h ------------------------------------------------------------

pub const WB_PGSQL_INTERFACE: &str = "pgsql.1";
pub const WB_MYSQL_INTERFACE: &str = "mysql.1";
pub const WB_SQLITE_INTERFACE: &str = "sqlite.1";
pub const WB_MYSQL_TYPE_TEXT: c_int = 0;
pub const WB_MYSQL_TYPE_BINARY: c_int = 1;
pub const WB_MYSQL_TYPE_NUMBER: c_int = 2;

#[repr(C)]
pub struct wb_pgsql_params {
    pub count: c_int,
    pub formats: *const c_int,
    pub lengths: *const c_int,
    pub types: *const c_uint,
    pub values: *const *const c_char,
}

/// `connection` answers a `PGconn *`.
#[repr(C)]
pub struct wb_pgsql_api {
    pub struct_size: usize,
    pub connection: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void,
    pub defer:
        unsafe extern "C" fn(*mut c_void, usize, *const c_char, *const wb_pgsql_params) -> c_int,
}

#[repr(C)]
pub struct wb_mysql_params {
    pub count: c_int,
    pub types: *const c_int,
    pub lengths: *const usize,
    pub values: *const *const c_char,
}

/// `connection` answers a `MYSQL *` of MariaDB Connector/C.
#[repr(C)]
pub struct wb_mysql_api {
    pub struct_size: usize,
    pub connection: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void,
    pub defer:
        unsafe extern "C" fn(*mut c_void, usize, *const c_char, *const wb_mysql_params) -> c_int,
}

/// `connection` answers a `sqlite3 *`.
#[repr(C)]
pub struct wb_sqlite_api {
    pub struct_size: usize,
    pub connection: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void,
}
