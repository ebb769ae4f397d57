/* SPDX-License-Identifier: Apache-2.0
 *
 * Hooks of handler modules: their order, their pairs, and what they leave (see <waybill/handler.h>,
 * which promises it). A close belongs to each open that succeeded.
 *
 * Each call is made on the thread that the caller is on: those of a worker are its thread's, all
 * others the main thread's. It is a call as a handler's is (call.h): who leaves, comes back in a child
 * process or keeps the context is found, and what it changed of its thread is put back. Memory is taken by
 * wb_hooks_init() and wb_kept_init() alone, so that none is wanted while a module is called.
 */
#ifndef WB_PIPELINE_HOOKS_H
#define WB_PIPELINE_HOOKS_H

#include "core/base/error.h"
#include "core/config/configuration.h"
#include "core/pipeline/contexts.h"
#include "core/plugin/handlers.h"

/** What modules left: a pointer each. */
typedef struct wb_kept {
    void **data;           /* as many as there are modules */
    size_t open_count;     /* so many of them are open, from the first */
    wb_contexts *contexts; /* for hooks that are called on its thread */
} wb_kept; /* all zero is that of no modules */

/** Those of an endpoint. */
typedef struct wb_hooks {
    const wb_endpoint_config *config;
    const wb_handler_set *handlers;
    wb_kept kept;
    int is_open;
} wb_hooks; /* all zero is that of no modules */

/** `config` and `handlers` must outlive it. */
void wb_hooks_init(wb_hooks *hooks, const wb_endpoint_config *config, const wb_handler_set *handlers);
/** They are closed. */
void wb_hooks_free(wb_hooks *hooks);

/** Have each module check the settings, and add what it says to `problems`.
 *  @return WB_OK, or the class of what was said first, which is in `error`. */
int wb_hooks_check(const wb_hooks *hooks, wb_problems *problems, wb_error *error);
/** The same, up to the first that refuses. @return as wb_hooks_open(). */
int wb_hooks_approve(const wb_hooks *hooks, wb_error *error);

/** Open all modules, unless they are open. Those before one that refuses are closed.
 *  @return WB_OK, or the class of what it said, with file and line of where it is named. */
int wb_hooks_open(wb_hooks *hooks, wb_error *error);
/** Close those that are open. */
void wb_hooks_close(wb_hooks *hooks);

/** For a worker, whose thread it need not be yet; these contexts are its. */
void wb_kept_init(wb_kept *worker, const wb_handler_set *handlers, wb_contexts *contexts);
void wb_kept_free(wb_kept *worker);
/** Open all modules for a worker, likewise. @return WB_OK, or WB_FATAL: the worker is to give up. */
int wb_hooks_worker_open(const wb_hooks *hooks, wb_kept *worker, wb_error *error);
void wb_hooks_worker_close(const wb_hooks *hooks, wb_kept *worker);

/** The settings of the endpoint; NULL: there are none. */
const wb_setting_entry *wb_hooks_settings(const wb_hooks *hooks, size_t *ret_count);

/** What the module at that place left there, or NULL. */
void *wb_kept_data(const wb_kept *kept, size_t module_at);

#endif
