/* SPDX-License-Identifier: Apache-2.0
 *
 * The relay of an endpoint: one thread with sessions of its own that looks for messages programs
 * wrote in SQL, sends them and removes them. Where the SQL interface is not installed it looks for
 * that now and then, and holds no connection.
 */
#ifndef WB_WRITTEN_RELAY_H
#define WB_WRITTEN_RELAY_H

#include <pthread.h>

#include "core/base/alarm.h"
#include "core/written/lot.h"

typedef struct wb_written_relay {
    wb_pipeline *pipeline;
    unsigned retries; /* of a refused message, before it goes to the error queue */

    pthread_t thread;
    wb_alarm wake;
    int started;
    atomic_int ended; /* the thread is about to return */
    _Atomic int64_t found; /* when there was something to send last (monotonic); 0: not yet */

    /* The thread's own. */
    wb_written_lot lot;
    wb_outlet outlet;
    wb_storage_session *storage;
    wb_waiter broker, database;
    int is_installed;
    int has_turn;
    unsigned failures; /* rounds in a row */
    wb_written_looks looks;
} wb_written_relay;

/** `pipeline` and `retries` are set. @return 0 or errno. */
int wb_written_relay_start(wb_written_relay *relay);
/** pipeline->stop was set: look at it now. Any thread. */
void wb_written_relay_wake(wb_written_relay *relay);
/** Whether its thread is about to return, or was never started. Any thread. */
int wb_written_relay_has_ended(const wb_written_relay *relay);
/** pipeline->stop is set before; wakes and joins the thread. */
void wb_written_relay_stop(wb_written_relay *relay);

#endif
