/* SPDX-License-Identifier: Apache-2.0
 *
 * The contexts that a worker hands to its handlers and hooks, a ring of them: one is used again only after so
 * many calls, and its memory is never freed, so that a module which keeps a context, and uses it
 * later or on another thread, is told so and touches nobody else's call.
 *
 * A ring goes from worker to worker of one endpoint, and to what calls the endpoint's hooks on the main
 * thread. Only wb_contexts_refuse() is for any thread.
 */
#ifndef WB_PIPELINE_CONTEXTS_H
#define WB_PIPELINE_CONTEXTS_H

#include <waybill/handler.h>

/** A context is another call's after so many calls of its worker. */
#define WB_CONTEXTS_KEPT 1024

typedef struct wb_contexts wb_contexts;

/** For a worker of this endpoint, until it gives it back. The name is copied. */
wb_contexts *wb_contexts_take(const char *endpoint);
/** NULL is allowed. */
void wb_contexts_give_back(wb_contexts *contexts);

/** The context of the next call, of a handler of that type or of the hook of that name, which is kept until the
 *  ring is given back. */
wb_context *wb_contexts_begin(wb_contexts *contexts, const wb_handler_api *api, const char *name, int is_hook);
/** That call is over. */
void wb_contexts_end(wb_context *context);

/** Somebody called `function` with a context that is not his, or not any more: one line for each
 *  context. Its memory must be a ring's. */
void wb_contexts_refuse(wb_context *context, const char *function, int in_child);

/** In a child process that was just made. */
void wb_contexts_after_fork(void);

#endif
