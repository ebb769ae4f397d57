/* SPDX-License-Identifier: Apache-2.0
 *
 * Rate limiting: when so many attempts in a row failed, of whatever messages, the fault is hardly
 * theirs. Then the endpoint, in this process, makes one attempt at a time, and waits between two, so
 * that messages do not rush through their retries while something is out of order. The first
 * message that is handled ends it.
 *
 * Any thread; nothing waits in here: a worker asks for a turn, and pauses itself.
 */
#ifndef WB_PIPELINE_RATE_H
#define WB_PIPELINE_RATE_H

#include <stdatomic.h>
#include <stdint.h>

typedef struct wb_rate_limit {
    unsigned after; /* failures in a row; 0: attempts are never limited */
    int64_t wait;   /* ns, between the end of an attempt and the next one */
    atomic_uint failures;       /* in a row */
    _Atomic int64_t since;      /* monotonic: limited since; 0: they are not */
    _Atomic(const void *) turn; /* whose it is */
    _Atomic int64_t next;       /* monotonic: no attempt before */
    _Atomic uint64_t times;     /* how often it began */
} wb_rate_limit;

static inline int wb_rate_is_limited(const wb_rate_limit *limit)
{
    return atomic_load(&limit->since) != 0;
}

/** An attempt of a message failed, and counts for it. */
void wb_rate_failed(wb_rate_limit *limit, const char *endpoint);
/** A message was handled. */
void wb_rate_succeeded(wb_rate_limit *limit, const char *endpoint);

/** Ask for a turn. 0: it is `worker`'s until it gives it back, or nothing is limited; else how long
 *  to pause, in ns, before asking again. */
int64_t wb_rate_take_turn(wb_rate_limit *limit, const void *worker);
/** Give it back, if it is `worker`'s. */
void wb_rate_give_turn(wb_rate_limit *limit, const void *worker);

#endif
