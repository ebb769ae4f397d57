/* SPDX-License-Identifier: Apache-2.0
 *
 * The poller of an endpoint's delayed message store: one thread with sessions of its own. It
 * sleeps until the next message is due, fetches what is due, sends it, removes it.
 */
#ifndef WB_DELAYED_POLLER_H
#define WB_DELAYED_POLLER_H

#include <pthread.h>

#include "core/delayed/lot.h"

typedef struct wb_poller {
    wb_pipeline *pipeline;
    wb_lot_policy policy; /* the owner is made by init */
    /** Nothing is stored any more (another delays now): what waits is sent, seldom looked for, and
     *  a table that is not there is no error, but where something was seen to wait in it. */
    int only_drains;

    pthread_t thread;
    int started;
    atomic_int ended; /* the thread is about to return */
    char owner[WB_DELAYED_OWNER_SIZE];
    wb_lot lot;
    wb_storage_session *storage; /* NULL: not open */
    wb_outlet outlet;            /* session NULL: not open */
    int has_rows;                /* something waited when it looked last */
    int is_told;                 /* that a store which is only drained refuses, by a line */
    int64_t pause_first, pause_longest; /* ns: what follows a round that fails, and the longest where several do */
    wb_waiter database;          /* an idle endpoint's workers do not notice that it is away */
    unsigned failures;           /* rounds in a row that failed */
    unsigned absences;           /* of these, the last ones: a store that is only drained was not there */
} wb_poller;

/** pipeline, policy and only_drains are set by the caller. */
void wb_poller_init(wb_poller *poller);
/** Closes sessions; what was fetched is given back as far as the database can be asked. */
void wb_poller_finish(wb_poller *poller);

/** Send what is due now. On the caller's thread: for those who decide themselves when.
 *  *ret_sleep says for how long there is nothing to do, unless something is stored that is due
 *  before *ret_until (the database's time). Never fails: it is tried again after the sleep. */
void wb_poller_round(wb_poller *poller, int64_t *ret_until, int64_t *ret_sleep);

/** Start its thread; init is called by it. @return 0 or errno. */
int wb_poller_start(wb_poller *poller);
/** Whether its thread is about to return, or was never started. Any thread. */
int wb_poller_has_ended(const wb_poller *poller);
/** pipeline->stop is set before; wakes and joins the thread. */
void wb_poller_stop(wb_poller *poller);

#endif
