/* SPDX-License-Identifier: Apache-2.0
 *
 * Kafka for the hand-written loops: an idempotent producer that is flushed once a batch, and
 * offsets committed without waiting, after the mark: a redelivery is a duplicate by its
 * deduplication row.
 */
#include "config.h"

#include "tests/bench/kafka-link.h"
#include "tests/bench/loop-link.h"

#include <stdlib.h>
#include <string.h>

struct bench_link {
    rd_kafka_t *consumer;
    struct bench_producer producer;
    rd_kafka_message_t **incoming;
    size_t incoming_count;
    struct bench_kafka_position received, done;
};

struct bench_link *bench_link_open(const struct bench_link_settings *settings)
{
    struct bench_link *link = bench_zeroed(sizeof *link);
    bench_producer_open(&link->producer, NULL);
    if (!settings->input)
        return link;
    link->incoming = bench_zeroed(settings->batch_max * sizeof(rd_kafka_message_t *));
    link->consumer = bench_kafka_consumer(settings->input);
    return link;
}

static void free_position(struct bench_kafka_position *position)
{
    if (position->offsets)
        rd_kafka_topic_partition_list_destroy(position->offsets);
}

void bench_link_close(struct bench_link *link)
{
    if (link->consumer) {
        if (link->done.offsets) /* again, and this time awaited */
            (void)rd_kafka_commit(link->consumer, link->done.offsets, 0);
        bench_kafka_consumer_close(link->consumer);
    }
    bench_producer_close(&link->producer);
    free_position(&link->received);
    free_position(&link->done);
    free(link->incoming);
    free(link);
}

size_t bench_link_receive(struct bench_link *link, struct bench_message *messages, size_t max,
                          int timeout_ms)
{
    size_t count =
        bench_kafka_receive(link->consumer, link->incoming, max, timeout_ms, &link->received);
    for (size_t i = 0; i < count; i++) {
        const rd_kafka_message_t *incoming = link->incoming[i];
        messages[i] = (struct bench_message){
            .id = bench_kafka_header(incoming, "NServiceBus.MessageId"),
            .conversation_id = bench_kafka_header(incoming, "NServiceBus.ConversationId"),
            .body = { incoming->payload, incoming->len },
        };
        if (messages[i].id.size == 0)
            bench_die("a message without id");
    }
    link->incoming_count = count;
    return count;
}

void bench_link_release(struct bench_link *link)
{
    for (size_t i = 0; i < link->incoming_count; i++)
        rd_kafka_message_destroy(link->incoming[i]);
    link->incoming_count = 0;
}

void bench_link_encode(struct bench_bytes *window, const char *destination,
                       const struct bench_envelope *envelope, const void *body, size_t body_size)
{
    bench_kafka_encode(window, destination, envelope, body, body_size);
}

void bench_link_dispatch(struct bench_link *link, const void *window, size_t size)
{
    bench_producer_dispatch(&link->producer, window, size);
}

void bench_link_done(struct bench_link *link)
{
    struct bench_kafka_position free_one = link->done;
    link->done = link->received;
    link->received = free_one;
}

void bench_link_acknowledge(struct bench_link *link)
{
    bench_kafka_check(rd_kafka_commit(link->consumer, link->done.offsets, 1), "commit");
}
