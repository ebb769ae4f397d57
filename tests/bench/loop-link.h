/* SPDX-License-Identifier: Apache-2.0
 *
 * The broker of a hand-written loop: receive what is there, send a window and await that
 * each message of it is confirmed, acknowledge. Any failure ends the program (bench_die).
 *
 * loop-amqp.c and loop-kafka.c implement it; a program links one of them. A link is used
 * by one thread.
 */
#ifndef BENCH_LOOP_LINK_H
#define BENCH_LOOP_LINK_H

#include "tests/bench/common.h"

struct bench_link;

/** A message received; valid until bench_link_release(). */
struct bench_message {
    struct bench_text id;
    struct bench_text conversation_id; /* empty when the header is absent */
    struct bench_text body;
};

struct bench_link_settings {
    const char *input; /* NULL: only sends */
    size_t batch_max;
    unsigned prefetch; /* messages; 0: what suits batch_max */
};

struct bench_link *bench_link_open(const struct bench_link_settings *settings);
/** What can still be acknowledged is. */
void bench_link_close(struct bench_link *link);

/** Wait at most `timeout_ms` for the first message, never for a second, and take at most
 *  `max`. @return how many. */
size_t bench_link_receive(struct bench_link *link, struct bench_message *messages, size_t max,
                          int timeout_ms);
void bench_link_release(struct bench_link *link);

/** Append one persistent message to the window, in the form in which it is stored. */
void bench_link_encode(struct bench_bytes *window, const char *destination,
                       const struct bench_envelope *envelope, const void *body, size_t body_size);
/** Send a window and wait until each message of it is confirmed. */
void bench_link_dispatch(struct bench_link *link, const void *window, size_t size);

/** What was received last is the batch that the next bench_link_acknowledge() means. */
void bench_link_done(struct bench_link *link);
void bench_link_acknowledge(struct bench_link *link);

#endif
