/* SPDX-License-Identifier: Apache-2.0
 *
 * Idle latency: publish one message, wait until the message it causes is seen in the
 * output queue, pause, again. Prints "p50 p99 max" in microseconds.
 *
 * The pause is longer than what follows a message (mark, acknowledgement), so that each
 * meets an endpoint that waits.
 */
#include "config.h"

#include "tests/bench/amqp-link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define BODY_SIZE 1024
#define WARM_UP 20
#define PAUSE_NS 8000000
#define TIMEOUT_MS 10000

static int compare(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

static void encode(struct bench_bytes *window, const char *queue, const char *id)
{
    char body[BODY_SIZE];
    bench_message_body(body, sizeof body, 1);
    struct bench_envelope envelope = { .id = id,
                                       .conversation_id = id,
                                       .type = BENCH_INPUT_TYPE,
                                       .endpoint = "bench.loader" };
    window->size = 0;
    bench_amqp_encode(window, queue, &envelope, body, sizeof body);
}

/* Without confirms: the sender's wait for the broker is no part of what is measured. */
static int64_t measure_one(amqp_connection_state_t publisher, amqp_connection_state_t consumer,
                           const struct bench_bytes *window)
{
    struct bench_incoming message;
    int64_t start = bench_now();
    if (send(amqp_get_sockfd(publisher), window->data, window->size, MSG_NOSIGNAL)
        != (ssize_t)window->size)
        bench_die("send failed");
    if (bench_amqp_receive(consumer, &message, 1, TIMEOUT_MS) != 1)
        bench_die("no outgoing message within %d ms", TIMEOUT_MS);
    int64_t taken = bench_now() - start;
    bench_amqp_release(consumer);
    return taken;
}

static void measure(const char *input, const char *output, int64_t *taken, size_t count)
{
    amqp_connection_state_t publisher = bench_amqp_connect();
    amqp_connection_state_t consumer = bench_amqp_connect();
    struct bench_bytes window = { 0 };
    uint64_t salt = bench_wall_ms();
    bench_amqp_consume(consumer, output, 0);
    for (size_t i = 0; i < count + WARM_UP; i++) {
        char id[BENCH_ID_SIZE + 1];
        bench_message_id(id, salt, i);
        encode(&window, input, id);
        int64_t one = measure_one(publisher, consumer, &window);
        if (i >= WARM_UP)
            taken[i - WARM_UP] = one;
        nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
    }
    free(window.data);
    bench_amqp_close(publisher);
    bench_amqp_close(consumer);
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fputs("usage: probe-amqp INPUT-QUEUE OUTPUT-QUEUE MESSAGES\n", stderr);
        return 64;
    }
    size_t count = bench_number("messages", argv[3], 1);
    int64_t *taken = calloc(count, sizeof *taken);
    if (!taken)
        bench_die("out of memory");
    measure(argv[1], argv[2], taken, count);
    qsort(taken, count, sizeof *taken, compare);
    printf("%lld %lld %lld\n", (long long)taken[count / 2] / 1000,
           (long long)taken[count * 99 / 100] / 1000, (long long)taken[count - 1] / 1000);
    free(taken);
    return 0;
}
