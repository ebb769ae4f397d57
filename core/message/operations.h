/* SPDX-License-Identifier: Apache-2.0
 *
 * Outgoing operations, and the bytes in which the outbox keeps them.
 *
 * Format 1: "WBO1", then one group for each message that caused operations: its id, the
 * number of operations, the operations. Strings carry a u32 size and a NUL byte behind
 * them, so that a decoded operation points into the bytes it was decoded from.
 *
 * Format 2: "WBO2", the same, but an operation whose flags have WB_ENCODED_DELAYED is followed by
 * when it is due, a u64. Bytes without a delayed operation are written as format 1, which
 * earlier versions read; of format 2 they say that they cannot, and leave the row alone.
 */
#ifndef WB_MESSAGE_OPERATIONS_H
#define WB_MESSAGE_OPERATIONS_H

#include <waybill/sys/transport.h>

#include "core/base/arena.h"
#include "core/base/buffer.h"

/** In the flags of an encoded operation only. */
#define WB_ENCODED_DELAYED (1u << 31)

typedef struct wb_operation_node {
    wb_operation operation;
    struct wb_operation_node *next;
} wb_operation_node;

/** The operations one message caused, in the order they were asked for. */
typedef struct wb_operation_list {
    wb_operation_node *first;
    wb_operation_node *last;
    size_t count;
} wb_operation_list;

/** Operations and whose they are. */
typedef struct wb_operation_group {
    const char *cause;
    size_t cause_size;
    wb_operation_list operations;
    struct wb_operation_group *next;
} wb_operation_group;

/** A new, zeroed operation at the end of the list; lives as long as the arena. */
wb_operation *wb_operation_append(wb_operation_list *list, wb_arena *arena);

/** Start encoding into `buffer`, which is emptied. */
void wb_operations_encode_start(wb_buffer *buffer);
/** The same behind what is there, of operations that are not delayed. */
void wb_operations_encode_behind(wb_buffer *buffer);
/** Add those operations of a group that are not done (result other than WB_OK).
 *  @return how many there were; a group of none leaves no trace. */
size_t wb_operations_encode_group(wb_buffer *buffer, const void *cause, size_t cause_size,
                                  const wb_operation_list *list);

/** Whether a row that begins so holds operations in a format that this version knows. */
int wb_operations_are_known(const void *data, size_t size);

/** Decode into the arena; everything points into `data`, which must outlive it.
 *  @return the groups in order, or NULL when the bytes are of neither format (`*ret_failed`
 *  tells that from "none"). */
wb_operation_group *wb_operations_decode(const void *data, size_t size, wb_arena *arena,
                                         int *ret_failed);

#endif
