/* SPDX-License-Identifier: Apache-2.0
 *
 * The pipeline's data: what all workers of an endpoint share (read-only while they run),
 * and what one worker owns.
 *
 *   receive -> deduplicate+begin -> handle -> store -> commit -> dispatch -> mark -> acknowledge
 *
 * One file a stage; worker.c puts them together. README.md tells the story.
 */
#ifndef WB_PIPELINE_PIPELINE_H
#define WB_PIPELINE_PIPELINE_H

#include <pthread.h>
#include <stdatomic.h>
#include <waybill/sys/persistence.h>
#include <waybill/sys/transport.h>

#include "core/base/arena.h"
#include "core/base/buffer.h"
#include "core/base/error.h"
#include "core/message/operations.h"
#include "core/message/outgoing.h"
#include "core/plugin/handlers.h"
#include "core/recover/recoverability.h"

/** How long a window of sends may wait for its confirmations. */
#define WB_DISPATCH_TIMEOUT (30 * WB_SECOND)

/** One endpoint's pipeline; filled by the endpoint, constant while workers run, but for
 *  `stop`. */
typedef struct wb_pipeline {
    const char *endpoint;
    int mode;   /* WB_MODE_x */
    int outbox; /* deduplicate and store; only with WB_MODE_RECEIVE_ONLY */
    const wb_transport_ops *transport_ops;
    wb_transport *transport;
    const wb_persistence_ops *persistence_ops; /* NULL: the endpoint has no persistence */
    wb_persistence *persistence;
    wb_origin origin;
    const wb_handler_set *handlers;
    wb_recoverability recoverability;
    unsigned batch_max;
    int64_t batch_time; /* ns */
    int64_t body_max;
    /* The highest delivery_count the broker hands out before it drops a message; 0: it never
     * does. */
    uint32_t delivery_limit;

    atomic_int stop; /* set once; workers finish what is in flight */

    /* Held while a suspect is handled: one at a time in a process, so that only the one which
     * ends it has an attempt written down. */
    pthread_mutex_t suspect_lock;
} wb_pipeline;

typedef enum {
    WB_ITEM_READY,     /* to be claimed and handled */
    WB_ITEM_HANDLED,   /* its handler returned WB_OK in this transaction */
    WB_ITEM_KEPT,      /* claimed, not handled: the batch's time was up */
    WB_ITEM_DUPLICATE, /* a record of its id was there first */
    WB_ITEM_FOLLOWER,  /* same id as an earlier message of this batch: shares its fate */
    WB_ITEM_FAILED,    /* on its way to the error queue */
    WB_ITEM_DONE       /* nothing left but to mark and acknowledge */
} wb_item_state;

/** A message in a worker's hands, from receive to acknowledge. */
typedef struct wb_item {
    const wb_incoming *incoming;
    const wb_handler_entry *handler;
    wb_message message;
    wb_item_state state;
    struct wb_item *leader; /* of a follower */
    wb_failure failure;
    int noted; /* a suspect's attempt is written down */
    uint32_t exhausted; /* so many attempts of a suspect were: all it gets */
    uint64_t duplicate_of;
    wb_operation_list operations; /* in the batch's arena */
    uint32_t asked;               /* ordinal of the next operation */
    int absorbed; /* a copy with the same id went to the error queue: nothing left to do */
} wb_item;

/** One worker: a thread, its sessions, its messages. Nothing of it is shared. */
typedef struct wb_worker {
    wb_pipeline *pipeline;
    unsigned number;
    pthread_t thread;
    wb_error error; /* of the step that failed last */
    int transport_broken; /* the session must be opened again */
    int storage_broken;

    wb_transport_session *transport;
    wb_transport_session *immediate; /* for immediate sends beside a transport transaction */
    wb_storage_session *storage;
    pthread_mutex_t transport_lock; /* guards `transport` against interrupt from outside */

    /* Received and not finished, in order of receipt. The batch is the first `batch_size`. */
    wb_item *held;
    size_t held_count;
    size_t held_max;
    size_t batch_size;
    int in_transaction; /* the storage session has a transaction open */
    int transaction_ended; /* by a handler */
    int grouped; /* the running batch called a batch handler with several messages */

    uint64_t batch_number;
    wb_claim *claims;        /* one for each READY item of the batch, ascending ids */
    wb_item **claimed;       /* whose they are */
    size_t claim_count;
    wb_arena arena;          /* operations of the running batch */
    wb_arena recovered;      /* operations loaded from pending rows */
    wb_buffer encoded;
    int stored; /* the batch has a pending row */

    wb_operation **window; /* what is sent together */
    size_t window_count;
    size_t window_max;

    /* Dispatched, to be marked, then acknowledged. */
    wb_mark *marks;
    size_t mark_count;
    size_t mark_max;
    const wb_incoming **settled;
    size_t settled_count;
    size_t settled_max;

    unsigned take;     /* how many messages the next batch takes */
    unsigned solo;     /* how many of the held ones run by themselves */
    unsigned prefetch; /* what the transport session was told */
    int64_t handling_started;
    int64_t handling_spent; /* by the handlers of the batch */
    int64_t pause; /* back-off after a failure; 0 when all is well */
    int gave_up;     /* ended because of w->error; read after join */
    atomic_int ended; /* the thread is about to return */
    int64_t complained; /* when the failure was logged last; 0 when all is well */
} wb_worker;

#endif
