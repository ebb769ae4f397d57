/* SPDX-License-Identifier: Apache-2.0
 *
 * RabbitMQ for the benchmark's programs: connect, declare, receive what is there, send a
 * window in one write, await its confirms. Any failure ends the program (bench_die).
 *
 * A connection is used by one thread. Publishing and receiving have a connection each:
 * an alarm of the broker stops a connection that publishes, and its consumer with it.
 */
#ifndef BENCH_AMQP_LINK_H
#define BENCH_AMQP_LINK_H

#include "plugins/common/rabbitmq.h"
#include "tests/bench/common.h"

#define BENCH_CHANNEL 1

/** Connect and open the channel. The address is in AMQP_HOST, AMQP_PORT, AMQP_USER,
 *  AMQP_PASSWORD, AMQP_VHOST. */
amqp_connection_state_t bench_amqp_connect(void);
void bench_amqp_close(amqp_connection_state_t connection);

/** A durable quorum queue, a durable fanout exchange of the same name, and the binding. */
void bench_amqp_declare(amqp_connection_state_t connection, const char *queue);
void bench_amqp_purge(amqp_connection_state_t connection, const char *queue);
/** Messages ready in the queue; *ret_consumers, if not NULL: how many consume it. */
uint32_t bench_amqp_count(amqp_connection_state_t connection, const char *queue,
                          uint32_t *ret_consumers);
/** @param prefetch 0: without limit and without acknowledgements. */
void bench_amqp_consume(amqp_connection_state_t connection, const char *queue, uint16_t prefetch);

/** A message received; valid until bench_amqp_release(). */
struct bench_incoming {
    amqp_bytes_t id;
    amqp_bytes_t conversation_id; /* empty when the header is absent */
    amqp_bytes_t body;
    uint64_t tag;
};

/** Wait at most `timeout_ms` for the first message, never for a second, and take at most
 *  `max`. @return how many. */
size_t bench_amqp_receive(amqp_connection_state_t connection, struct bench_incoming *messages,
                          size_t max, int timeout_ms);
void bench_amqp_release(amqp_connection_state_t connection);
/** Acknowledge everything up to `tag`. */
void bench_amqp_acknowledge(amqp_connection_state_t connection, uint64_t tag);

/** Append to `window` the frames of one persistent, mandatory message, sent to the
 *  exchange of the queue `destination`. */
void bench_amqp_encode(struct bench_bytes *window, const char *destination,
                       const struct bench_envelope *envelope, const void *body, size_t body_size);

/** Outgoing side of a connection: its channel confirms. */
struct bench_sender {
    amqp_connection_state_t connection;
    uint64_t first_tag; /* of the window under way */
    unsigned char *confirmed;
    size_t confirmed_capacity;
};

void bench_sender_open(struct bench_sender *sender);
/** Write a window of `count` messages at once and wait until each is confirmed. A message
 *  that is returned or refused ends the program. */
void bench_sender_dispatch(struct bench_sender *sender, const void *window, size_t size,
                           size_t count);

#endif
