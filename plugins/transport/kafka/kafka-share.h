/* SPDX-License-Identifier: Apache-2.0
 *
 * What all sessions of a process use together, from the first that needs it to the last. One
 * session makes it, or ends it, and the others wait for that; what failed for one while others
 * waited failed for these, too. One that is of no more use is replaced by the next session that
 * asks; those that have it keep it until they give it back.
 */
#ifndef WB_KAFKA_SHARE_H
#define WB_KAFKA_SHARE_H

#include <pthread.h>
#include <stddef.h>

#include "plugins/transport/kafka/kafka-map.h"

typedef struct wb_transport wb_transport;

/** The first member of what is shared. */
typedef struct wb_kafka_shared {
    size_t users; /* guarded by the share's lock */
} wb_kafka_shared;

/** All zero but the lock and the condition. */
typedef struct wb_kafka_share {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    wb_kafka_shared *thing; /* NULL: none */
    int is_busy;            /* somebody makes or ends it */
    unsigned attempts;
    wb_kafka_failure failure; /* of the last attempt */
} wb_kafka_share;

/** How it is made and ended; never with the lock of the share. */
typedef struct wb_kafka_share_kind {
    /** @return NULL with `failure` filled. */
    wb_kafka_shared *(*open)(wb_transport *transport, wb_kafka_failure *failure);
    int (*is_usable)(wb_kafka_shared *thing);
    /** It is replaced while others may still use it. */
    void (*retire)(wb_kafka_shared *thing);
    /** Nobody uses it any more. */
    void (*close)(wb_kafka_shared *thing);
} wb_kafka_share_kind;

void wb_kafka_share_init(wb_kafka_share *share);
void wb_kafka_share_destroy(wb_kafka_share *share);

/** Use it, and make it if there is none. @return NULL with `failure` filled. */
wb_kafka_shared *wb_kafka_share_take(wb_kafka_share *share, const wb_kafka_share_kind *kind,
                                     wb_transport *transport, wb_kafka_failure *failure);
void wb_kafka_share_give_back(wb_kafka_share *share, const wb_kafka_share_kind *kind,
                              wb_kafka_shared *thing);

#endif
