/* SPDX-License-Identifier: Apache-2.0
 *
 * The housekeeper of an endpoint's outbox: a thread that, once each interval, dispatches
 * pending operations whose message never came back, and deletes deduplication records that
 * are older than the retention, in small paced steps. It connects for each round and
 * disconnects after it. Several instances may run: the persistence lets one work at a time.
 */
#ifndef WB_ENDPOINT_HOUSEKEEPER_H
#define WB_ENDPOINT_HOUSEKEEPER_H

#include <stdatomic.h>

#include "core/pipeline/pipeline.h"

typedef struct wb_housekeeper {
    wb_pipeline *pipeline;
    int64_t interval;    /* ns between rounds */
    int64_t sweep_after; /* ns: younger pending rows are left alone */
    int64_t retention;   /* ns: how long deduplication records are kept */

    pthread_t thread;
    atomic_int running; /* from its start until its thread is about to return */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    uint64_t *seen; /* pending rows the last round saw: only those seen twice are swept */
    size_t seen_count;
    size_t stuck; /* rows the last round could not dispatch completely */
} wb_housekeeper;

/** pipeline, interval, sweep_after and retention are set by the caller. @return 0 or errno. */
int wb_housekeeper_start(wb_housekeeper *keeper);
/** One round, on the caller's thread: for those who decide themselves when. */
void wb_housekeeper_round(wb_housekeeper *keeper);
/** Wake it where it waits for its next round, so that it sees pipeline->stop. */
void wb_housekeeper_wake(wb_housekeeper *keeper);
/** Whether it was never started, or its thread is about to return. */
int wb_housekeeper_has_ended(const wb_housekeeper *keeper);
/** pipeline->stop is set before; wakes and joins the thread. */
void wb_housekeeper_stop(wb_housekeeper *keeper);

#endif
