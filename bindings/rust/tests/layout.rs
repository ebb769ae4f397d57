// SPDX-License-Identifier: Apache-2.0
//! The structs and constants of `ffi` are those of the C headers: both print them, in the same words. The program
//! `layout` of bindings/layout.c is compiled against the headers; WAYBILL_LAYOUT names a file with what it printed.

use std::collections::BTreeSet;
use std::mem::{align_of, size_of, MaybeUninit};
use waybill::ffi::*;

fn size_at<T>(_: *const T) -> usize {
    size_of::<T>()
}

macro_rules! layout {
    ($lines:expr, $($name:ident { $($field:ident),* })*) => { $(
        $lines.insert(format!("struct {} {} {}", stringify!($name), size_of::<$name>(), align_of::<$name>()));
        $({
            let it = MaybeUninit::<$name>::uninit();
            let at = unsafe { std::ptr::addr_of!((*it.as_ptr()).$field) };
            let offset = at as usize - it.as_ptr() as usize;
            let field = stringify!($field).trim_start_matches("r#");
            $lines.insert(format!("field {} {} {} {}", stringify!($name), field, offset, size_at(at)));
        })*
    )* };
}

macro_rules! numbers {
    ($lines:expr, $($name:ident)*) => { $(
        $lines.insert(format!("constant {} {}", stringify!($name), $name));
    )* };
}

macro_rules! texts {
    ($lines:expr, $($name:ident)*) => { $(
        $lines.insert(format!("constant {} \"{}\"", stringify!($name), $name));
    )* };
}

fn lines_here() -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    layout!(lines,
        wb_header { name, value, name_size, value_size }
        wb_message {
            struct_size, id, id_size, r#type, body, body_size, headers, header_count, attempt, reserved, key, key_size
        }
        wb_outgoing {
            r#type, destination, body, body_size, headers, header_count, id, id_size, content_type, key, key_size, flags,
            reserved, cause, delay, deliver_at, time_to_be_received
        }
        wb_setting_entry { name, value }
        wb_context { api }
        wb_handler_api {
            struct_size, outgoing, storage, failure, log, endpoint_name, give_up, retry_after, settings, data
        }
        wb_handler { r#type, one, batch }
        wb_handler_module {
            struct_size, abi_major, abi_minor_needed, handler_stride, handler_count, handlers, check, open, worker_open,
            worker_close, close
        }
        wb_pgsql_params { count, formats, lengths, types, values }
        wb_pgsql_api { struct_size, connection, defer }
        wb_mysql_params { count, types, lengths, values }
        wb_mysql_api { struct_size, connection, defer }
        wb_sqlite_api { struct_size, connection }
    );
    numbers!(lines,
        WB_OK WB_RETRY WB_ABORT WB_REJECT WB_IN_DOUBT WB_NOT_CONNECTED WB_FATAL WB_UNRECOVERABLE
        WB_LOG_ERROR WB_LOG_WARNING WB_LOG_INFO WB_LOG_DEBUG
        WB_TEXT WB_IMMEDIATE WB_NON_PERSISTENT
        WB_KIND_SEND WB_KIND_PUBLISH WB_KIND_REPLY WB_DATA_MODULE WB_DATA_WORKER
        WB_HANDLER_ABI_MAJOR WB_HANDLER_ABI_MINOR
        WB_MYSQL_TYPE_TEXT WB_MYSQL_TYPE_BINARY WB_MYSQL_TYPE_NUMBER
    );
    texts!(lines, WB_PGSQL_INTERFACE WB_MYSQL_INTERFACE WB_SQLITE_INTERFACE);
    lines
}

// What only programs with sessions need (session.h), and units of time, which Duration has.
fn is_for_others(line: &str) -> bool {
    let name = line.split(' ').nth(1).unwrap_or("");
    ["wb_reason", "wb_endpoint_options", "wb_session_options"].contains(&name)
        || name.starts_with("WB_CAUSE_")
        || name.starts_with("WB_ENDPOINT_")
        || ["WB_MILLISECONDS", "WB_SECONDS", "WB_MINUTES", "WB_HOURS", "WB_DAYS"].contains(&name)
}

#[test]
fn it_is_that_of_the_headers() {
    let path = match std::env::var("WAYBILL_LAYOUT") {
        Ok(path) => path,
        Err(_) => return eprintln!("WAYBILL_LAYOUT is not set: nothing to compare with"),
    };
    let text = std::fs::read_to_string(&path).expect("the output of layout");
    let there: BTreeSet<String> = text.lines().filter(|line| !is_for_others(line)).map(str::to_string).collect();
    let here = lines_here();
    assert!(there.len() > 100, "{} lines in {}", there.len(), path);
    let differ: Vec<_> = here.symmetric_difference(&there).collect();
    assert!(differ.is_empty(), "here or in C, not in both:\n{:#?}", differ);
}
