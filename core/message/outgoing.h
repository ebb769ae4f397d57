/* SPDX-License-Identifier: Apache-2.0
 *
 * From what a handler asks for to a complete operation: id, headers, copies.
 */
#ifndef WB_MESSAGE_OUTGOING_H
#define WB_MESSAGE_OUTGOING_H

#include <waybill/handler.h>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/type_bases.h"
#include "core/message/operations.h"
#include "core/message/trace.h"

/* Limits of one outgoing message and of what one incoming message may cause. */
#define WB_OUTGOING_HEADERS_MAX 256
#define WB_OUTGOING_NAME_MAX 255         /* header names, types, destinations: bytes */
#define WB_OUTGOING_VALUE_MAX 32768      /* header value: bytes */
/* Names and values together: what a receiver takes, less what the platform adds. */
#define WB_OUTGOING_HEADERS_SIZE_MAX (60 * 1024)
#define WB_OUTGOING_PER_MESSAGE_MAX 10000 /* operations */
#define WB_OUTGOING_DELAY_MAX (3650 * WB_DAYS)

/** Who sends: constant for an endpoint. */
typedef struct wb_origin {
    wb_text endpoint;
    wb_text reply_to; /* queue; NULL for a send-only endpoint */
    const char *queue; /* that it receives from, if that is not called as it is; NULL; may be changed after make */
    wb_text machine;
    wb_text host_id; /* 32 hexadecimal digits, the same for each start on a machine */
    int64_t body_max;
    const wb_type_bases *bases; /* what types are derived from; may be changed after make */
    size_t base_count;
    int delays; /* WB_DELAYS_BY_x: who delays what it sends */
    int expires; /* whether the transport lets messages expire */
    int cannot_publish; /* whether it has no subscribers */
    /* The clock that delays are counted by: the database's. NULL: this host's wall clock. */
    int64_t (*now)(const void *clock);
    const void *clock;
    const wb_tracing *tracing; /* NULL: nobody records traces, and what a message names of one is passed on as it is */
} wb_origin;

/** The queue that it receives from. */
static inline const char *wb_origin_queue(const wb_origin *origin)
{
    return origin->queue ? origin->queue : origin->endpoint.value;
}

/** Now, by the clock that delays are counted by. */
static inline int64_t wb_origin_now(const wb_origin *origin)
{
    return origin->now ? origin->now(origin->clock) : wb_clock_wall();
}

/** The name is kept, not copied. Main thread. */
wb_origin wb_origin_make(const char *endpoint, int receives, int64_t body_max);

/** Before anything of it is read: whether there is as much of an outgoing message as each version has.
 *  @return WB_OK, or WB_REJECT. */
int wb_outgoing_check_size(size_t size, wb_error *error);

/** Make an operation in `arena` and append it to `list`. It lives as long as the arena, but
 *  not longer than `cause`.
 *
 *  `cause` is the message being handled, or NULL outside of handlers. `ordinal` counts the
 *  operations `cause` asked for; immediate ones are counted by themselves, since they stay
 *  sent when an attempt fails. `size` is the caller's sizeof *outgoing.
 *  @return WB_OK, or WB_REJECT with the reason. */
int wb_outgoing_add(const wb_origin *origin, int kind, const wb_outgoing *outgoing, size_t size,
                    const wb_message *cause, uint32_t ordinal, wb_arena *arena,
                    wb_operation_list *list, wb_error *error);

#endif
