/* SPDX-License-Identifier: Apache-2.0
 *
 * Work on an endpoint's deduplication records through the persistence plugin, as the pipeline does,
 * but for handlers and the broker:
 *
 *     retain PLUGIN.so OPTION=VALUE,... ENDPOINT fill IDS WORKERS ROWS OLDEST YOUNGEST
 *     retain PLUGIN.so OPTION=VALUE,... ENDPOINT work IDS WORKERS BYTES WARM MILLISECONDS
 *
 * `fill` makes records as messages would have made them that came evenly between so many seconds ago
 * and so many, in batches of 100; `work` claims new ids, stores so many bytes of operations for each (64 or more;
 * 0: none), commits, and marks with the next batch: for WARM milliseconds, after which it says `warm`, and then for those
 * that are measured, when it prints how many messages a second that was.
 * IDS is v4 (random) or v7 (in the order of time). The endpoint is installed.
 */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <waybill/sys/persistence.h>

#include "tests/bench/common.h"
#include "tests/bench/plugin-host.h"

#define BATCH 100
#define ID_SIZE 36
#define WORKERS_MAX 64
/* Batch numbers: milliseconds since 2020, and 22 bits that make them differ. */
#define EPOCH_MS UINT64_C(1577836800000)
#define MS_BITS 22

static const wb_persistence_ops *ops;
static int ordered_ids;
static _Atomic uint64_t next_batch;

typedef struct worker {
    pthread_t thread;
    wb_storage_session *session;
    uint64_t random;
    uint64_t claimed;
    uint64_t before; /* the batch that is to be marked, or 0 */
    char ids[BATCH][ID_SIZE + 1];
    wb_claim claims[BATCH];
} worker;

/* What all of them do. */
typedef struct job {
    uint64_t rows;     /* to be made, */
    uint64_t oldest_ms; /* between these ages; or */
    uint64_t youngest_ms;
    int64_t warm;      /* work until then uncounted, */
    int64_t until;     /* and then until then */
    char *operations;
    size_t operations_size;
    pthread_barrier_t start;
} job;
static job all;

static uint64_t draw(worker *w)
{
    w->random += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = w->random;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static void make_id(worker *w, char *id, uint64_t wall_ms)
{
    const uint64_t high = ordered_ids ? wall_ms << 16 | 0x7000 | (draw(w) & 0xfff)
                                      : (draw(w) & ~UINT64_C(0xf000)) | 0x4000;
    const uint64_t low = (draw(w) >> 2) | UINT64_C(1) << 63;
    snprintf(id, ID_SIZE + 1, "%08x-%04x-%04x-%04x-%012llx", (unsigned)(high >> 32),
             (unsigned)(high >> 16 & 0xffff), (unsigned)(high & 0xffff), (unsigned)(low >> 48),
             (unsigned long long)(low & UINT64_C(0xffffffffffff)));
}

static int compare_ids(const void *a, const void *b)
{
    return memcmp(a, b, ID_SIZE);
}

static void make_claims(worker *w, size_t count, uint64_t wall_ms)
{
    for (size_t i = 0; i < count; i++)
        make_id(w, w->ids[i], wall_ms);
    qsort(w->ids, count, sizeof w->ids[0], compare_ids);
    for (size_t i = 0; i < count; i++)
        w->claims[i] = (wb_claim){ w->ids[i], ID_SIZE, 0 };
}

static void commit(worker *w, uint64_t batch)
{
    wb_error error = { "" };
    wb_commit end = { .struct_size = sizeof end, .batch = batch };
    if (all.operations_size) {
        end.operations = all.operations;
        end.operations_size = all.operations_size;
    }
    if (ops->commit(w->session, &end, &error) != WB_OK)
        bench_die("commit: %s", error.text);
}

static void run_batch(worker *w, size_t count, uint64_t wall_ms)
{
    wb_error error = { "" };
    const uint64_t number = atomic_fetch_add(&next_batch, 1) & ((1 << MS_BITS) - 1);
    const uint64_t batch = (wall_ms - EPOCH_MS) << MS_BITS | number;
    const wb_mark mark = { .batch = w->before };
    make_claims(w, count, wall_ms);
    wb_begin begin = { .struct_size = sizeof begin,
                       .marks = &mark,
                       .mark_count = w->before != 0,
                       .batch = batch,
                       .claims = w->claims,
                       .claim_count = count };
    if (ops->begin(w->session, &begin, &error) != WB_OK)
        bench_die("begin: %s", error.text);
    for (size_t i = 0; i < count; i++)
        if (w->claims[i].duplicate_of)
            bench_die("a new id is said to be a duplicate");
    commit(w, batch);
    w->before = all.operations_size ? batch : 0;
    w->claimed += count;
}

static void mark_last(worker *w)
{
    wb_error error = { "" };
    const wb_mark mark = { .batch = w->before };
    if (w->before && ops->mark(w->session, &mark, 1, &error) != WB_OK)
        bench_die("mark: %s", error.text);
}

/* Batches are handed out one by one, so that several workers make them in the order of time. */
static void *fill(void *argument)
{
    worker *w = argument;
    static _Atomic uint64_t next_row;
    const uint64_t began = bench_wall_ms() - all.oldest_ms;
    const double span = (double)(all.oldest_ms - all.youngest_ms);
    for (uint64_t at; (at = atomic_fetch_add(&next_row, BATCH)) < all.rows;) {
        const uint64_t count = all.rows - at < BATCH ? all.rows - at : BATCH;
        const double share = (double)at / (double)all.rows;
        run_batch(w, (size_t)count, began + (uint64_t)(share * span));
    }
    return NULL;
}

static void *work(void *argument)
{
    worker *w = argument;
    (void)pthread_barrier_wait(&all.start);
    for (int64_t now; (now = bench_now()) < all.until;) {
        w->claimed = now < all.warm ? 0 : w->claimed;
        run_batch(w, BATCH, bench_wall_ms());
    }
    mark_last(w);
    return NULL;
}

static worker *open_workers(wb_persistence *persistence, size_t count)
{
    wb_error error = { "" };
    worker *workers = bench_zeroed(count * sizeof *workers);
    atomic_store(&next_batch, (uint64_t)getpid() * 7919);
    for (size_t i = 0; i < count; i++) {
        workers[i].random = bench_wall_ms() * 1000003 + (uint64_t)getpid() * WORKERS_MAX + i;
        if (ops->open(persistence, &workers[i].session, &error) != WB_OK)
            bench_die("%s", error.text);
    }
    return workers;
}

static void tell_when_warm(void)
{
    (void)pthread_barrier_wait(&all.start);
    for (int64_t left; (left = all.warm - bench_now()) > 0;)
        nanosleep(&(struct timespec){ left / 1000000000, left % 1000000000 }, NULL);
    puts("warm");
    fflush(stdout);
}

/* @return how many were claimed. */
static uint64_t run_workers(worker *workers, size_t count, void *(*run)(void *worker))
{
    uint64_t claimed = 0;
    for (size_t i = 0; i < count; i++)
        if (pthread_create(&workers[i].thread, NULL, run, &workers[i]) != 0)
            bench_die("no thread");
    if (run == work)
        tell_when_warm();
    for (size_t i = 0; i < count; i++) {
        (void)pthread_join(workers[i].thread, NULL);
        claimed += workers[i].claimed;
        ops->close(workers[i].session);
    }
    free(workers);
    return claimed;
}

static void fill_table(wb_persistence *persistence, size_t workers, char **arguments)
{
    all.rows = bench_number("rows", arguments[0], 1);
    all.oldest_ms = bench_number("oldest", arguments[1], 0) * 1000;
    all.youngest_ms = bench_number("youngest", arguments[2], 0) * 1000;
    if (all.oldest_ms < all.youngest_ms)
        bench_die("the oldest is younger than the youngest");
    (void)run_workers(open_workers(persistence, workers), workers, fill);
}

static void work_for(wb_persistence *persistence, size_t workers, char **arguments)
{
    const uint64_t warm = bench_number("warm", arguments[1], 0);
    const uint64_t milliseconds = bench_number("milliseconds", arguments[2], 1);
    worker *made = open_workers(persistence, workers);
    all.operations_size = (size_t)bench_number("bytes", arguments[0], 0) * BATCH;
    all.operations = bench_zeroed(all.operations_size + 1);
    for (size_t at = 0; at < all.operations_size; at += all.operations_size / BATCH)
        bench_message_body(all.operations + at, all.operations_size / BATCH, at);
    (void)pthread_barrier_init(&all.start, NULL, (unsigned)workers + 1);
    all.warm = bench_now() + (int64_t)warm * 1000000;
    all.until = all.warm + (int64_t)milliseconds * 1000000;
    const uint64_t claimed = run_workers(made, workers, work);
    printf("%.0f\n", (double)claimed * 1e9 / (double)(bench_now() - all.warm));
    free(all.operations);
}

int main(int argc, char **argv)
{
    const int fills = argc == 10 && strcmp(argv[4], "fill") == 0;
    if (!fills && !(argc == 10 && strcmp(argv[4], "work") == 0)) {
        fputs("usage: retain PLUGIN.so OPTION=VALUE,... ENDPOINT fill v4|v7 WORKERS ROWS OLDEST YOUNGEST\n"
              "       retain PLUGIN.so OPTION=VALUE,... ENDPOINT work v4|v7 WORKERS BYTES WARM MILLISECONDS\n",
              stderr);
        return 64;
    }
    const wb_plugin *plugin = bench_load_plugin(argv[1]);
    wb_endpoint_info endpoint = { .struct_size = sizeof endpoint,
                                  .name = argv[3],
                                  .mode = WB_MODE_RECEIVE_ONLY,
                                  .outbox = 1,
                                  .concurrency = 1,
                                  .batch_max = BATCH };
    wb_persistence *persistence = NULL;
    wb_error error = { "" };
    void *config = bench_plugin_config(plugin, argv[2]);
    const size_t workers = (size_t)bench_number("workers", argv[6], 1);
    ops = plugin->ops;
    ordered_ids = strcmp(argv[5], "v7") == 0;
    if (workers > WORKERS_MAX)
        bench_die("at most %d workers", WORKERS_MAX);
    if (ops->create(&bench_host, &endpoint, config, &persistence, &error) != WB_OK)
        bench_die("%s", error.text);
    if (fills)
        fill_table(persistence, workers, argv + 7);
    else
        work_for(persistence, workers, argv + 7);
    ops->destroy(persistence);
    free(config);
    return 0;
}
