/* SPDX-License-Identifier: Apache-2.0
 *
 * What is kept of a failed message: all of it, as the operation that would send it to the queue
 * it failed in; and a summary for lists, the same without body and with few headers. Both are in the
 * encoding of the outbox (core/message/operations.h).
 *
 * A body over a limit that is worth it is kept compressed (pack.h): "WBZ1", the size of the body, a u32, and the same
 * encoding with what the body became in its place. A version that does not know of it says that it cannot read the row.
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
    wb_text packed; /* the body, where it is compressed and has not been unpacked; else empty */
    char group[WB_FAILED_GROUP_SIZE]; /* the same for the same type and reason, numbers in it aside */
} wb_failed_record;

/* Why one cannot be read. */
#define WB_UNREAD_LATER 1   /* a later version wrote it */
#define WB_UNREAD_DAMAGED 2 /* it is no message any more */
#define WB_UNREAD_BODY 3    /* it is, but its body is not the one that was kept */
#define WB_UNREAD_LARGE 4   /* its body is over the limit */

/** Both, into buffers that are emptied. It has a header NServiceBus.FailedQ. A body of more than `compress_over` bytes is
 *  compressed if that makes it smaller by an eighth; 0: none is. */
void wb_failed_encode(const wb_message *message, size_t compress_over, wb_buffer *summary, wb_buffer *whole);

/** Read either, without a compressed body: then operation->body is NULL, and body_size that of the body.
 *  @return 0, or why it cannot be read (WB_UNREAD_LATER, WB_UNREAD_DAMAGED). */
int wb_failed_decode(const void *bytes, size_t size, wb_arena *arena, wb_failed_record *ret_record);

/** Read it with its body, which lives in the arena if it was compressed. A compressed body of more than `body_max` bytes is
 *  not unpacked, so that a row, whoever wrote it, takes no more memory than a message may.
 *  @return 0, or why it cannot be read. */
int wb_failed_decode_whole(const void *bytes, size_t size, int64_t body_max, wb_arena *arena, wb_failed_record *ret_record);

/** That reason as people read it, with what can be done about it. */
const char *wb_failed_fault(int why);

#endif
