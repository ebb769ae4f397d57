/* SPDX-License-Identifier: Apache-2.0
 *
 * Kafka for the benchmark's programs: consumers, idempotent and transactional producers, a
 * stored form of messages. Any failure ends the program (bench_die).
 *
 * The address is in KAFKA_BROKERS. A client is used by one thread beside the library's own.
 */
#ifndef BENCH_KAFKA_LINK_H
#define BENCH_KAFKA_LINK_H

#include "tests/bench/common.h"

#include <librdkafka/rdkafka.h>

/* What librdkafka's calls may take; its own retries are below that. */
#define BENCH_KAFKA_TIMEOUT_MS 60000
#define BENCH_KAFKA_ERROR_SIZE 512

void bench_kafka_check(rd_kafka_resp_err_t code, const char *what);
/** Frees `error`; NULL is success. */
void bench_kafka_check_error(rd_kafka_error_t *error, const char *what);
/** A configuration with `pairs` of name and value, ended by NULL, and the brokers' address. */
rd_kafka_conf_t *bench_kafka_conf(const char *const *pairs);
rd_kafka_t *bench_kafka_new(rd_kafka_type_t type, rd_kafka_conf_t *conf);

/** A consumer in the group of the queue's name, subscribed to the queue. */
rd_kafka_t *bench_kafka_consumer(const char *queue);
void bench_kafka_consumer_close(rd_kafka_t *consumer);

/** How far a batch reads: the offset to continue at, in each partition. */
struct bench_kafka_position {
    rd_kafka_topic_partition_list_t *offsets;
};

/** Take what is there: one message waits `timeout_ms`, never for a second, at most `max`.
 *  `position` becomes the position behind them. Destroy the messages before the next call.
 *  @return how many. */
size_t bench_kafka_receive(rd_kafka_t *consumer, rd_kafka_message_t **messages, size_t max,
                           int timeout_ms, struct bench_kafka_position *position);
/** The value of a header; empty when it is absent. Belongs to the message. */
struct bench_text bench_kafka_header(const rd_kafka_message_t *message, const char *name);

/** Append a message to `window`. */
void bench_kafka_encode(struct bench_bytes *window, const char *destination,
                        const struct bench_envelope *envelope, const void *body, size_t body_size);

struct bench_producer {
    rd_kafka_t *client;
    rd_kafka_topic_t *topic; /* the last one sent to */
    size_t confirmed;
};

/** @param transactional_id NULL: idempotent only. */
void bench_producer_open(struct bench_producer *producer, const char *transactional_id);
void bench_producer_close(struct bench_producer *producer);
/** Hand a window's messages to the library, which borrows their bodies until they are
 *  confirmed. @return how many. */
size_t bench_producer_send(struct bench_producer *producer, const void *window, size_t size);
/** Send a window and wait until each message is confirmed. */
void bench_producer_dispatch(struct bench_producer *producer, const void *window, size_t size);

#endif
