/* SPDX-License-Identifier: Apache-2.0
 *
 * The dispatcher: one thread that sends what sessions of this process committed, all that is there in
 * one window of confirmations, and marks it. It is quick, not needed: what it did not send is in the
 * pending table, where the control message's processor and the sweeper find it. So it gives up what it
 * cannot send for a while, and memory it takes has a limit.
 */
#ifndef WB_SESSION_DISPATCHER_H
#define WB_SESSION_DISPATCHER_H

#include <pthread.h>

#include "core/message/ids.h"
#include "core/pipeline/window.h"

/** So many parcels wait here at most; what comes beyond is left to the sweeper. */
#define WB_DISPATCHER_PARCELS_MAX 20000

/** What one session committed: its operations, and the number of its row. */
typedef struct wb_parcel {
    wb_arena arena;
    wb_operation_list operations;
    char id[WB_ID_MAX + 1]; /* the session's */
    size_t id_size;
    size_t size; /* bytes, about */
    uint64_t batch;
    int64_t numbered; /* when the row got its number, from which the sweeper counts; monotonic */
    struct wb_parcel *next;
} wb_parcel;

wb_parcel *wb_parcel_new(void);
/** NULL is allowed. */
void wb_parcel_free(wb_parcel *parcel);

typedef struct wb_dispatcher {
    wb_pipeline *pipeline;
    pthread_t thread;
    atomic_int is_stopping;
    pthread_mutex_t lock; /* guards the next four */
    pthread_cond_t changed;
    wb_parcel *first, *last;
    size_t count, size;
    int is_busy; /* something is in its hands */
    int is_started;

    /* The thread's own. */
    wb_outlet outlet;
    wb_storage_session *storage;
    wb_waiter broker, database;
    wb_parcel *hand; /* what is being sent, in the order of the commits */
    wb_mark *marks;  /* of what is sent */
    size_t mark_count, mark_max;
    wb_window window;
    wb_arena arena;
    wb_buffer bytes;
    int64_t pause;
} wb_dispatcher;

/** @return 0 or errno. */
int wb_dispatcher_start(wb_dispatcher *d, wb_pipeline *pipeline);
/** Take over a parcel. It is dropped when too much waits already. Any thread. */
void wb_dispatcher_give(wb_dispatcher *d, wb_parcel *parcel);
/** Wait so many ns for what is there to leave, then end. */
void wb_dispatcher_stop(wb_dispatcher *d, int64_t patience);

#endif
