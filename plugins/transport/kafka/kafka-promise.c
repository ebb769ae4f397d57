/* SPDX-License-Identifier: Apache-2.0
 *
 * The offsets of a transaction. They are sent when it begins, as they will be if all in hand
 * is acknowledged, and again at its end where that was not so: of two for one partition the
 * later one counts.
 *
 * A plain commit that reaches the coordinator between them and the end of the transaction
 * would win over both. So none is on its way when a transaction begins, and while one is open
 * only partitions that are taken away get one: with a promise broken, it does not commit. While
 * it is being committed there is none at all, or the next owner would begin where it began.
 */
#include "config.h"

#include "plugins/transport/kafka/kafka-consumer.h"

static void mark_in_hand(wb_kafka_receiver *receiver, int done)
{
    for (const wb_kafka_message *m = receiver->in_hand.first; m; m = m->next)
        if (!m->settled)
            wb_kafka_offsets_set(&m->partition->offsets, m->raw->offset, done);
}

/* What differs from what is promised, or else committed, already. */
static rd_kafka_topic_partition_list_t *list_differences(const wb_kafka_consumer *consumer)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(8);
    for (const wb_kafka_partition *p = consumer->partitions; p; p = p->next) {
        int64_t low = wb_kafka_offsets_low(&p->offsets);
        int64_t known = p->promised == WB_KAFKA_NOT_PROMISED ? p->committed : p->promised;
        if (!p->lost && low != known)
            wb_kafka_commit_list_add(list, p, low, wb_kafka_offsets_low_note(&p->offsets));
    }
    return list;
}

static void keep_promises(wb_kafka_consumer *consumer, const rd_kafka_topic_partition_list_t *list)
{
    for (int i = 0; i < list->cnt; i++)
        wb_kafka_partition_find(consumer, list->elems[i].topic, list->elems[i].partition)
            ->promised = list->elems[i].offset;
}

rd_kafka_topic_partition_list_t *wb_kafka_receiver_promise(wb_kafka_receiver *receiver)
{
    wb_kafka_consumer *consumer = receiver->consumer;
    (void)pthread_mutex_lock(&consumer->lock);
    consumer->promise_broken = 0;
    for (wb_kafka_partition *p = consumer->partitions; p; p = p->next)
        p->promised = WB_KAFKA_NOT_PROMISED;
    mark_in_hand(receiver, 1);
    rd_kafka_topic_partition_list_t *list = list_differences(consumer);
    mark_in_hand(receiver, 0);
    keep_promises(consumer, list);
    (void)pthread_mutex_unlock(&consumer->lock);
    return list;
}

static int holds_lost(const wb_kafka_receiver *receiver)
{
    for (const wb_kafka_message *m = receiver->in_hand.first; m; m = m->next)
        if (m->settled && m->partition->lost)
            return 1;
    return 0;
}

rd_kafka_topic_partition_list_t *wb_kafka_receiver_progress(wb_kafka_receiver *receiver)
{
    wb_kafka_consumer *consumer = receiver->consumer;
    (void)pthread_mutex_lock(&consumer->lock);
    int broken = consumer->promise_broken || consumer->ends || holds_lost(receiver);
    rd_kafka_topic_partition_list_t *list = broken ? NULL : list_differences(consumer);
    consumer->ending = !broken;
    (void)pthread_mutex_unlock(&consumer->lock);
    return list;
}
