/* SPDX-License-Identifier: Apache-2.0
 *
 * What became of an endpoint's messages, in numbers, since it was made: for who operates it.
 *
 * A message is handled when its effect is durable, that is once, and moved, or to be retried later, when its copy has
 * left. What came again after that is a duplicate, also where this process handled it and could not send at once what it
 * asked for; and so is a copy of the same id beside it. Attempts fail, messages do not: one that is handled in the end may have made some.
 *
 * Counted are batches: each adds its sums in one go, whatever the number of its messages. Any thread.
 */
#ifndef WB_PIPELINE_TALLY_H
#define WB_PIPELINE_TALLY_H

#include <stdatomic.h>
#include <stdint.h>

typedef enum {
    WB_TALLY_HANDLED,
    WB_TALLY_FAILED, /* attempts */
    WB_TALLY_MOVED,  /* to the error queue */
    WB_TALLY_DUPLICATES,
    WB_TALLY_RETRIED_LATER, /* by a delayed retry */
    WB_TALLY_DISCARDED,     /* as a handler wished */
    WB_TALLY_PARKED,        /* for the error queue, which does not take them: in the database */
    WB_TALLY_KINDS
} wb_tally_kind;

typedef struct wb_tally {
    _Atomic uint64_t of[WB_TALLY_KINDS];
} wb_tally; /* all zero is the beginning */

/** The same, read; and what is known beside it. */
typedef struct wb_counts {
    uint64_t of[WB_TALLY_KINDS];
    uint64_t expired; /* dropped by the transport before they were received */
    uint64_t waiting; /* now: received by workers, and neither done nor given back. What is set aside is among them */
} wb_counts;

/** What a field of the log calls it. */
const char *wb_tally_name(wb_tally_kind kind);

static inline void wb_tally_add(wb_tally *tally, wb_tally_kind kind, uint64_t count)
{
    if (count)
        atomic_fetch_add_explicit(&tally->of[kind], count, memory_order_relaxed);
}

void wb_tally_read(const wb_tally *tally, wb_counts *ret_counts);

#endif
