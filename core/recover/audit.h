/* SPDX-License-Identifier: Apache-2.0
 *
 * The audit copy of a message that was handled: its id, headers and body, plus when, where and
 * by which endpoint.
 */
#ifndef WB_RECOVER_AUDIT_H
#define WB_RECOVER_AUDIT_H

#include "core/base/arena.h"
#include "core/message/operations.h"
#include "core/message/outgoing.h"

/** A message that was handled. Times are the wall clock's. */
typedef struct wb_handled_message {
    const wb_incoming *incoming;
    int64_t started;
    int64_t ended;
    int is_acknowledged; /* ServiceControl is told of it (retried.h) */
} wb_handled_message;

/** The operation that sends the copy to `queue`, at the end of `list`: its id is the message's.
 *  Lives as long as the arena; points into `incoming`. */
wb_operation *wb_recover_audit_operation(const char *queue, const wb_origin *origin,
                                         const wb_handled_message *handled, wb_arena *arena,
                                         wb_operation_list *list);

#endif
