/* SPDX-License-Identifier: Apache-2.0
 *
 * Queues for the benchmark, from the command line: declare, purge, load with messages,
 * wait until so many are there.
 */
#include "config.h"

#include "tests/bench/amqp-link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WINDOW 500

static void put_message(struct bench_bytes *window, const char *queue, uint64_t salt,
                        uint64_t number, size_t body_size)
{
    static char body[BENCH_BODY_MAX];
    char id[BENCH_ID_SIZE + 1], conversation_id[BENCH_ID_SIZE + 1];
    bench_message_id(id, salt, number);
    bench_message_id(conversation_id, ~salt, number);
    bench_message_body(body, body_size, number);
    struct bench_envelope envelope = { .id = id,
                                       .conversation_id = conversation_id,
                                       .type = BENCH_INPUT_TYPE,
                                       .endpoint = "bench.loader" };
    bench_amqp_encode(window, queue, &envelope, body, body_size);
}

static void load(const char *queue, uint64_t count, size_t body_size)
{
    struct bench_sender sender;
    struct bench_bytes window = { 0 };
    uint64_t salt = bench_wall_ms();
    bench_sender_open(&sender);
    for (uint64_t sent = 0; sent < count;) {
        size_t now = count - sent < WINDOW ? (size_t)(count - sent) : WINDOW;
        window.size = 0;
        for (size_t i = 0; i < now; i++)
            put_message(&window, queue, salt, sent + i, body_size);
        bench_sender_dispatch(&sender, window.data, window.size, now);
        sent += now;
    }
    bench_amqp_close(sender.connection);
    free(sender.confirmed);
    free(window.data);
}

/* Passive declares on one connection, paced: what watches must not weigh. */
static int wait_for(amqp_connection_state_t connection, const char *queue, int consumers,
                    uint32_t wanted, uint64_t timeout_s)
{
    int64_t deadline = bench_now() + (int64_t)timeout_s * 1000000000;
    uint32_t seen[2] = { 0, 0 };
    while (bench_now() < deadline) {
        seen[0] = bench_amqp_count(connection, queue, &seen[1]);
        if (seen[consumers] >= wanted)
            return 0;
        nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
    }
    fprintf(stderr, "load-amqp: %s has %u messages and %u consumers after %llu s\n", queue,
            seen[0], seen[1], (unsigned long long)timeout_s);
    return 1;
}

static int usage(int status)
{
    fputs("usage: load-amqp declare|purge|count QUEUE\n"
          "       load-amqp load QUEUE MESSAGES [BODY-BYTES]\n"
          "       load-amqp wait-messages|wait-consumers QUEUE COUNT SECONDS\n",
          status ? stderr : stdout);
    return status;
}

static int control(const char *verb, const char *queue, char **arguments, int count)
{
    int status = 0;
    int consumers = strcmp(verb, "wait-consumers") == 0;
    amqp_connection_state_t connection = bench_amqp_connect();
    if (strcmp(verb, "declare") == 0)
        bench_amqp_declare(connection, queue);
    else if (strcmp(verb, "purge") == 0)
        bench_amqp_purge(connection, queue);
    else if (strcmp(verb, "count") == 0)
        printf("%u\n", bench_amqp_count(connection, queue, NULL));
    else if ((consumers || strcmp(verb, "wait-messages") == 0) && count == 2)
        status = wait_for(connection, queue, consumers,
                          (uint32_t)bench_number("count", arguments[0], 0),
                          bench_number("seconds", arguments[1], 1));
    else
        status = usage(64);
    bench_amqp_close(connection);
    return status;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--help") == 0)
        return usage(0);
    if (argc < 3)
        return usage(64);
    if (strcmp(argv[1], "load") != 0)
        return control(argv[1], argv[2], argv + 3, argc - 3);
    if (argc < 4)
        return usage(64);
    size_t body_size = argc > 4 ? bench_number("body", argv[4], 64) : 1024;
    if (body_size > BENCH_BODY_MAX)
        bench_die("bodies of at most %u bytes", BENCH_BODY_MAX);
    load(argv[2], bench_number("messages", argv[3], 1), body_size);
    return 0;
}
