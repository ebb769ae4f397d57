// SPDX-License-Identifier: Apache-2.0
//! One call of a handler or a hook.

use crate::failure::{c_text_cut, outcome};
use crate::{ffi, Outcome, Outgoing};
use std::any::Any;
use std::ffi::CStr;
use std::os::raw::{c_int, c_void};
use std::ptr;

/// Levels of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Something failed.
    Error = ffi::WB_LOG_ERROR as isize,
    /// Something may fail.
    Warning = ffi::WB_LOG_WARNING as isize,
    /// Something happened.
    Info = ffi::WB_LOG_INFO as isize,
    /// For who looks for an error.
    Debug = ffi::WB_LOG_DEBUG as isize,
}

/// One call of a handler or a hook: a `wb_context`, which explains what is refused when. Only lent: it is valid until the
/// handler returns, on its thread.
pub struct Context {
    raw: *mut ffi::wb_context,
}

impl Context {
    /// # Safety
    /// `raw` is the context of a call which this thread is in, for as long as the value lives.
    pub unsafe fn from_raw(raw: *mut ffi::wb_context) -> Self {
        Context { raw }
    }

    /// As C has it.
    pub fn raw(&self) -> *mut ffi::wb_context {
        self.raw
    }

    fn api(&self) -> &ffi::wb_handler_api {
        unsafe { &*(*self.raw).api }
    }

    fn ask(&self, kind: c_int, destination: Option<&str>, what: &Outgoing) -> Outcome {
        let size = std::mem::size_of::<ffi::wb_outgoing>();
        let result = what.with_raw(destination, |raw| unsafe { (self.api().outgoing)(self.raw, kind, raw, size) })?;
        outcome(result)
    }

    /// Send a command to one endpoint's queue; it leaves after the commit. When it is refused return that: the message
    /// goes to the error queue with the host's reason.
    pub fn send(&self, destination: &str, what: &Outgoing) -> Outcome {
        self.ask(ffi::WB_KIND_SEND, Some(destination), what)
    }

    /// Publish an event to all who subscribed to its type.
    pub fn publish(&self, what: &Outgoing) -> Outcome {
        self.ask(ffi::WB_KIND_PUBLISH, None, what)
    }

    /// Send to the reply address of the message being handled; refused when that has none.
    pub fn reply(&self, what: &Outgoing) -> Outcome {
        self.ask(ffi::WB_KIND_REPLY, None, what)
    }

    /// Write a line to the endpoint's log; it is cut at 1000 bytes, and at a NUL byte.
    pub fn log(&self, level: Level, text: &str) {
        unsafe { (self.api().log)(self.raw, level as c_int, c_text_cut(text).as_ptr()) }
    }

    /// The name of the endpoint.
    pub fn endpoint(&self) -> &str {
        unsafe { CStr::from_ptr((self.api().endpoint_name)(self.raw)) }.to_str().unwrap_or("")
    }

    /// All settings of the endpoint, name and value, in the order of the file. Not those that are no UTF-8.
    pub fn settings(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut count = 0;
        let first = unsafe { (self.api().settings)(self.raw, &mut count) };
        let settings: &[ffi::wb_setting_entry] =
            if first.is_null() { &[] } else { unsafe { std::slice::from_raw_parts(first, count) } };
        settings.iter().filter_map(|each| unsafe {
            Some((CStr::from_ptr(each.name).to_str().ok()?, CStr::from_ptr(each.value).to_str().ok()?))
        })
    }

    /// One of them, if it is set.
    pub fn setting(&self, name: &str) -> Option<&str> {
        self.settings().find(|(each, _)| *each == name).map(|(_, value)| value)
    }

    fn data<T: 'static>(&self, whose: c_int) -> Option<&T> {
        let kept = unsafe { (self.api().data)(self.raw, whose) } as *const Box<dyn Any>;
        // the hooks of guard.rs are the only ones that leave something, if module! made this module
        unsafe { kept.as_ref() }?.downcast_ref()
    }

    /// What [`Module::open`](crate::Module::open) made for the endpoint. None: it is of another type, or there is none.
    pub fn module<T: crate::Module>(&self) -> Option<&T> {
        self.data(ffi::WB_DATA_MODULE)
    }

    /// What [`Worker::open`](crate::Worker::open) made for this thread's worker.
    pub fn worker<T: crate::Worker>(&self) -> Option<&T> {
        self.data(ffi::WB_DATA_WORKER)
    }

    /// A persistence's own interface: its table, and the first two arguments of that one's functions.
    ///
    /// # Safety
    /// `Table` is what the interface of that name is.
    pub(crate) unsafe fn storage<Table>(&self, name: &str) -> Option<(&Table, *mut c_void, usize)> {
        let name = c_text_cut(name);
        let (mut session, mut item) = (ptr::null_mut(), 0);
        let table = (self.api().storage)(self.raw, name.as_ptr(), &mut session, &mut item) as *const Table;
        table.as_ref().map(|table| (table, session, item))
    }
}
