/* SPDX-License-Identifier: Apache-2.0
 *
 * A worker: one thread that runs the pipeline over sessions and messages of its own. Nothing of
 * it is shared, but for what is atomic and `transport`, which has a lock.
 *
 *   receive -> deduplicate+begin -> handle -> store -> commit -> dispatch -> mark -> acknowledge
 */
#ifndef WB_PIPELINE_WORKER_H
#define WB_PIPELINE_WORKER_H

#include <pthread.h>

#include "core/base/arena.h"
#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/base/thread.h"
#include "core/message/sent.h"
#include "core/pipeline/contexts.h"
#include "core/pipeline/item.h"
#include "core/pipeline/overtime.h"
#include "core/pipeline/pipeline.h"
#include "core/pipeline/window.h"

/** So many messages a worker sets aside (that cannot be moved, that meet a server's trouble)
 *  before it takes no more: they stay unacknowledged. */
#define WB_ASIDE_MAX 10
/** So many control messages of sessions beside them: they are small, and wait for milliseconds. */
#define WB_CONTROLS_ASIDE_MAX 64

/** Ids with the batches that handled them, in memory of their own. */
typedef struct wb_apart_list {
    wb_claim *claims;
    size_t count;
    size_t max;
    wb_arena ids;
} wb_apart_list;

/** Deduplication in another store (apart.h). */
typedef struct wb_apart {
    wb_storage_session *session; /* the store's */
    int is_broken;
    wb_waiter server;
    wb_apart_list done;       /* for the store */
    wb_apart_list remembered; /* the store has it: the record is to go; grouped by batches */
} wb_apart;

typedef struct wb_worker {
    wb_pipeline *pipeline;
    unsigned number;
    pthread_t thread;
    wb_error error;   /* why it gave up; read after join */
    int gave_up;
    atomic_int ended; /* the thread is about to return */
    wb_kept kept;     /* what modules opened for it */
    wb_thread_own own; /* what its thread began with */
    wb_contexts *contexts;

    /* Sessions. `transport` is guarded by the lock against calls from outside. */
    pthread_mutex_t transport_lock;
    wb_transport_session *transport;
    wb_storage_session *storage;
    wb_outlet outlet;
    wb_outlet immediate; /* for immediate sends beside a transport transaction; session NULL: not open */
    int transport_broken; /* must be opened again */
    int storage_broken;
    int storage_lost; /* it was broken when the batch failed, whatever became of it since */
    int storage_used; /* handlers had it since it was opened */
    int storage_lacked; /* the last try to open it met a database or a table that is not there */
    wb_waiter broker, database;
    wb_apart apart;
    int refuses_more; /* the transport was asked for no more messages: the endpoint stops */

    /* In hand: received and not settled, in order of receipt. */
    wb_item *slots; /* held_max of them */
    wb_item **free_slots;
    size_t free_count;
    wb_item **held;
    size_t held_count;
    size_t held_max;
    _Atomic uint64_t in_hand; /* held_count, for who looks from outside */
    wb_tally tally;  /* what it counts */
    int64_t lapped;  /* until when its time was counted */
    wb_sent sent;

    /* The running batch. */
    wb_item **batch; /* some of the held ones */
    size_t batch_size;
    uint64_t batch_number;
    wb_claim *claims;  /* one for each item to handle, ascending ids */
    wb_item **claimed; /* whose they are */
    size_t claim_count;
    int64_t claim_took;   /* until the claim failed; 0: it did not */
    wb_position *positions; /* the partitions of those, as they were before the batch */
    size_t position_count;
    int in_transaction;    /* the storage session has a transaction open */
    int may_have_ended;    /* by a handler: one ran, and the commit has not shown otherwise */
    int transaction_ended; /* by a handler, as check or commit found */
    int storage_distrusted; /* WB_FATAL of a session that handlers had was not believed */
    wb_wish wish;          /* of the handler that was called last, if it failed as it was told to */
    int handler_said;      /* that its message failed, and the transaction was as it must be */
    unsigned turns;        /* calls of handlers that succeeded */
    int grouped;           /* a batch handler got several messages */
    int stored;            /* the batch has a pending row */
    int has_suspect_lock;
    int has_entered; /* wb_suspect_enter() */
    wb_arena arena;     /* operations of the batch */
    wb_arena recovered; /* operations loaded from pending rows */
    wb_buffer encoded;
    wb_window window;

    /* Dispatched, to be marked, then acknowledged. */
    wb_mark *marks;
    size_t mark_count;
    size_t mark_max;
    const wb_incoming **settled;
    size_t settled_count;
    size_t settled_max;
    int64_t hindered; /* since when this session says that it cannot now, and may later (wb_pace_judge_transport()); 0: it can */
    int is_loose;    /* some were acknowledged, and that may not be for good yet */
    uint64_t record; /* of a suspect that is done: it goes when that is so; 0: none */

    /* Pace. */
    unsigned take;     /* how many messages the next batch takes */
    int is_at_ease;    /* the last batch was full, quick and delivered for the first time */
    unsigned prefetch; /* what the transport session was told */
    int64_t *costs;    /* ns of one message, a handler entry each; -1: not known */
    int64_t handling_spent;          /* by the handlers of the batch */
    wb_overtime overtime;            /* whether a handler runs, and for how long */
    _Atomic int64_t beat;            /* when it was last seen to be neither stuck nor in a handler */
    _Atomic int64_t empty_since;     /* it has nothing in hand and receives nothing, from then on (monotonic); 0: not so */
    int64_t released_for;            /* prefetched messages were given away for that one */
    int owes_turn;      /* the last batch was one set aside before: now it is the others' turn */
    int progressed;     /* the cycle got something done */
    int64_t pause;      /* back-off after a failure; 0 when all is well */
    _Atomic int64_t complained; /* when a failure was logged last; 0 when all is well */
    int64_t refusal_told; /* when a missing privilege was, and which: its first words */
    char refusal[200];
} wb_worker;

/** Calls of a server end by their own time limits, of which the longest is five minutes by default.
 *  A worker that is in no handler and has not come round for so long is stuck. */
#define WB_STUCK_AFTER (900 * WB_SECOND)

/** Prepare a worker; no thread, no connection yet. */
void wb_worker_init(wb_worker *w, wb_pipeline *pipeline, unsigned number);
/** Start its thread. @return 0 or an errno. */
int wb_worker_start(wb_worker *w);
/** Wake it where it waits for messages. Any thread; pipeline->stop is set before. */
void wb_worker_interrupt(wb_worker *w);
/** To be called now and then, from any one thread: when its handler takes long, what was
 *  prefetched behind it is given to others, and lines say so (overtime.h). */
void wb_worker_look_after(wb_worker *w);
/** Whether it makes progress at this time (monotonic): it is idle, waits for a server, or is in a
 *  handler within its limit. */
int wb_worker_is_alive(const wb_worker *w, int64_t now);
/** Wait for its thread. w->gave_up and w->error say whether and why it gave up. */
void wb_worker_join(wb_worker *w);
void wb_worker_free(wb_worker *w);

#endif
