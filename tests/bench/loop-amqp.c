/* SPDX-License-Identifier: Apache-2.0
 *
 * RabbitMQ for the hand-written loops. The stored operations are the frames themselves, so
 * that dispatching them is one write of the bytes that were stored.
 */
#include "config.h"

#include "tests/bench/amqp-link.h"
#include "tests/bench/loop-link.h"

#include <stdlib.h>

struct bench_link {
    amqp_connection_state_t receiver;
    struct bench_sender sender;
    struct bench_incoming *incoming;
    uint64_t received_tag; /* the last of the batch in hand */
    uint64_t done_tag;
};

struct bench_link *bench_link_open(const struct bench_link_settings *settings)
{
    struct bench_link *link = bench_zeroed(sizeof *link);
    unsigned prefetch =
        settings->prefetch ? settings->prefetch : (unsigned)settings->batch_max * 3;
    bench_sender_open(&link->sender);
    if (!settings->input)
        return link;
    link->incoming = bench_zeroed(settings->batch_max * sizeof *link->incoming);
    link->receiver = bench_amqp_connect();
    bench_amqp_consume(link->receiver, settings->input, (uint16_t)prefetch);
    return link;
}

void bench_link_close(struct bench_link *link)
{
    if (link->receiver)
        bench_amqp_close(link->receiver);
    bench_amqp_close(link->sender.connection);
    free(link->sender.confirmed);
    free(link->incoming);
    free(link);
}

static struct bench_text text_of(amqp_bytes_t bytes)
{
    return (struct bench_text){ bytes.bytes, bytes.len };
}

size_t bench_link_receive(struct bench_link *link, struct bench_message *messages, size_t max,
                          int timeout_ms)
{
    size_t count = bench_amqp_receive(link->receiver, link->incoming, max, timeout_ms);
    for (size_t i = 0; i < count; i++)
        messages[i] = (struct bench_message){
            .id = text_of(link->incoming[i].id),
            .conversation_id = text_of(link->incoming[i].conversation_id),
            .body = text_of(link->incoming[i].body),
        };
    if (count)
        link->received_tag = link->incoming[count - 1].tag;
    return count;
}

void bench_link_release(struct bench_link *link)
{
    bench_amqp_release(link->receiver);
}

void bench_link_encode(struct bench_bytes *window, const char *destination,
                       const struct bench_envelope *envelope, const void *body, size_t body_size)
{
    bench_amqp_encode(window, destination, envelope, body, body_size);
}

static size_t count_messages(const unsigned char *frames, size_t size)
{
    size_t count = 0;
    for (size_t at = 0; at + 8 <= size;) {
        size_t payload = (size_t)frames[at + 3] << 24 | (size_t)frames[at + 4] << 16
                         | (size_t)frames[at + 5] << 8 | frames[at + 6];
        count += frames[at] == AMQP_FRAME_METHOD;
        at += payload + 8;
    }
    return count;
}

void bench_link_dispatch(struct bench_link *link, const void *window, size_t size)
{
    bench_sender_dispatch(&link->sender, window, size, count_messages(window, size));
}

void bench_link_done(struct bench_link *link)
{
    link->done_tag = link->received_tag;
}

void bench_link_acknowledge(struct bench_link *link)
{
    bench_amqp_acknowledge(link->receiver, link->done_tag);
}
