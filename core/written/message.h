/* SPDX-License-Identifier: Apache-2.0
 *
 * From a row that a program wrote to the message that leaves, or to its copy for the error queue.
 */
#ifndef WB_WRITTEN_MESSAGE_H
#define WB_WRITTEN_MESSAGE_H

#include <waybill/sys/written.h>

#include "core/base/error.h"
#include "core/message/outgoing.h"
#include "core/pipeline/pipeline.h"

/** Who sends what programs wrote: the endpoint, but whichever instance does it the message is the same, so
 *  that its headers name no machine. */
wb_origin wb_written_origin(const wb_origin *endpoint);

/** The operation of a row, in `arena`: it points to nothing of the row. Every call for a row makes the same
 *  bytes. @return NULL with the error set: it can be no message. */
wb_operation *wb_written_message(const wb_origin *origin, const wb_written *row, wb_arena *arena, wb_error *error);

/** What goes to the error queue. */
typedef struct wb_written_failed {
    wb_incoming incoming;
    const char *queue; /* where a retry of it goes; NULL: the endpoint's own */
    char *reason;
    unsigned trim; /* WB_TRIM_x */
} wb_written_failed;

/** Of an operation that is refused for good. Points into it. */
wb_written_failed *wb_written_refused(const wb_operation *operation, wb_arena *arena);
/** And of a row that can be no message: its type, its body, its headers as they were written. Points
 *  to nothing of the row. */
wb_written_failed *wb_written_unusable(const wb_written *row, const char *reason, wb_arena *arena);
/** The copy, cut as far as `trim` says. Points into it. @return NULL: there is no error queue. */
wb_operation *wb_written_copy(wb_pipeline *p, const wb_written_failed *failed, wb_arena *arena);

#endif
