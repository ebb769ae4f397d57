/* SPDX-License-Identifier: Apache-2.0
 *
 * librdkafka before 2.2 looks once a second whether a queue that was full has room again: a worker
 * that is quicker than that would have nothing to do meanwhile. It looks whenever something happens at
 * the connection to the partition's leader. So when a lane has run empty that may have been full, the
 * leaders are asked something.
 */
#include "config.h"

#include <sys/eventfd.h>

#include "plugins/transport/kafka/kafka-conf.h"
#include "plugins/transport/kafka/kafka-consumer.h"

/* Whatever it is that is answered: the poll thread waits no longer for it. */
#define ANSWER_WAIT 200

void wb_kafka_lane_ran_empty(wb_kafka_consumer *consumer, wb_kafka_lane *lane)
{
    if (lane->taken < (size_t)wb_kafka_conf_share_of_buffer(consumer->transport))
        return;
    lane->taken = 0;
    consumer->is_hungry = 1;
    (void)eventfd_write(consumer->poll_wake, 1);
}

static rd_kafka_topic_partition_list_t *list_unread(wb_kafka_consumer *consumer)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(8);
    (void)pthread_mutex_lock(&consumer->lock);
    for (const wb_kafka_partition *p = consumer->partitions; p && consumer->is_hungry; p = p->next)
        if (!p->lost && !p->paused && !p->met_end)
            rd_kafka_topic_partition_list_add(list, p->topic, p->number)->offset =
                RD_KAFKA_OFFSET_BEGINNING;
    consumer->is_hungry = 0;
    (void)pthread_mutex_unlock(&consumer->lock);
    return list;
}

void wb_kafka_consumer_follow_hunger(wb_kafka_consumer *consumer)
{
    rd_kafka_topic_partition_list_t *list = list_unread(consumer);
    if (list->cnt)
        (void)rd_kafka_offsets_for_times(consumer->client->rk, list, ANSWER_WAIT);
    rd_kafka_topic_partition_list_destroy(list);
}
