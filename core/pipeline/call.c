/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/pipeline/call.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>
#include <unistd.h>

#include "core/base/log.h"
#include "core/base/patience.h"

static _Thread_local wb_call *current;

static atomic_uint forks; /* one more in each child of fork() */
static atomic_uint forks_before; /* in the process that is the host's */
static _Atomic(pid_t) process;
static atomic_int ends_process;
static atomic_int is_ending; /* by the host's own choice */
static atomic_int is_told;   /* that somebody else ends it */

/* ---- children ---------------------------------------------------------------------- */

static void note_child(void)
{
    atomic_fetch_add(&forks, 1);
    atomic_store(&process, getpid());
    wb_log_after_fork();
    wb_contexts_after_fork();
}

static int is_in_child(const wb_call *call)
{
    return call->forks != atomic_load_explicit(&forks, memory_order_relaxed);
}

/* ---- who leaves -------------------------------------------------------------------- */

static void tell_hook(const wb_hook *hook, const char *text, const char *how)
{
    wb_log_event(WB_LOG_ERROR, text, { "endpoint", hook->endpoint }, { "module", hook->module }, { "hook", hook->name },
                 { "call", how });
}

static void tell_handler(const wb_call *call, const char *text, const char *how)
{
    char count[24];
    const wb_message *message = &call->items[0]->message;
    (void)snprintf(count, sizeof count, "%zu", call->count);
    wb_log_event(WB_LOG_ERROR, text, { "endpoint", call->worker->pipeline->endpoint }, { "message_id", message->id },
                 { "type", message->type }, { "messages", call->count > 1 ? count : NULL }, { "call", how });
}

static void tell(const wb_call *call, const char *of_handler, const char *of_hook, const char *how)
{
    if (call->hook)
        tell_hook(call->hook, of_hook, how);
    else
        tell_handler(call, of_handler, how);
}

/* A child of vfork() has our memory and a number of its own. */
int wb_call_leaves(const char *how)
{
    const wb_call *call = current;
    if (!call || is_in_child(call) || getpid() != atomic_load(&process))
        return 0;
    current = NULL; /* once */
    wb_log_set_patience(WB_LOG_PATIENCE); /* it may be a signal's handler, which has interrupted a line */
    tell(call, "a handler ends the process", "a hook ends the process", how);
    wb_log_settle();
    return 1;
}

void wb_call_ends_process(void)
{
    atomic_store(&process, getpid());
    atomic_store(&forks_before, atomic_load(&forks));
    atomic_store(&ends_process, 1);
}

int wb_call_is_left_by_others(const char *how)
{
    if (!atomic_load(&ends_process) || atomic_load(&is_ending) || getpid() != atomic_load(&process) ||
        atomic_load(&forks) != atomic_load(&forks_before))
        return 0; /* or a child does, whose affair it is */
    if (atomic_exchange(&is_told, 1))
        return 1; /* it may be over before the first one's line is written: waiting could be for ever */
    wb_log_set_patience(WB_LOG_PATIENCE);
    wb_log_event(WB_LOG_ERROR, "a library or a module's own thread ends the process", { "call", how });
    wb_log_settle();
    return 1;
}

void wb_call_end_process(int code)
{
    atomic_store(&is_ending, 1);
    wb_log_set_patience(WB_LOG_PATIENCE);
    wb_log_settle();
    _exit(code);
}

/* For who does not call the program's exit(), but a function of the C library that does. */
static void on_exit_of_process(void)
{
    if (wb_call_leaves("exit()") && atomic_load(&ends_process))
        wb_call_end_process(EX_SOFTWARE);
}

static void on_exit_of_thread(void *argument)
{
    const wb_call *call = current;
    (void)argument;
    if (!call || is_in_child(call))
        return;
    current = NULL;
    wb_contexts_end(call->context);
    tell(call, "a handler ends its thread", "a hook ends its thread", "pthread_exit()");
    if (atomic_load(&ends_process))
        wb_call_end_process(EX_SOFTWARE);
}

void wb_call_guard(void (*function)(void *argument), void *argument)
{
    pthread_cleanup_push(on_exit_of_thread, NULL);
    function(argument);
    pthread_cleanup_pop(0);
}

/* ---- begin and end ----------------------------------------------------------------- */

static void watch(void)
{
    atomic_store(&process, getpid());
    (void)pthread_atfork(NULL, NULL, note_child);
    (void)atexit(on_exit_of_process);
    (void)at_quick_exit(on_exit_of_process);
}

void wb_call_begin(wb_call *call, const wb_handler_api *api, const char *name)
{
    static pthread_once_t is_watched = PTHREAD_ONCE_INIT;
    (void)pthread_once(&is_watched, watch);
    call->context = wb_contexts_begin(call->hook ? call->hook->contexts : call->worker->contexts, api, name,
                                      call->hook != NULL);
    call->forks = atomic_load_explicit(&forks, memory_order_relaxed);
    current = call;
}

void wb_call_end(wb_call *call)
{
    if (is_in_child(call)) {
        tell(call, "a child process returned from a handler: it ends here",
             "a child process returned from a hook: it ends here", "fork()");
        _exit(EX_SOFTWARE);
    }
    current = NULL;
    wb_contexts_end(call->context);
}

wb_call *wb_call_of(wb_context *context, const char *function)
{
    wb_call *call = current;
    const int is_current = call && call->context == context;
    if (is_current && !is_in_child(call))
        return call;
    wb_contexts_refuse(context, function, is_current);
    return NULL;
}

const char *wb_call_name(int kind)
{
    return kind == WB_KIND_SEND ? "wb_send" : kind == WB_KIND_PUBLISH ? "wb_publish" : "wb_reply";
}
