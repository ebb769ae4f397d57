/* SPDX-License-Identifier: Apache-2.0
 *
 * The housekeeper of an endpoint's outbox: a thread that, once each interval, connects, sweeps
 * (sweeper.h), cleans up (cleaner.h) and disconnects. Several instances may run: the
 * persistence lets one work at a time.
 */
#ifndef WB_ENDPOINT_HOUSEKEEPER_H
#define WB_ENDPOINT_HOUSEKEEPER_H

#include <pthread.h>

#include "core/base/alarm.h"
#include "core/endpoint/cleaner.h"
#include "core/endpoint/gauge.h"
#include "core/endpoint/sweeper.h"
#include "core/pipeline/pipeline.h"

typedef struct wb_housekeeper {
    wb_pipeline *pipeline;
    int64_t interval;  /* ns between rounds */
    int64_t retention; /* ns: how long deduplication records are kept; 0: somebody else cleans up */

    pthread_t thread;
    wb_alarm wake;
    wb_waiter database; /* where nothing is to be handled nobody else finds out that it is away */
    int started;
    atomic_int ended; /* the thread is about to return */
    wb_sweep_memory memory;
    wb_cleaning cleaning;
    wb_gauge gauge; /* what stays pending; any thread */
} wb_housekeeper;

/** `interval` and `retention` as above. The pipeline lives longer. */
void wb_housekeeper_init(wb_housekeeper *keeper, wb_pipeline *pipeline, int64_t interval, int64_t retention);
/** @return 0 or errno. */
int wb_housekeeper_start(wb_housekeeper *keeper);
/** One round, on the caller's thread: for those who decide themselves when. A failing round never
 *  stops the endpoint: the next one tries again. */
void wb_housekeeper_round(wb_housekeeper *keeper);
/** pipeline->stop was set: look at it now. Any thread. */
void wb_housekeeper_wake(wb_housekeeper *keeper);
/** Whether its thread is about to return, or was never started. Any thread. */
int wb_housekeeper_has_ended(const wb_housekeeper *keeper);
/** pipeline->stop is set before; wakes and joins the thread. */
void wb_housekeeper_stop(wb_housekeeper *keeper);

#endif
