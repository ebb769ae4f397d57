/* SPDX-License-Identifier: Apache-2.0
 *
 * A handler that takes long, seen from outside: its worker says when a call begins and ends; another thread, which
 * looks after the workers a few times a second, says which message it has and for how long, and when
 * a time limit is over. What a call costs for it are a few stores and one load.
 *
 *   slow_handler         a line then, and again whenever twice as long has passed
 *   handler_time_limit   a line; the service manager's watchdog is fed no longer (core/cli/pulse.h)
 *   handler_timeout      the process is to end: nothing takes a hanging thread back
 *
 * A process that ends so is to its message what a handler that crashes is: it comes again, and recoverability counts
 * (core/recover/attempts.h). So that no neighbour is counted along, who ends the process lets the other workers finish
 * first what they have in hand (core/cli/overdue.h).
 */
#ifndef WB_PIPELINE_OVERTIME_H
#define WB_PIPELINE_OVERTIME_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "core/pipeline/item.h"
#include "core/pipeline/pipeline.h"

typedef struct wb_overtime {
    /* The worker's. */
    _Atomic int64_t since;   /* a handler runs, from then on (monotonic); 0: none does */
    const wb_item *first;    /* of the messages that it has */
    const char *type;        /* which that is handled as */
    size_t count;            /* how many */
    atomic_int is_looked_at; /* who looks reads the three: the call must not end meanwhile */
    pthread_mutex_t looking;

    /* The looking thread's. */
    int64_t seen; /* the call that the next four are about: its `since` */
    int64_t next; /* ns: so long it has taken when the next line is due; 0: none is */
    int is_told;  /* a line was written */
    int is_beyond; /* the line about handler_time_limit was */
    int is_over;   /* the line about handler_timeout was */
} wb_overtime;

void wb_overtime_init(wb_overtime *o);
void wb_overtime_free(wb_overtime *o);

/** A call begins, at this time, with these messages. The worker's thread, as the next one. */
void wb_overtime_begin(wb_overtime *o, wb_item *const *items, size_t count, int64_t now);
/** It has returned, or ended its thread. */
void wb_overtime_end(wb_overtime *o);

/** Since when a handler runs (monotonic); 0: none does. Any thread. */
static inline int64_t wb_overtime_since(const wb_overtime *o)
{
    return atomic_load(&o->since);
}

/** Whether one runs beyond handler_time_limit. Any thread. */
int wb_overtime_is_beyond(const wb_overtime *o, const wb_pipeline *p, int64_t now);
/** Whether one runs of which was told that it is beyond handler_timeout: nothing ends without its line. The looking thread. */
int wb_overtime_is_over(const wb_overtime *o);

/** Write the lines that are due, of the worker with that number. One thread. */
void wb_overtime_look(wb_overtime *o, const wb_pipeline *p, unsigned number, int64_t now);

#endif
