/* SPDX-License-Identifier: Apache-2.0
 *
 * Parked operations: what could not be dispatched, however often it was tried. They leave the
 * row of their batch and become a row of their own among the pending ones. Its number says
 * when they are due again, so it is out of the way until then: whoever walks the table by
 * number does not meet it.
 *
 * Format: "WBK1", how often they were tried, the reason, the operations as in any row.
 */
#ifndef WB_RECOVER_PARKED_H
#define WB_RECOVER_PARKED_H

#include "core/base/buffer.h"

typedef struct wb_parked {
    uint32_t tries;
    const char *reason;     /* NUL-terminated */
    const void *operations; /* see core/message/operations.h */
    size_t operations_size;
} wb_parked;

/** Encode into `buffer`, which is emptied. */
void wb_parked_encode(wb_buffer *buffer, const wb_parked *parked);

/** Whether a row that begins so is a parked one. */
int wb_parked_is_row(const void *data, size_t size);

/** The tries and the reason (NULL: it is cut) of a row that begins so; the operations are left out.
 *  @return whether there is a reason. */
int wb_parked_decode_head(const void *data, size_t size, wb_parked *ret_parked);

/** @return 1, and what the bytes say, which points into them; 0 when they are no parked row. */
int wb_parked_decode(const void *data, size_t size, wb_parked *ret_parked);

/** How long after the nth try (from 1) the next one comes, in ns: `first`, doubled with each, at
 *  most an hour. */
int64_t wb_parked_pause(int64_t first, uint32_t tries);

#endif
