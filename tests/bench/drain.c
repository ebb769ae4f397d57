/* SPDX-License-Identifier: Apache-2.0
 *
 * The hand-written ceiling of a delayed message store: fetch a thousand, send them in one window,
 * remove them. In one transaction, which is held open while the broker confirms: the rows are
 * locked, others pass over them, and whoever dies gives them back.
 *
 * The stored operations are the frames themselves, as in loop.c.
 */
#include "config.h"

#include "tests/bench/drain.h"
#include "tests/bench/loop-link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOT 1000
#define BODY_SIZE 1024
#define IDLE_NS 10000000

static void put_lot(struct drain_store *store, uint64_t salt, uint64_t first, size_t count)
{
    static char body[BODY_SIZE], ids[LOT][BENCH_ID_SIZE + 1];
    struct bench_text texts[LOT], operations[LOT];
    struct bench_bytes frames = { 0 };
    size_t ends[LOT];
    for (size_t i = 0; i < count; i++) {
        bench_message_id(ids[i], salt, first + i);
        bench_message_body(body, sizeof body, first + i);
        bench_link_encode(&frames, "bench.sink",
                          &(struct bench_envelope){ .id = ids[i], .conversation_id = ids[i],
                                                    .type = BENCH_OUTPUT_TYPE, .endpoint = "bench.loop" },
                          body, sizeof body);
        ends[i] = frames.size;
        texts[i] = (struct bench_text){ ids[i], BENCH_ID_SIZE };
    }
    for (size_t i = 0; i < count; i++) {
        size_t start = i ? ends[i - 1] : 0;
        operations[i] = (struct bench_text){ (const char *)frames.data + start, ends[i] - start };
    }
    drain_put(store, texts, operations, count);
    free(frames.data);
}

static void load(uint64_t count)
{
    struct drain_store *store = drain_open();
    uint64_t salt = bench_wall_ms();
    for (uint64_t done = 0; done < count; done += LOT)
        put_lot(store, salt, done, count - done < LOT ? (size_t)(count - done) : LOT);
    drain_close(store);
}

static void send_lot(struct bench_link *link, const struct bench_text *operations, size_t count,
                     struct bench_bytes *window)
{
    window->size = 0;
    for (size_t i = 0; i < count; i++)
        bench_bytes_put(window, operations[i].data, operations[i].size);
    bench_link_dispatch(link, window->data, window->size);
}

static void drain(void)
{
    struct bench_text operations[LOT];
    struct bench_bytes window = { 0 };
    struct drain_store *store = drain_open();
    struct bench_link *link = bench_link_open(&(struct bench_link_settings){ .batch_max = 1 });
    while (!bench_stopping) {
        size_t count = drain_take(store, operations, LOT);
        if (count) {
            send_lot(link, operations, count, &window);
            drain_done(store);
        } else {
            nanosleep(&(struct timespec){ .tv_nsec = IDLE_NS }, NULL);
        }
    }
    bench_link_close(link);
    drain_close(store);
    free(window.data);
}

int main(int argc, char **argv)
{
    bench_stop_on_signal();
    if (argc == 2 && strcmp(argv[1], "install") == 0)
        drain_install();
    else if (argc == 3 && strcmp(argv[1], "load") == 0)
        load(bench_number("messages", argv[2], 1));
    else if (argc == 2 && strcmp(argv[1], "run") == 0)
        drain();
    else {
        fputs("usage: drain-BROKER-DATABASE install | load MESSAGES | run\n", stderr);
        return 64;
    }
    return 0;
}
