/* SPDX-License-Identifier: Apache-2.0
 *
 * The hand-written ceiling: the same batched work and the same promises as an endpoint with
 * an outbox, without any framework. Failure ends the process; the next start sends what is
 * pending, and the broker delivers again what was not acknowledged.
 *
 * Broker and database are linked in: see loop-link.h and loop-store.h.
 */
#include "config.h"

#include "tests/bench/loop-link.h"
#include "tests/bench/loop-store.h"

#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORKERS_MAX 16
#define BATCH_MAX 1000

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
    struct bench_link *link;
    struct bench_store *store;
    struct bench_bytes window;
    uint64_t last_batch;
    uint64_t unmarked; /* batch dispatched and not marked yet; 0: none */
    struct bench_message messages[BATCH_MAX];
    const struct bench_message *sorted[BATCH_MAX];
    struct bench_text ids[BATCH_MAX];
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
    const struct bench_text *a = &(*(const struct bench_message *const *)left)->id;
    const struct bench_text *b = &(*(const struct bench_message *const *)right)->id;
    int order = memcmp(a->data, b->data, a->size < b->size ? a->size : b->size);
    return order ? order : (a->size > b->size) - (a->size < b->size);
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
        worker->ids[distinct++] = worker->sorted[i]->id;
    }
    return distinct;
}

/* Header values are NUL-terminated, and bytes of a frame are not. */
static const char *copy_text(char *buffer, size_t size, struct bench_text text)
{
    size_t length = text.size < size - 1 ? text.size : size - 1;
    memcpy(buffer, text.data, length);
    buffer[length] = '\0';
    return buffer;
}

static void handle(struct worker *worker, const struct bench_message *message)
{
    char outgoing_id[BENCH_ID_SIZE + 1], related_to[256], conversation_id[256];
    bench_store_order(worker->store, &message->id, message->body.size);
    bench_caused_id(outgoing_id, message->id.data, message->id.size);
    struct bench_envelope envelope = {
        .id = outgoing_id,
        .conversation_id =
            copy_text(conversation_id, sizeof conversation_id, message->conversation_id),
        .related_to = copy_text(related_to, sizeof related_to, message->id),
        .type = BENCH_OUTPUT_TYPE,
        .endpoint = worker->settings->input,
    };
    bench_link_encode(&worker->window, worker->settings->output, &envelope, message->body.data,
                      message->body.size);
}

static void acknowledge(struct worker *worker)
{
    bench_link_acknowledge(worker->link);
    worker->unmarked = 0;
}

static void finish_unmarked(struct worker *worker)
{
    bench_store_mark(worker->store, worker->unmarked);
    acknowledge(worker);
}

static void run_batch(struct worker *worker, size_t count)
{
    uint64_t batch = next_batch(worker);
    size_t distinct = sort_ids(worker, count);
    int marked = bench_store_begin(worker->store, worker->unmarked, batch, worker->ids, distinct,
                                   worker->fresh);
    if (worker->unmarked && marked)
        acknowledge(worker);
    worker->window.size = 0;
    for (size_t i = 0; i < distinct; i++)
        if (worker->fresh[i])
            handle(worker, worker->sorted[i]);
    bench_link_release(worker->link);
    bench_store_commit(worker->store, batch, worker->window.data, worker->window.size);
    if (worker->unmarked)
        acknowledge(worker);
    bench_link_dispatch(worker->link, worker->window.data, worker->window.size);
    worker->unmarked = batch;
    bench_link_done(worker->link);
}

static void close_worker(struct worker *worker)
{
    if (worker->unmarked)
        finish_unmarked(worker);
    bench_link_close(worker->link);
    bench_store_close(worker->store);
    free(worker->window.data);
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    const struct settings *settings = worker->settings;
    worker->store = bench_store_open(settings->sql);
    worker->link = bench_link_open(&(struct bench_link_settings){
        .input = settings->input, .batch_max = settings->batch_max,
        .prefetch = settings->prefetch });
    while (!bench_stopping) {
        size_t count = bench_link_receive(worker->link, worker->messages, settings->batch_max,
                                          worker->unmarked ? 0 : 50);
        if (count > 0)
            run_batch(worker, count);
        else if (worker->unmarked)
            finish_unmarked(worker);
    }
    close_worker(worker);
    return NULL;
}

/* ---- start ---------------------------------------------------------------- */

static void send_pending(void *link, const void *operations, size_t size)
{
    bench_link_dispatch(link, operations, size);
}

static void resume(void)
{
    struct bench_store *store = bench_store_open(BENCH_SQL_PLAIN);
    struct bench_link *link = bench_link_open(&(struct bench_link_settings){ .batch_max = 1 });
    bench_store_resume(store, send_pending, link);
    bench_link_close(link);
    bench_store_close(store);
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
    puts("usage: loop-BROKER-DATABASE [--install] [--sql plain|deferred|batch] [--batch-max N]\n"
         "           [--prefetch N] [--workers N] [--in QUEUE] [--out QUEUE]\n"
         "Runs until SIGTERM. Servers: AMQP_HOST, AMQP_PORT, ..., KAFKA_BROKERS,\n"
         "PGHOST, PGPORT, ..., MYSQL_HOST, MYSQL_PORT, ...");
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
