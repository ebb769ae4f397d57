/* SPDX-License-Identifier: Apache-2.0
 *
 * What is kept of a failed message: all of it, as the operation that would send it to the queue
 * it failed in; and a summary for lists, the same without body and with few headers. Both are in the
 * encoding of the outbox (core/message/operations.h).
 */
#ifndef WB_FAILURES_RECORD_H
#define WB_FAILURES_RECORD_H

#include <waybill/message.h>

#include "core/base/arena.h"
#include "core/base/buffer.h"
#include "core/message/operations.h"
#include "core/message/outgoing.h"

/** Longest reason of a summary, bytes. */
#define WB_FAILED_REASON_MAX 1000
/** A group with its NUL byte. */
#define WB_FAILED_GROUP_SIZE 13

/** What is read of either; what is not there is empty. It points into the bytes. */
typedef struct wb_failed_record {
    const wb_operation *operation;
    wb_text id;       /* the message's */
    wb_text queue;    /* it failed in */
    wb_text endpoint; /* that could not handle it */
    wb_text type;     /* the message's, the first it names */
    wb_text kind;     /* of the failure: the exception's type */
    wb_text reason;
    char group[WB_FAILED_GROUP_SIZE]; /* the same for the same type and reason, numbers in it aside */
} wb_failed_record;

/** Both, into buffers that are emptied. It has a header NServiceBus.FailedQ. */
void wb_failed_encode(const wb_message *message, wb_buffer *summary, wb_buffer *whole);

/** @return 0, or -1: a later version wrote it. */
int wb_failed_decode(const void *bytes, size_t size, wb_arena *arena, wb_failed_record *ret_record);

#endif
