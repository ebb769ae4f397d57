/* SPDX-License-Identifier: Apache-2.0
 *
 * Who a session is among all sessions of the endpoint: "<endpoint>.<slot>.<instance>". In the
 * order of these names partitions are given out: the slot comes first, and has four digits, so
 * that all processes have got one before any gets a second.
 *
 * Kafka lets a client that comes back under the same name take the place of the one
 * before: it gets its partitions without waiting for the session timeout
 * (group.instance.id), and ends what the one before left open (transactional.id). For that
 * the name must be the same after a crash, and nobody else's meanwhile. The slot is the
 * first free one in this process. The instance is an option; by default it is the host
 * name and the first number no other process of this host holds. Holding is having bound an
 * abstract Unix socket of that name: the kernel lets go of it when the process ends, however
 * it does.
 */
#ifndef WB_KAFKA_IDENTITY_H
#define WB_KAFKA_IDENTITY_H

#include <pthread.h>
#include <waybill/sys/plugin.h>

#include "plugins/transport/kafka/kafka-options.h"

#define WB_KAFKA_SLOTS 1024
#define WB_KAFKA_NAME_SIZE 256

/** So often may a name be fenced within the time (nanoseconds): a session that was silent for
 *  too long is fenced by its own return, once; twins fence each other for ever. */
#define WB_KAFKA_FENCES 5
#define WB_KAFKA_FENCES_TIME INT64_C(60000000000)

typedef struct wb_kafka_place {
    int taken;
    int fenced; /* since it was taken */
    int64_t fences[WB_KAFKA_FENCES]; /* when, the newest first; 0: never */
} wb_kafka_place;

typedef struct wb_kafka_identity {
    pthread_mutex_t lock;
    int socket; /* -1: none yet, or the instance is configured */
    char instance[WB_KAFKA_INSTANCE_MAX + 1];
    wb_kafka_place slots[WB_KAFKA_SLOTS];
} wb_kafka_identity;

void wb_kafka_identity_init(wb_kafka_identity *identity);
void wb_kafka_identity_destroy(wb_kafka_identity *identity);

/** A small hash of a text. Pure. */
unsigned wb_kafka_hash(const char *text);

/** Take the first free slot. `configured` is the option's value or NULL. Writes the name
 *  of the session, "<endpoint>.<slot>.<instance>". @return the slot, or -1 when there is none. */
int wb_kafka_identity_take(wb_kafka_identity *identity, const char *endpoint,
                           const char *configured, char ret_name[WB_KAFKA_NAME_SIZE]);
/** Somebody of the slot's name has taken the place of its session; told twice, it counts once.
 *  @return whether this can only be a twin. */
int wb_kafka_identity_note_fence(wb_kafka_identity *identity, int slot, int64_t now);
/** Give a slot back; -1 does nothing. */
void wb_kafka_identity_give_back(wb_kafka_identity *identity, int slot);

#endif
