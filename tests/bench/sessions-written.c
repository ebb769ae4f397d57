/* SPDX-License-Identifier: Apache-2.0
 *
 * A program that knows nothing of Waybill but what `waybill install --sql-api` made: it calls `send` in the transaction
 * of its row. Somebody else runs the endpoint.
 */
#include "config.h"

#include "tests/bench/sessions.h"

#include <arpa/inet.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NAME_MAX_SIZE 64
/* Between two looks whether everything is out. */
#define LOOK_NS 5000000
#define TIMEOUT_MS 300000

struct bench_sessions {
    const struct bench_sessions_settings *settings;
    char send[256], waits[256];
};

struct bench_caller {
    struct bench_sessions *sessions;
    PGconn *db;
};

static void prepare(PGconn *db, const char *name, const char *text)
{
    PGresult *result = PQprepare(db, name, text, 0, NULL);
    if (PQresultStatus(result) != PGRES_COMMAND_OK)
        bench_die("database: %s", PQerrorMessage(db));
    PQclear(result);
}

static PGconn *connect_database(const struct bench_sessions *s)
{
    PGconn *db = PQconnectdb("");
    if (PQstatus(db) != CONNECTION_OK)
        bench_die("database: %s", PQerrorMessage(db));
    prepare(db, "begin", "begin");
    prepare(db, "order", "insert into bench_order (order_id, amount) values ($1::text, $2::int4)");
    prepare(db, "send", s->send);
    prepare(db, "waits", s->waits);
    prepare(db, "commit", "commit");
    return db;
}

/* The table is beside the function: NAME_send, NAME_written. */
struct bench_sessions *bench_sessions_open(const struct bench_sessions_settings *settings)
{
    struct bench_sessions *s = bench_zeroed(sizeof *s);
    const char *function = settings->send ? settings->send : "";
    size_t size = strlen(function);
    if (size < 6 || size > NAME_MAX_SIZE || strcmp(function + size - 5, "_send") != 0)
        bench_die("--send is needed: the name of the function");
    s->settings = settings;
    (void)snprintf(s->send, sizeof s->send, "select \"%s\"($1::text, $2::text, $3::bytea, null, $4::text)", function);
    (void)snprintf(s->waits, sizeof s->waits, "select 1 where exists (select from \"%.*s_written\")", (int)size - 5, function);
    return s;
}

void bench_sessions_close(struct bench_sessions *s)
{
    PGconn *db = connect_database(s);
    const int64_t end = bench_now() + (int64_t)TIMEOUT_MS * 1000000;
    for (int waits = 1; waits;) {
        PGresult *result = PQexecPrepared(db, "waits", 0, NULL, NULL, NULL, 0);
        if (PQresultStatus(result) != PGRES_TUPLES_OK || bench_now() > end)
            bench_die("not everything is out: %s", PQerrorMessage(db));
        waits = PQntuples(result);
        PQclear(result);
        if (waits)
            nanosleep(&(struct timespec){ .tv_nsec = LOOK_NS }, NULL);
    }
    PQfinish(db);
    free(s);
}

struct bench_caller *bench_caller_open(struct bench_sessions *s)
{
    struct bench_caller *caller = bench_zeroed(sizeof *caller);
    caller->sessions = s;
    caller->db = connect_database(s);
    return caller;
}

void bench_caller_close(struct bench_caller *caller)
{
    PQfinish(caller->db);
    free(caller);
}

static void queue(PGconn *db, const char *name, int count, const char *const *values, const int *sizes)
{
    static const int binary[] = { 1, 1, 1, 1 };
    if (!PQsendQueryPrepared(db, name, count, values, sizes, binary, 1))
        bench_die("database: %s", PQerrorMessage(db));
}

static void expect(PGconn *db, ExecStatusType expected)
{
    PGresult *result = PQgetResult(db);
    if (PQresultStatus(result) != expected)
        bench_die("database: %s", PQerrorMessage(db));
    PQclear(result);
    if (expected != PGRES_PIPELINE_SYNC && PQgetResult(db))
        bench_die("database: a second result");
}

static void flush(PGconn *db, const ExecStatusType *results, size_t count)
{
    PQpipelineSync(db);
    for (size_t i = 0; i < count; i++)
        expect(db, results[i]);
    expect(db, PGRES_PIPELINE_SYNC);
}

/* One round trip, or one for each statement but the last two: as the loop does. */
void bench_caller_commit(struct bench_caller *caller, const char *order_id, const void *body, size_t body_size)
{
    static const ExecStatusType results[] = { PGRES_COMMAND_OK, PGRES_COMMAND_OK, PGRES_TUPLES_OK, PGRES_COMMAND_OK };
    const struct bench_sessions_settings *settings = caller->sessions->settings;
    const char *key = settings->key;
    uint32_t amount = htonl((uint32_t)body_size);
    const char *const order[] = { order_id, (const char *)&amount };
    const char *const message[] = { settings->sink, BENCH_OUTPUT_TYPE, body, key };
    const int sizes[] = { (int)strlen(settings->sink), (int)strlen(BENCH_OUTPUT_TYPE), (int)body_size, key ? (int)strlen(key) : 0 };
    PGconn *db = caller->db;
    PQenterPipelineMode(db);
    queue(db, "begin", 0, NULL, NULL);
    if (!settings->is_deferred)
        flush(db, results, 1);
    queue(db, "order", 2, order, (int[]){ (int)strlen(order_id), sizeof amount });
    if (!settings->is_deferred)
        flush(db, results + 1, 1);
    queue(db, "send", 4, message, sizes);
    queue(db, "commit", 0, NULL, NULL);
    flush(db, settings->is_deferred ? results : results + 2, settings->is_deferred ? 4 : 2);
    PQexitPipelineMode(db);
}
