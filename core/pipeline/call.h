/* SPDX-License-Identifier: Apache-2.0
 *
 * A call of a handler, or of a hook, while it runs: whose context it has, and who may use that. A context is valid
 * for the call that it was handed to, on its thread, in its process. Whoever uses it elsewhere or
 * later is refused with a line (contexts.h).
 *
 * Either may try to leave by ending its thread or the process, and a child that it made by
 * fork() may come back as if it were the host: both are found here. A child of fork() is known by a count that
 * it raises; what is made by _Fork() or clone() is not known, but by its process id in wb_call_leaves().
 */
#ifndef WB_PIPELINE_CALL_H
#define WB_PIPELINE_CALL_H

#include "core/pipeline/contexts.h"
#include "core/pipeline/worker.h"

/** A hook that is called in place of a handler (hooks.h). */
typedef struct wb_hook {
    const char *name;   /* "open" */
    const char *module; /* its path */
    const char *endpoint;
    wb_contexts *contexts;
} wb_hook;

typedef struct wb_call {
    wb_context *context; /* what was handed over */
    wb_error *error;     /* what was said last; why the handler fails, if it does */
    unsigned forks;      /* of this process's ancestors and itself, when it began */
    const wb_hook *hook; /* NULL: it is a handler, and what follows is its */
    wb_worker *worker;
    wb_item *const *items;
    size_t count;
    int broken;  /* an immediate send found the session dead */
    int trouble; /* an immediate send met the server's: WB_CAUSE_SERVER, WB_CAUSE_SENDING, or 0 */
} wb_call;

/** From here to wb_call_end() it is this thread's call. What it begins with is set by the caller. `name` is the
 *  handler's type, or the hook's name. */
void wb_call_begin(wb_call *call, const wb_handler_api *api, const char *name);
/** Does not return in a child of fork(): that ends here, with 70. */
void wb_call_end(wb_call *call);

/** Run `function` so that a handler or a hook in it which ends the thread is found: a line, and where
 *  wb_call_ends_process() was asked for, the end of the process. */
void wb_call_guard(void (*function)(void *argument), void *argument);

/** The call that this context was handed to, or NULL after a line: `function`, which was called
 *  with it, is to be refused. */
wb_call *wb_call_of(wb_context *context, const char *function);

/** The name of the function that asks for an operation of that kind. */
const char *wb_call_name(int kind);

/** Somebody is about to end the process by `how` ("exit(0)"). When it is a handler or a hook on its own thread, one
 *  line names its message, or its module. @return whether it is. Safe in a child of fork() and vfork(). */
int wb_call_leaves(const char *how);

/** The program's choice: a handler or a hook that leaves takes the process along with 70, and no function that was
 *  registered with atexit() is run, but those registered after the first call began where the C library calls exit() by itself
 *  (err(3)). Otherwise (a library in somebody's program) it is only told. */
void wb_call_ends_process(void);
/** Somebody else is about to end the process: a thread that a module started, a constructor, a client library. One line
 *  says how. @return whether it is that, in a process that wb_call_ends_process() was called in. */
int wb_call_is_left_by_others(const char *how);
/** The host ends it, at once. */
_Noreturn void wb_call_end_process(int code);

#endif
