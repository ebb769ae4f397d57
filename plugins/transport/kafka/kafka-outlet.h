/* SPDX-License-Identifier: Apache-2.0
 *
 * The client that sends: one for all sessions of a process, or one of a session's own where there
 * are transactions. Windows of several workers are on their way at a time; deliveries are reported
 * for all of them in one place, and one of the workers that wait serves them for all.
 *
 * The lock guards everything here but what is said to be constant, and of each producer that uses it
 * what deliveries change.
 */
#ifndef WB_KAFKA_OUTLET_H
#define WB_KAFKA_OUTLET_H

#include "plugins/transport/kafka/kafka-client.h"
#include "plugins/transport/kafka/kafka-share.h"

/** A worker that waits for deliveries. */
typedef struct wb_kafka_waiter {
    struct wb_kafka_waiter *next;
    pthread_cond_t changed;
} wb_kafka_waiter;

typedef struct wb_kafka_outlet {
    wb_kafka_shared shared; /* first */
    wb_transport *transport; /* constant */
    wb_kafka_client *client; /* constant */
    pthread_mutex_t lock;
    wb_kafka_waiter *serving; /* serves deliveries; NULL: nobody */
    wb_kafka_waiter *waiting; /* the others */
    size_t windows;           /* on their way */
    unsigned mixes;           /* how often one began while others were on their way */
    int is_over;              /* no window begins with it any more */
    int is_purged;            /* nor goes on */
    void **orphans;           /* what late deliveries may still point to */
    size_t orphan_count;
} wb_kafka_outlet;

/** Connect. `name` is that of transactions, or NULL. @return NULL with `failure` filled. */
wb_kafka_outlet *wb_kafka_outlet_open(wb_transport *transport, const char *name,
                                      wb_kafka_failure *failure);
/** What is on its way is purged. NULL does nothing. */
void wb_kafka_outlet_close(wb_kafka_outlet *outlet);

/** The process's, connected. @return NULL with `failure` filled. */
wb_kafka_outlet *wb_kafka_outlet_take(wb_transport *transport, wb_kafka_failure *failure);
void wb_kafka_outlet_give_back(wb_kafka_outlet *outlet);

/** Nothing new is sent with it. */
void wb_kafka_outlet_end(wb_kafka_outlet *outlet);
/** Whether something new may be. */
int wb_kafka_outlet_is_usable(wb_kafka_outlet *outlet);

void wb_kafka_waiter_init(wb_kafka_waiter *waiter);
void wb_kafka_waiter_destroy(wb_kafka_waiter *waiter);

/** Serve deliveries, or wait until somebody has: for so long, or until wb_kafka_outlet_wake().
 *  @locks lock held, released meanwhile */
void wb_kafka_outlet_serve(wb_kafka_outlet *outlet, wb_kafka_waiter *waiter, int milliseconds);
/** All that it waits for is reported. @locality whoever serves @locks lock held */
void wb_kafka_outlet_wake(wb_kafka_outlet *outlet, wb_kafka_waiter *waiter);
/** Memory from malloc() that late deliveries may point to: freed when none can come. */
void wb_kafka_outlet_adopt(wb_kafka_outlet *outlet, void *orphan);

#endif
