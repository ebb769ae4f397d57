/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/kafka/kafka-done.h"

void wb_kafka_done_init(wb_kafka_done *done)
{
    (void)pthread_mutex_init(&done->lock, NULL);
}

void wb_kafka_done_destroy(wb_kafka_done *done)
{
    (void)pthread_mutex_destroy(&done->lock);
}

/* @locks lock held @return its place, or NULL */
static uint64_t *find(wb_kafka_done *done, uint64_t record)
{
    for (size_t i = 0; done->count && record && i < WB_KAFKA_DONE; i++)
        if (done->records[i] == record)
            return &done->records[i];
    return NULL;
}

int wb_kafka_done_has(wb_kafka_done *done, uint64_t record)
{
    (void)pthread_mutex_lock(&done->lock);
    int answer = find(done, record) != NULL;
    (void)pthread_mutex_unlock(&done->lock);
    return answer;
}

void wb_kafka_done_add(wb_kafka_done *done, uint64_t record)
{
    (void)pthread_mutex_lock(&done->lock);
    if (record && !find(done, record)) {
        uint64_t *place = &done->records[done->next++ % WB_KAFKA_DONE];
        done->count += *place == 0;
        *place = record;
    }
    (void)pthread_mutex_unlock(&done->lock);
}

void wb_kafka_done_drop(wb_kafka_done *done, uint64_t record)
{
    (void)pthread_mutex_lock(&done->lock);
    uint64_t *place = find(done, record);
    if (place) {
        *place = 0;
        done->count--;
    }
    (void)pthread_mutex_unlock(&done->lock);
}
