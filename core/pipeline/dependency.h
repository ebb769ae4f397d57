/* SPDX-License-Identifier: Apache-2.0
 *
 * A server that all workers of an endpoint depend on: its broker, its database. Whether it is
 * away, since when and why; and turns: while it is away one worker at a time asks for
 * it, after pauses that grow, and the others wait for what becomes of that.
 *
 * The caller says what time it is (monotonic nanoseconds). Any thread; a waiter is one thread's.
 */
#ifndef WB_PIPELINE_DEPENDENCY_H
#define WB_PIPELINE_DEPENDENCY_H

#include <pthread.h>
#include <stdint.h>

#include "core/base/clock.h"
#include "core/base/error.h"

/** Between two tries of all workers together: doubled with each, less up to a quarter of jitter. */
#define WB_DEPENDENCY_PAUSE_MIN (10 * WB_MILLISECOND)
#define WB_DEPENDENCY_PAUSE_MAX (5 * WB_SECOND)
/** How often a line reminds of one that stays away. */
#define WB_DEPENDENCY_REMIND_EVERY (300 * WB_SECOND)
/** How long after a line another one says that it stays away for another cause, which somebody must mend. */
#define WB_DEPENDENCY_TELL_ANOTHER (10 * WB_SECOND)

#define WB_DEPENDENCY_BROKER 0
#define WB_DEPENDENCY_DATABASE 1
#define WB_DEPENDENCY_APART 2 /* the store of a deduplication apart from the outbox */

struct wb_waiter;

typedef struct wb_dependency {
    int kind;             /* WB_DEPENDENCY_x */
    pthread_mutex_t lock; /* guards the rest */
    unsigned waiting;     /* waiters that failed last time they asked */
    int64_t away_since;   /* when the first of them did; 0: nobody waits */
    wb_error error;       /* what the last one met */
    int in_turns;         /* only `asking` may ask, or whoever comes first when it is due */
    const struct wb_waiter *asking;
    int64_t pause, due;
    unsigned seed;
    /* What was told, by wb_dependency_tell(). */
    int64_t told_since; /* the away_since that was; 0: that it is there */
    int64_t told_at;
    int told_cause;
} wb_dependency;

/** A worker's view of it; all zero but `dependency` at first. */
typedef struct wb_waiter {
    wb_dependency *dependency;
    int waits; /* what it asked for was not there */
} wb_waiter;

void wb_dependency_init(wb_dependency *d, int kind);
void wb_dependency_free(wb_dependency *d);

/** Whether the waiter may ask the server now. 0: yes, and then it says what came of it, soon, with
 *  one of the next two. Else how long it waits before it tries for a turn again. */
int64_t wb_waiter_turn(wb_waiter *waiter, int64_t now);
/** The server was not there, for this reason. */
void wb_waiter_missed(wb_waiter *waiter, const wb_error *error, int64_t now);
/** The server answered: all may ask again. */
void wb_waiter_met(wb_waiter *waiter);
/** One or the other, by the result of asking it, which the error gets, too. */
void wb_waiter_note(wb_waiter *waiter, int result, wb_error *error, int64_t now);
/** It waits no longer, and nobody knows about the server: its thread ends. */
void wb_waiter_leave(wb_waiter *waiter);

/** Whether somebody waits for it. */
int wb_dependency_is_away(wb_dependency *d);
/** Log that it is away, or back, if that is news; and now and then that it still is. One thread,
 *  a few times a second: what passes sooner is not told at all. */
void wb_dependency_tell(wb_dependency *d, const char *endpoint, int64_t now);

#endif
