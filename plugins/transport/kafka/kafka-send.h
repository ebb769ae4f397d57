/* SPDX-License-Identifier: Apache-2.0
 *
 * The sending half of a session: one window at a time, through an idempotent producer that all
 * sessions of a process share (kafka-outlet.c), or through one of its own where there are transactions.
 *
 * Only the session's worker uses it. Deliveries are reported by whichever worker serves them, with the
 * outlet's lock, which guards what they change: the slots that are on their way, and what is said to
 * be guarded.
 */
#ifndef WB_KAFKA_SEND_H
#define WB_KAFKA_SEND_H

#include "plugins/transport/kafka/kafka-client.h"
#include "plugins/transport/kafka/kafka-destinations.h"
#include "plugins/transport/kafka/kafka-outlet.h"
#include "plugins/transport/kafka/kafka-refusals.h"

/** A record of an event that goes to several topics: which event's, and whether it is that for a base.
 *  Those of one stand together in the window. */
typedef struct wb_kafka_record {
    size_t event;
    int is_base;
} wb_kafka_record;

/** One operation of a window. */
typedef struct wb_kafka_slot {
    wb_operation *operation;
    struct wb_kafka_producer *producer;
    const wb_kafka_record *record; /* NULL: it is by itself */
    char topic[WB_KAFKA_TOPIC_SIZE];
    int outstanding; /* produced, neither reported nor given up; guarded */
    int again;       /* refused with others in one request: nobody knows for which */
    int settled;     /* its result is final */
    char *reason;    /* allocated with the first rejection; the operation points to it */
} wb_kafka_slot;

typedef struct wb_kafka_producer {
    wb_transport *transport;
    int slot; /* of its name; -1: none */
    wb_kafka_outlet *outlet;
    wb_kafka_client *client; /* the outlet's */
    wb_kafka_waiter waiter;
    wb_kafka_destinations destinations;
    wb_kafka_failure failure; /* it is of no more use */
    const char *name; /* of transactions, the session's; NULL: none */
    int has_transactions;
    int in_transaction;
    int is_spoiled; /* the broker refused something in the open transaction */
    const wb_kafka_record *records; /* of the next window's operations, or NULL */
    /* the window */
    wb_kafka_slot *slots;
    size_t count, capacity;
    size_t outstanding; /* guarded, like the next */
    size_t reported;
    int alone; /* what is produced now is alone in its request, if no other window came in between */
    unsigned mixes; /* of the outlet, when the window began; guarded */
    int half_passed; /* guarded, like the next */
    int is_silent; /* the last window was not confirmed in time */
    int was_purged; /* what others have on its way was not, which ended this one, too */
    int in_doubt; /* a delivery's outcome is unknown */
    int has_orphans; /* slots that were given up: the outlet keeps them; guarded */
    wb_kafka_slot *suspect; /* the one that ended the transaction, if one did */
    wb_kafka_failure delivery_failure; /* why one was not delivered, other than refused */
    /* transactions */
    wb_kafka_refusals refusals;
    int64_t careful_until; /* operations are sent one by one */
} wb_kafka_producer;

/** Start a producer; with `name`, one of transactions under that name.
 *  @return WB_OK, or a result with `error` filled and nothing left. */
int wb_kafka_producer_open(wb_kafka_producer *producer, wb_transport *transport, const char *name,
                           wb_error *error);
/** The same one anew, without what it was in the middle of. It has to take its transactions
 *  over again. @return WB_OK, or producer->failure.result. */
int wb_kafka_producer_renew(wb_kafka_producer *producer, wb_error *error);
/** Also of one that is all zero. */
void wb_kafka_producer_close(wb_kafka_producer *producer);
int wb_kafka_producer_is_open(const wb_kafka_producer *producer);

/** What the open transaction fell for, so that it can only be rolled back; NO_ERROR when it did
 *  not, or there is none. */
rd_kafka_resp_err_t wb_kafka_producer_broken(const wb_kafka_producer *producer, char *text,
                                             size_t size);

/** After a window that was not confirmed in time: send through a new outlet. Otherwise, and without a
 *  producer, nothing. @return WB_OK, or producer->failure.result. */
int wb_kafka_producer_follow(wb_kafka_producer *producer);

/** wb_transport_ops.send. Where the producer's `records` are set, a base whose topic is not there, and
 *  cannot be made, is passed over; and what is refused before anything was sent is refused with all
 *  records of its event. */
int wb_kafka_producer_send(wb_kafka_producer *producer, wb_operation *const *operations,
                           size_t count, int64_t deadline, wb_error *error);

/* ---- kafka-window.c ---- */

/** None of them is sent: `result`. */
void wb_kafka_window_unsend(wb_operation *const *operations, size_t count, int result);
/** @return 0 when memory is out. */
int wb_kafka_window_begin(wb_kafka_producer *producer, wb_operation *const *operations,
                          size_t count);
size_t wb_kafka_window_unsettled(const wb_kafka_producer *producer);

/** Refuse an operation for good; in words of the code, or in others. */
void wb_kafka_slot_reject(wb_kafka_slot *slot, rd_kafka_resp_err_t code);
void wb_kafka_slot_confirm(wb_kafka_slot *slot);
void wb_kafka_slot_refuse(wb_kafka_slot *slot, int cause, const char *format, ...) WB_PRINTF(3, 4);
/** The broker refused it; inside a transaction it is not sent again soon. */
void wb_kafka_window_blame(wb_kafka_slot *slot, rd_kafka_resp_err_t code);

void wb_kafka_window_free(wb_kafka_producer *producer);
/** It is on its way through the producer's outlet. */
void wb_kafka_window_enter(wb_kafka_producer *producer);
/** It is over: slots that are still on their way are in doubt, and given up. */
void wb_kafka_window_end(wb_kafka_producer *producer);

/** librdkafka's callback. @locality a worker that serves deliveries */
void wb_kafka_on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *report, void *opaque);

#endif
