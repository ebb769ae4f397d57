/* SPDX-License-Identifier: Apache-2.0
 *
 * The last hour of each endpoint, for small plots: a ring of fixed size. What happened in a step, and how it was at its end.
 *
 * Threads: the main thread notes, any thread reads; a lock is held while a sample is written, or all are copied to JSON.
 */
#ifndef WB_CONSOLE_HISTORY_H
#define WB_CONSOLE_HISTORY_H

#include <jansson.h>
#include <pthread.h>

#include "core/metrics/metrics.h"

#define WB_HISTORY_STEP (10 * INT64_C(1000000000))
#define WB_HISTORY_SAMPLES 360

/** A step of an endpoint. */
typedef struct wb_sample {
    float handled, failed; /* a second */
    float critical_mean, critical_high; /* seconds; the second is a bound that 95 of 100 do not exceed. -1: nothing was handled */
    float lag;     /* seconds: age of the oldest pending row */
    float pending; /* rows */
} wb_sample;

typedef struct wb_history wb_history;

/** As many endpoints as the overview has. */
wb_history *wb_history_make(size_t count);
void wb_history_free(wb_history *history);
/** Note a sample if a step is over, at this time (monotonic). Main thread. */
void wb_history_look(wb_history *history, const wb_overview *overview, int64_t now);
/** {"step_seconds", "samples", "endpoints": [{"name", "handled": [...], ...}]}, oldest first; the endpoints' names are given. */
json_t *wb_history_json(wb_history *history, const wb_overview *overview);

#endif
