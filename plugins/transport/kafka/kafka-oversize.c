/* SPDX-License-Identifier: Apache-2.0
 *
 * An answer larger than receive.message.max.bytes ends the connection, again and again: the
 * partition of the message in it stands still. librdkafka says neither which nor where. So each
 * partition is read from where we are by a client of its own, until that one meets the same
 * end; what it reads is not kept.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>

#include "plugins/transport/kafka/kafka-conf.h"
#include "plugins/transport/kafka/kafka-consumer.h"

#define SECOND INT64_C(1000000000)
/* The line comes again as long as the partition stands still. */
#define PAUSE (60 * SECOND)
/* Longest look at one partition; at all of them it is drain_max, since membership ends when
 * polling stops for minutes. */
#define LOOK_MAX (5 * SECOND)
#define LOOKS_MAX 64

typedef struct place {
    char topic[WB_KAFKA_TOPIC_SIZE];
    int32_t partition;
    int64_t offset;
} place;

/* ---- looking --------------------------------------------------------------------- */

static wb_kafka_client *start_probe(const wb_kafka_consumer *consumer)
{
    wb_kafka_failure ignored = { 0 };
    rd_kafka_conf_t *conf =
        wb_kafka_conf_make(consumer->transport, WB_KAFKA_ROLE_CONSUMER, NULL, NULL);
    if (!conf)
        return NULL;
    wb_kafka_client *probe =
        wb_kafka_client_start(consumer->transport, RD_KAFKA_CONSUMER, conf, NULL, &ignored);
    if (probe)
        (void)rd_kafka_poll_set_consumer(probe->rk);
    return probe;
}

/* Read on to the end of the partition, or to what cannot be read. @return its size, or 0;
 * `at` is where it is. */
static int64_t read_on(wb_kafka_client *probe, place *at, int64_t deadline)
{
    int64_t limit, size = 0;
    int ended = 0;
    while (!size && !ended && wb_kafka_until(probe->transport, deadline)) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(probe->rk, 100);
        if (message && !message->err)
            at->offset = message->offset + 1;
        ended = message && message->err;
        if (message)
            rd_kafka_message_destroy(message);
        size = wb_kafka_client_take_oversize(probe, &limit);
    }
    return size;
}

static int64_t look_at(const wb_kafka_consumer *consumer, place *at, int64_t deadline)
{
    int64_t size = 0;
    wb_kafka_client *probe = start_probe(consumer);
    if (!probe)
        return 0;
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, at->topic, at->partition)->offset = at->offset;
    if (rd_kafka_assign(probe->rk, list) == RD_KAFKA_RESP_ERR_NO_ERROR)
        size = read_on(probe, at, deadline);
    rd_kafka_topic_partition_list_destroy(list);
    (void)rd_kafka_assign(probe->rk, NULL);
    wb_kafka_client_end(probe);
    return size;
}

/* ---- saying ---------------------------------------------------------------------- */

static void log_place(const wb_kafka_consumer *consumer, const place *at, int64_t size,
                      int64_t limit)
{
    const wb_host *host = consumer->transport->host;
    char partition[16], offset[24], bytes[24], most[24];
    (void)snprintf(partition, sizeof partition, "%" PRId32, at->partition);
    (void)snprintf(offset, sizeof offset, "%" PRId64, at->offset);
    (void)snprintf(bytes, sizeof bytes, "%" PRId64, size);
    (void)snprintf(most, sizeof most, "%" PRId64, limit);
    wb_field fields[] = { { "topic", at->topic },
                          { "partition", partition },
                          { "offset", offset },
                          { "bytes", bytes },
                          { "limit", most } };
    host->log(host, WB_LOG_ERROR,
              "a partition stands still: the message there is larger than can be received; set "
              "properties = [ \"receive.message.max.bytes=SIZE\" ] to more than its bytes, or delete "
              "the records up to it (kafka-delete-records)",
              fields, 5);
}

/* The poll thread alone changes what is ours, so nothing is lost in between. */
static size_t list_places(wb_kafka_consumer *consumer, place places[LOOKS_MAX])
{
    size_t count = 0;
    (void)pthread_mutex_lock(&consumer->lock);
    for (wb_kafka_partition *p = consumer->partitions; p && count < LOOKS_MAX; p = p->next) {
        if (p->lost)
            continue;
        (void)snprintf(places[count].topic, sizeof places[count].topic, "%s", p->topic);
        places[count].partition = p->number;
        places[count++].offset = p->offsets.next;
    }
    (void)pthread_mutex_unlock(&consumer->lock);
    return count;
}

void wb_kafka_consumer_follow_oversize(wb_kafka_consumer *consumer)
{
    const wb_host *host = consumer->transport->host;
    int64_t limit, now = host->now(), latest = now + consumer->drain_max;
    place places[LOOKS_MAX];
    if (!wb_kafka_client_take_oversize(consumer->client, &limit) || now < consumer->oversize_next)
        return;
    consumer->oversize_next = now + PAUSE;
    size_t count = list_places(consumer, places);
    for (size_t i = 0; i < count && !atomic_load(&consumer->stop) && host->now() < latest; i++) {
        int64_t enough = host->now() + LOOK_MAX;
        int64_t size = look_at(consumer, &places[i], enough < latest ? enough : latest);
        if (size)
            log_place(consumer, &places[i], size, limit);
    }
}
