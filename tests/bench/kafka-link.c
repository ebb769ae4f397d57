/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/bench/kafka-link.h"

#include <stdlib.h>
#include <string.h>

void bench_kafka_check(rd_kafka_resp_err_t code, const char *what)
{
    if (code)
        bench_die("%s: %s", what, rd_kafka_err2str(code));
}

void bench_kafka_check_error(rd_kafka_error_t *error, const char *what)
{
    if (error)
        bench_die("%s: %s", what, rd_kafka_error_string(error));
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
    char text[BENCH_KAFKA_ERROR_SIZE];
    if (rd_kafka_conf_set(conf, name, value, text, sizeof text) != RD_KAFKA_CONF_OK)
        bench_die("%s", text);
}

rd_kafka_conf_t *bench_kafka_conf(const char *const *pairs)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", bench_setting("KAFKA_BROKERS", "127.0.0.1:9092"));
    for (; *pairs; pairs += 2)
        set(conf, pairs[0], pairs[1]);
    return conf;
}

rd_kafka_t *bench_kafka_new(rd_kafka_type_t type, rd_kafka_conf_t *conf)
{
    char text[BENCH_KAFKA_ERROR_SIZE];
    rd_kafka_t *client = rd_kafka_new(type, conf, text, sizeof text);
    if (!client)
        bench_die("%s", text);
    return client;
}

/* ---- receiving ------------------------------------------------------------ */

/* An asynchronous commit that a rebalance overtook is no failure: what it would have
 * acknowledged is delivered again, and a duplicate. */
static void on_commit(rd_kafka_t *client, rd_kafka_resp_err_t code,
                      rd_kafka_topic_partition_list_t *offsets, void *opaque)
{
    (void)client, (void)offsets, (void)opaque;
    if (code != RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION && code != RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID
        && code != RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS && code != RD_KAFKA_RESP_ERR__NO_OFFSET)
        bench_kafka_check(code, "commit of offsets");
}

rd_kafka_t *bench_kafka_consumer(const char *queue)
{
    rd_kafka_conf_t *conf = bench_kafka_conf((const char *const[]){
        "group.id", queue, "enable.auto.commit", "false", "enable.auto.offset.store", "false",
        "auto.offset.reset", "earliest", "socket.nagle.disable", "true",
        /* More than a second's messages: when it is full, versions before 2.2 stop fetching
         * for a second. */
        "queued.max.messages.kbytes", "65536", NULL });
    rd_kafka_conf_set_offset_commit_cb(conf, on_commit);
    rd_kafka_t *consumer = bench_kafka_new(RD_KAFKA_CONSUMER, conf);
    rd_kafka_poll_set_consumer(consumer);
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(topics, queue, RD_KAFKA_PARTITION_UA);
    bench_kafka_check(rd_kafka_subscribe(consumer, topics), queue);
    rd_kafka_topic_partition_list_destroy(topics);
    return consumer;
}

void bench_kafka_consumer_close(rd_kafka_t *consumer)
{
    rd_kafka_consumer_close(consumer);
    rd_kafka_destroy(consumer);
}

static void advance(rd_kafka_topic_partition_list_t *offsets, const rd_kafka_message_t *message)
{
    for (int i = offsets->cnt - 1; i >= 0; i--) {
        if (offsets->elems[i].partition == message->partition) {
            offsets->elems[i].offset = message->offset + 1;
            return;
        }
    }
    rd_kafka_topic_partition_list_add(offsets, rd_kafka_topic_name(message->rkt),
                                      message->partition)
        ->offset = message->offset + 1;
}

/* One by one: batches of librdkafka 2.0 lose messages when a rebalance comes in between. */
size_t bench_kafka_receive(rd_kafka_t *consumer, rd_kafka_message_t **messages, size_t max,
                           int timeout_ms, struct bench_kafka_position *position)
{
    size_t count = 0;
    rd_kafka_message_t *message;
    if (!position->offsets)
        position->offsets = rd_kafka_topic_partition_list_new(4);
    position->offsets->cnt = 0;
    while (count < max
           && (message = rd_kafka_consumer_poll(consumer, count ? 0 : timeout_ms)) != NULL) {
        bench_kafka_check(message->err, "receive");
        advance(position->offsets, message);
        messages[count++] = message;
    }
    return count;
}

struct bench_text bench_kafka_header(const rd_kafka_message_t *message, const char *name)
{
    rd_kafka_headers_t *headers = NULL;
    const void *value = "";
    size_t size = 0;
    if (rd_kafka_message_headers(message, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR)
        (void)rd_kafka_header_get_last(headers, name, &value, &size);
    return (struct bench_text){ value, size };
}

/* ---- the stored form ------------------------------------------------------ */

/* <topic>NUL <body size> <body> then for each header <value>NUL; their names are known. */
static void put_text(struct bench_bytes *window, const char *text)
{
    bench_bytes_put(window, text, strlen(text) + 1);
}

void bench_kafka_encode(struct bench_bytes *window, const char *destination,
                        const struct bench_envelope *envelope, const void *body, size_t body_size)
{
    const char *values[BENCH_HEADER_COUNT];
    char time_sent[32];
    uint32_t size = (uint32_t)body_size;
    bench_header_values(envelope, time_sent, values);
    put_text(window, destination);
    bench_bytes_put(window, &size, sizeof size);
    bench_bytes_put(window, body, body_size);
    for (int i = 0; i < BENCH_HEADER_COUNT; i++)
        put_text(window, values[i]);
}

static const char *take_text(const char **at)
{
    const char *text = *at;
    *at += strlen(text) + 1;
    return text;
}

static rd_kafka_headers_t *take_headers(const char **at)
{
    rd_kafka_headers_t *headers = rd_kafka_headers_new(BENCH_HEADER_COUNT);
    for (int i = 0; i < BENCH_HEADER_COUNT; i++) {
        const char *value = take_text(at);
        bench_kafka_check(rd_kafka_header_add(headers, bench_header_names[i], -1, value,
                                              *at - value - 1),
                          "header");
    }
    return headers;
}

/* ---- sending -------------------------------------------------------------- */

static void on_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque)
{
    struct bench_producer *producer = opaque;
    (void)client;
    bench_kafka_check(message->err, "delivery");
    producer->confirmed++;
}

void bench_producer_open(struct bench_producer *producer, const char *transactional_id)
{
    rd_kafka_conf_t *conf = bench_kafka_conf((const char *const[]){
        "enable.idempotence", "true", "linger.ms", "5", "socket.nagle.disable", "true",
        /* Not 100: what a transaction waits for is over in milliseconds. */
        "retry.backoff.ms", "2", transactional_id ? "transactional.id" : NULL, transactional_id,
        NULL });
    memset(producer, 0, sizeof *producer);
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    rd_kafka_conf_set_opaque(conf, producer);
    producer->client = bench_kafka_new(RD_KAFKA_PRODUCER, conf);
    if (transactional_id)
        bench_kafka_check_error(
            rd_kafka_init_transactions(producer->client, BENCH_KAFKA_TIMEOUT_MS), "transactions");
}

void bench_producer_close(struct bench_producer *producer)
{
    if (producer->topic)
        rd_kafka_topic_destroy(producer->topic);
    rd_kafka_destroy(producer->client);
}

static rd_kafka_topic_t *find_topic(struct bench_producer *producer, const char *name)
{
    if (producer->topic && strcmp(rd_kafka_topic_name(producer->topic), name) == 0)
        return producer->topic;
    if (producer->topic)
        rd_kafka_topic_destroy(producer->topic);
    producer->topic = rd_kafka_topic_new(producer->client, name, NULL);
    if (!producer->topic)
        bench_kafka_check(rd_kafka_last_error(), name);
    return producer->topic;
}

size_t bench_producer_send(struct bench_producer *producer, const void *window, size_t size)
{
    const char *at = window, *end = at + size;
    size_t count = 0;
    for (; at < end; count++) {
        uint32_t body_size;
        rd_kafka_topic_t *topic = find_topic(producer, take_text(&at));
        memcpy(&body_size, at, sizeof body_size);
        const char *body = at + sizeof body_size;
        at = body + body_size;
        /* Without the macros that check types: they are no ISO C. */
        bench_kafka_check(rd_kafka_producev(producer->client, RD_KAFKA_VTYPE_RKT, topic,
                                            RD_KAFKA_VTYPE_VALUE, body, (size_t)body_size,
                                            RD_KAFKA_VTYPE_HEADERS, take_headers(&at),
                                            RD_KAFKA_VTYPE_END),
                          "produce");
    }
    return count;
}

void bench_producer_dispatch(struct bench_producer *producer, const void *window, size_t size)
{
    producer->confirmed = 0;
    size_t sent = bench_producer_send(producer, window, size);
    bench_kafka_check(rd_kafka_flush(producer->client, BENCH_KAFKA_TIMEOUT_MS), "flush");
    if (producer->confirmed != sent)
        bench_die("%zu messages sent, %zu confirmed", sent, producer->confirmed);
}
