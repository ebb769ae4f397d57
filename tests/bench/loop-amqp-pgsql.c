/* SPDX-License-Identifier: Apache-2.0
 *
 * The hand-written ceiling for amqp + pgsql: the same batched work and the same promises
 * as an endpoint with an outbox, without any framework. Failure ends the process; the
 * next start sends what is pending, and the broker delivers again what was not
 * acknowledged.
 *
 * The stored operations are the frames themselves, so that dispatching them is one write
 * of the bytes that were stored.
 */
#include "config.h"

#include "tests/bench/amqp-link.h"
#include "tests/bench/loop-store.h"

#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORKERS_MAX 16
#define BATCH_MAX 500

struct settings {
    enum bench_sql sql;
    size_t batch_max;
    unsigned prefetch;
    unsigned workers;
    const char *input;
    const char *output;
};

struct worker {
    const struct settings *settings;
    unsigned number;
    pthread_t thread;
    amqp_connection_state_t receiver;
    struct bench_sender sender;
    struct bench_store store;
    struct bench_bytes window;
    uint64_t last_batch;
    uint64_t unmarked;     /* batch dispatched and not marked yet; 0: none */
    uint64_t unmarked_tag; /* its last delivery */
    struct bench_incoming messages[BATCH_MAX];
    const struct bench_incoming *sorted[BATCH_MAX];
    struct bench_id ids[BATCH_MAX];
    unsigned char fresh[BATCH_MAX];
};

/* Milliseconds, the worker, a counter: unique while one process runs, as a lease-free
 * loop needs no more. */
static uint64_t next_batch(struct worker *worker)
{
    uint64_t batch = bench_wall_ms() << 22 | (uint64_t)worker->number << 16;
    if (batch <= worker->last_batch)
        batch = worker->last_batch + 1;
    return worker->last_batch = batch;
}

static int compare_ids(const void *left, const void *right)
{
    const amqp_bytes_t *a = &(*(const struct bench_incoming *const *)left)->id;
    const amqp_bytes_t *b = &(*(const struct bench_incoming *const *)right)->id;
    int order = memcmp(a->bytes, b->bytes, a->len < b->len ? a->len : b->len);
    return order ? order : (a->len > b->len) - (a->len < b->len);
}

/* Sorted, so that batches which share ids wait for each other and never deadlock; the
 * same id twice in a batch is claimed once. @return how many distinct ids there are. */
static size_t sort_ids(struct worker *worker, size_t count)
{
    size_t distinct = 0;
    for (size_t i = 0; i < count; i++)
        worker->sorted[i] = &worker->messages[i];
    qsort(worker->sorted, count, sizeof worker->sorted[0], compare_ids);
    for (size_t i = 0; i < count; i++) {
        if (distinct && compare_ids(&worker->sorted[i], &worker->sorted[distinct - 1]) == 0)
            continue;
        worker->sorted[distinct] = worker->sorted[i];
        worker->ids[distinct].data = worker->sorted[i]->id.bytes;
        worker->ids[distinct++].size = worker->sorted[i]->id.len;
    }
    return distinct;
}

/* Header values are NUL-terminated, and bytes of a frame are not. */
static const char *copy_text(char *buffer, size_t size, amqp_bytes_t text)
{
    size_t length = text.len < size - 1 ? text.len : size - 1;
    memcpy(buffer, text.bytes, length);
    buffer[length] = '\0';
    return buffer;
}

static void handle(struct worker *worker, const struct bench_incoming *message,
                   const struct bench_id *id)
{
    char outgoing_id[BENCH_ID_SIZE + 1], related_to[256], conversation_id[256];
    bench_store_order(&worker->store, id, message->body.len);
    bench_caused_id(outgoing_id, message->id.bytes, message->id.len);
    struct bench_envelope envelope = {
        .id = outgoing_id,
        .conversation_id =
            copy_text(conversation_id, sizeof conversation_id, message->conversation_id),
        .related_to = copy_text(related_to, sizeof related_to, message->id),
        .type = BENCH_OUTPUT_TYPE,
        .endpoint = worker->settings->input,
    };
    bench_amqp_encode(&worker->window, worker->settings->output, &envelope, message->body.bytes,
                      message->body.len);
}

static void finish_unmarked(struct worker *worker)
{
    bench_store_mark(&worker->store, worker->unmarked);
    bench_amqp_acknowledge(worker->receiver, worker->unmarked_tag);
    worker->unmarked = 0;
}

static void run_batch(struct worker *worker, size_t count)
{
    uint64_t batch = next_batch(worker);
    uint64_t last_tag = worker->messages[count - 1].tag;
    size_t distinct = sort_ids(worker, count);
    size_t handled = 0;
    bench_store_begin(&worker->store, worker->unmarked, batch, worker->ids, distinct,
                      worker->fresh);
    if (worker->unmarked)
        bench_amqp_acknowledge(worker->receiver, worker->unmarked_tag);
    worker->window.size = 0;
    for (size_t i = 0; i < distinct; i++) {
        if (!worker->fresh[i])
            continue;
        handle(worker, worker->sorted[i], &worker->ids[i]);
        handled++;
    }
    bench_amqp_release(worker->receiver);
    bench_store_commit(&worker->store, batch, worker->window.data, worker->window.size);
    bench_sender_dispatch(&worker->sender, worker->window.data, worker->window.size, handled);
    worker->unmarked = batch;
    worker->unmarked_tag = last_tag;
}

static void open_worker(struct worker *worker)
{
    bench_store_open(&worker->store, worker->settings->sql);
    bench_sender_open(&worker->sender);
    worker->receiver = bench_amqp_connect();
    bench_amqp_consume(worker->receiver, worker->settings->input,
                       (uint16_t)worker->settings->prefetch);
}

static void close_worker(struct worker *worker)
{
    if (worker->unmarked)
        finish_unmarked(worker);
    bench_amqp_close(worker->receiver);
    bench_amqp_close(worker->sender.connection);
    free(worker->sender.confirmed);
    free(worker->window.data);
    bench_store_close(&worker->store);
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    open_worker(worker);
    while (!bench_stopping) {
        size_t count = bench_amqp_receive(worker->receiver, worker->messages,
                                          worker->settings->batch_max, worker->unmarked ? 0 : 50);
        if (count > 0)
            run_batch(worker, count);
        else if (worker->unmarked)
            finish_unmarked(worker);
    }
    close_worker(worker);
    return NULL;
}

/* ---- start ---------------------------------------------------------------- */

static size_t count_messages(const unsigned char *frames, size_t size)
{
    size_t count = 0;
    for (size_t at = 0; at + 8 <= size;) {
        size_t payload = (size_t)frames[at + 3] << 24 | (size_t)frames[at + 4] << 16
                         | (size_t)frames[at + 5] << 8 | frames[at + 6];
        count += frames[at] == 1;
        at += payload + 8;
    }
    return count;
}

static void send_pending(void *argument, const void *operations, size_t size)
{
    bench_sender_dispatch(argument, operations, size, count_messages(operations, size));
}

static void resume(void)
{
    struct bench_store store;
    struct bench_sender sender;
    bench_store_open(&store, BENCH_SQL_PLAIN);
    bench_sender_open(&sender);
    bench_store_resume(&store, send_pending, &sender);
    bench_amqp_close(sender.connection);
    free(sender.confirmed);
    bench_store_close(&store);
}

static enum bench_sql parse_sql(const char *text)
{
    static const char *const names[] = { "plain", "deferred", "batch" };
    for (int i = 0; i < 3; i++)
        if (strcmp(text, names[i]) == 0)
            return (enum bench_sql)i;
    bench_die("--sql: \"%s\" is not plain, deferred or batch", text);
}

static void usage(void)
{
    puts("usage: loop-amqp-pgsql [--install] [--sql plain|deferred|batch] [--batch-max N]\n"
         "           [--prefetch N] [--workers N] [--in QUEUE] [--out QUEUE]\n"
         "Runs until SIGTERM. Servers: AMQP_HOST, AMQP_PORT, ..., PGHOST, PGPORT, ...");
    exit(0);
}

static void parse(struct settings *settings, int argc, char **argv)
{
    static const struct option options[] = {
        { "install", no_argument, NULL, 'I' },        { "sql", required_argument, NULL, 's' },
        { "batch-max", required_argument, NULL, 'b' }, { "prefetch", required_argument, NULL, 'p' },
        { "workers", required_argument, NULL, 'w' },   { "in", required_argument, NULL, 'i' },
        { "out", required_argument, NULL, 'o' },       { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 }
    };
    for (int choice; (choice = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (choice) {
        case 'I': bench_store_install(); exit(0);
        case 's': settings->sql = parse_sql(optarg); break;
        case 'b': settings->batch_max = bench_number("batch-max", optarg, 1); break;
        case 'p': settings->prefetch = (unsigned)bench_number("prefetch", optarg, 1); break;
        case 'w': settings->workers = (unsigned)bench_number("workers", optarg, 1); break;
        case 'i': settings->input = optarg; break;
        case 'o': settings->output = optarg; break;
        case 'h': usage(); break;
        default: exit(64);
        }
    }
    if (settings->batch_max > BATCH_MAX || settings->workers > WORKERS_MAX)
        bench_die("at most %d messages a batch and %d workers", BATCH_MAX, WORKERS_MAX);
    if (settings->prefetch == 0)
        settings->prefetch = (unsigned)settings->batch_max * 3;
}

int main(int argc, char **argv)
{
    static struct worker workers[WORKERS_MAX];
    struct settings settings = {
        .batch_max = 100, .workers = 1, .input = "bench.loop", .output = "bench.sink"
    };
    parse(&settings, argc, argv);
    bench_stop_on_signal();
    resume();
    for (unsigned i = 0; i < settings.workers; i++) {
        workers[i].settings = &settings;
        workers[i].number = i;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
            bench_die("cannot start a thread");
    }
    for (unsigned i = 0; i < settings.workers; i++)
        pthread_join(workers[i].thread, NULL);
    return 0;
}
