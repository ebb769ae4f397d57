/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions by hand: business row and operations row in one transaction, which is one round trip if
 * the row may travel with the commit; one further thread publishes what was committed in windows of
 * up to 100, waits for the confirms once, and deletes the rows in a transaction that is not flushed.
 * With a control message each commit is preceded by one that the caller publishes, confirmed, on a
 * connection of its own. A new process would send what is in the table.
 *
 * The operations that are stored are the frames themselves. Statements are prepared, parameters binary.
 */
#include "config.h"

#include "tests/bench/amqp-link.h"
#include "tests/bench/sessions.h"

#include <arpa/inet.h>
#include <libpq-fe.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW_MAX 100

static const struct {
    const char *name;
    const char *text;
} statements[] = {
    { "begin", "begin" },
    { "order", "insert into bench_order (order_id, amount) values ($1::text, $2::int4)" },
    { "store", "insert into loop_pending (batch, operations) values ($1::int8, $2::bytea)" },
    { "record", "insert into loop_dedup (key, batch) values ($1::bytea, $2::int8)" },
    { "commit", "commit" },
    { "mark", "with loose as (select set_config('synchronous_commit', 'off', true))"
              " delete from loop_pending using loose where batch = any ($1::int8[])" },
    { "mark-one", "with loose as (select set_config('synchronous_commit', 'off', true))"
                  " delete from loop_pending using loose where batch = $1::int8" },
};

/* What one session committed. */
struct parcel {
    struct parcel *next;
    uint64_t batch;
    struct bench_bytes frames;
};

struct bench_sessions {
    const struct bench_sessions_settings *settings;
    pthread_t publisher;
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t changed;
    struct parcel *first, *last;
    uint64_t last_batch;
    int is_closing;
};

struct bench_caller {
    struct bench_sessions *sessions;
    PGconn *db;
    struct bench_sender sender; /* for control messages */
    struct bench_bytes control;
};

/* ---- the database ----------------------------------------------------------------- */

static void expect(PGconn *db, ExecStatusType expected)
{
    PGresult *result = PQgetResult(db);
    if (PQresultStatus(result) != expected)
        bench_die("database: %s", PQerrorMessage(db));
    PQclear(result);
    if (expected != PGRES_PIPELINE_SYNC && PQgetResult(db))
        bench_die("database: a second result");
}

static PGconn *connect_database(void)
{
    PGconn *db = PQconnectdb("");
    if (PQstatus(db) != CONNECTION_OK)
        bench_die("database: %s", PQerrorMessage(db));
    for (size_t i = 0; i < sizeof statements / sizeof statements[0]; i++)
        PQclear(PQprepare(db, statements[i].name, statements[i].text, 0, NULL));
    return db;
}

static void queue(PGconn *db, const char *name, int count, const void *const *values,
                  const int *sizes)
{
    static const int binary[] = { 1, 1 };
    if (!PQsendQueryPrepared(db, name, count, (const char *const *)values, sizes, binary, 1))
        bench_die("database: %s", PQerrorMessage(db));
}

static void queue_order(PGconn *db, const char *order_id, size_t amount)
{
    uint32_t wire = htonl((uint32_t)amount);
    queue(db, "order", 2, (const void *[]){ order_id, &wire },
          (int[]){ (int)strlen(order_id), sizeof wire });
}

/* @return the number of its results. */
static int queue_commit(PGconn *db, const char *record, const struct parcel *parcel)
{
    uint32_t batch[2] = { htonl((uint32_t)(parcel->batch >> 32)), htonl((uint32_t)parcel->batch) };
    queue(db, "store", 2, (const void *[]){ batch, parcel->frames.data },
          (int[]){ sizeof batch, (int)parcel->frames.size });
    if (record)
        queue(db, "record", 2, (const void *[]){ record, batch },
              (int[]){ (int)strlen(record), sizeof batch });
    queue(db, "commit", 0, NULL, NULL);
    return record ? 3 : 2;
}

/* Sends what is queued and awaits so many results. */
static void run(PGconn *db, int results)
{
    PQpipelineSync(db);
    for (; results > 0; results--)
        expect(db, PGRES_COMMAND_OK);
    expect(db, PGRES_PIPELINE_SYNC);
}

static void commit_deferred(PGconn *db, const char *order_id, size_t amount, const char *record,
                            const struct parcel *parcel)
{
    PQenterPipelineMode(db);
    queue(db, "begin", 0, NULL, NULL);
    queue_order(db, order_id, amount);
    run(db, 2 + queue_commit(db, record, parcel));
    PQexitPipelineMode(db);
}

/* A program that has the connection begins, and waits for each statement. */
static void commit_plain(PGconn *db, const char *order_id, size_t amount, const char *record,
                         const struct parcel *parcel)
{
    queue(db, "begin", 0, NULL, NULL);
    expect(db, PGRES_COMMAND_OK);
    queue_order(db, order_id, amount);
    expect(db, PGRES_COMMAND_OK);
    PQenterPipelineMode(db);
    run(db, queue_commit(db, record, parcel));
    PQexitPipelineMode(db);
}

/* ---- the publisher --------------------------------------------------------------------- */

/* What is there, one to 100; waits for the first. @return how many, 0 at the end. */
static size_t take(struct bench_sessions *s, struct parcel **parcels)
{
    size_t count = 0;
    pthread_mutex_lock(&s->lock);
    while (!s->first && !s->is_closing)
        pthread_cond_wait(&s->changed, &s->lock);
    for (; s->first && count < WINDOW_MAX; count++) {
        parcels[count] = s->first;
        s->first = s->first->next;
    }
    pthread_mutex_unlock(&s->lock);
    return count;
}

/* A list is planned anew each time. */
static void mark_one(PGconn *db, uint64_t batch)
{
    char number[21];
    (void)snprintf(number, sizeof number, "%llu", (unsigned long long)batch);
    if (!PQsendQueryPrepared(db, "mark-one", 1, (const char *const[]){ number }, NULL, NULL, 1))
        bench_die("database: %s", PQerrorMessage(db));
    expect(db, PGRES_COMMAND_OK);
}

static void mark(PGconn *db, struct parcel *const *parcels, size_t count)
{
    char list[WINDOW_MAX * 21 + 3] = "{";
    size_t size = 1;
    for (size_t i = 0; i < count; i++)
        size += (size_t)snprintf(list + size, sizeof list - size, "%s%llu", i ? "," : "",
                                 (unsigned long long)parcels[i]->batch);
    memcpy(list + size, "}", 2);
    if (!PQsendQueryPrepared(db, "mark", 1, (const char *const[]){ list }, NULL, NULL, 1))
        bench_die("database: %s", PQerrorMessage(db));
    expect(db, PGRES_COMMAND_OK);
}

static void *publish(void *argument)
{
    struct bench_sessions *s = argument;
    struct parcel *parcels[WINDOW_MAX];
    struct bench_bytes window = { 0 };
    struct bench_sender sender;
    PGconn *db = connect_database();
    bench_sender_open(&sender);
    for (size_t count; (count = take(s, parcels)) > 0;) {
        window.size = 0;
        for (size_t i = 0; i < count; i++)
            bench_bytes_put(&window, parcels[i]->frames.data, parcels[i]->frames.size);
        bench_sender_dispatch(&sender, window.data, window.size, count);
        if (count == 1)
            mark_one(db, parcels[0]->batch);
        else
            mark(db, parcels, count);
        for (size_t i = 0; i < count; i++) {
            free(parcels[i]->frames.data);
            free(parcels[i]);
        }
    }
    bench_amqp_close(sender.connection);
    free(sender.confirmed);
    free(window.data);
    PQfinish(db);
    return NULL;
}

static void hand_over(struct bench_sessions *s, struct parcel *parcel)
{
    pthread_mutex_lock(&s->lock);
    *(s->first ? &s->last->next : &s->first) = parcel;
    s->last = parcel;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

/* ---- what sessions.c calls -------------------------------------------------------------- */

struct bench_sessions *bench_sessions_open(const struct bench_sessions_settings *settings)
{
    struct bench_sessions *s = bench_zeroed(sizeof *s);
    s->settings = settings;
    s->last_batch = bench_wall_ms() << 22;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    if (pthread_create(&s->publisher, NULL, publish, s))
        bench_die("cannot start a thread");
    return s;
}

void bench_sessions_close(struct bench_sessions *s)
{
    pthread_mutex_lock(&s->lock);
    s->is_closing = 1;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->publisher, NULL);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

struct bench_caller *bench_caller_open(struct bench_sessions *s)
{
    struct bench_caller *caller = bench_zeroed(sizeof *caller);
    caller->sessions = s;
    caller->db = connect_database();
    if (s->settings->sends_control)
        bench_sender_open(&caller->sender);
    return caller;
}

void bench_caller_close(struct bench_caller *caller)
{
    if (caller->sender.connection)
        bench_amqp_close(caller->sender.connection);
    free(caller->sender.confirmed);
    free(caller->control.data);
    PQfinish(caller->db);
    free(caller);
}

static uint64_t next_batch(struct bench_sessions *s)
{
    pthread_mutex_lock(&s->lock);
    uint64_t batch = ++s->last_batch;
    pthread_mutex_unlock(&s->lock);
    return batch;
}

static void send_control(struct bench_caller *caller, const char *id)
{
    const struct bench_envelope envelope = { .id = id, .conversation_id = id, .type = "Bench.Control",
                                             .endpoint = "bench.loop" };
    caller->control.size = 0;
    bench_amqp_encode(&caller->control, caller->sessions->settings->control, &envelope, "", 0);
    bench_sender_dispatch(&caller->sender, caller->control.data, caller->control.size, 1);
}

void bench_caller_commit(struct bench_caller *caller, const char *order_id, const void *body,
                         size_t body_size)
{
    struct bench_sessions *s = caller->sessions;
    struct parcel *parcel = bench_zeroed(sizeof *parcel);
    char id[BENCH_ID_SIZE + 1];
    bench_caused_id(id, order_id, strlen(order_id));
    const struct bench_envelope envelope = { .id = id, .conversation_id = id, .type = BENCH_OUTPUT_TYPE,
                                             .endpoint = "bench.loop" };
    parcel->batch = next_batch(s);
    bench_amqp_encode(&parcel->frames, s->settings->sink, &envelope, body, body_size);
    if (s->settings->sends_control)
        send_control(caller, order_id);
    (s->settings->is_deferred ? commit_deferred : commit_plain)(
        caller->db, order_id, body_size, s->settings->keeps_record ? order_id : NULL, parcel);
    hand_over(s, parcel);
}
