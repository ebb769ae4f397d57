/* SPDX-License-Identifier: Apache-2.0
 *
 * What was found empty and need not be looked through again.
 *
 * A deleted row stays in its indexes as long as a transaction runs that could see it: a backup or a
 * forgotten session of some hours. Who looks for the oldest row, as sweep and clean-up do, passes
 * over all that was deleted since, each time again. So a range in which nothing was left is
 * remembered, and the next look starts behind it.
 *
 * Something may turn up in there all the same: a transaction that took long to commit, a record
 * whose operations were pending. So a gap holds for a while only: long enough that looking through
 * it again takes a twentieth of the time, and not at all if it was no trouble. One slow look may
 * be the machine's, that stood still for a moment; a second one after it is the range's.
 */
#ifndef WB_COMMON_SQL_GAP_H
#define WB_COMMON_SQL_GAP_H

#include <pthread.h>
#include <stdint.h>

/** Shared by all sessions of an endpoint's outbox. */
typedef struct wb_sql_gap {
    pthread_mutex_t lock;
    uint64_t low;  /* the gap's first number */
    uint64_t high; /* the first behind it */
    int64_t until; /* it holds so long, by the host's monotonic clock; the past: there is none */
    int64_t rest;  /* the same, between two rounds of steps */
    int64_t cost;  /* how long looking through it took */
    uint64_t slow; /* where a look began that was slow: the dearest of late */
    int64_t slow_cost;
} wb_sql_gap;

/** A look, or a step of several. Times are the host's, in nanoseconds. */
typedef struct wb_sql_look {
    uint64_t from;    /* the lowest number of interest */
    uint64_t start;   /* where it began, because of the gap */
    uint64_t reached; /* below this nothing is left from `start` on */
    int64_t began;
    int64_t ended;
    int goes_on; /* another step follows */
} wb_sql_look;

void wb_sql_gap_init(wb_sql_gap *gap);
void wb_sql_gap_free(wb_sql_gap *gap);

/** Begin a look: fills all but `reached`, `ended` and `goes_on`. */
wb_sql_look wb_sql_gap_begin(wb_sql_gap *gap, uint64_t from, int64_t now);
/** Whether there is a gap now, and where: from `low` on and below `high`. */
int wb_sql_gap_holds(wb_sql_gap *gap, int64_t now, uint64_t *ret_low, uint64_t *ret_high);
/** Take in what it found. */
void wb_sql_gap_end(wb_sql_gap *gap, const wb_sql_look *look);

#endif
