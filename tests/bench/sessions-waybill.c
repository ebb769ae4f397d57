/* SPDX-License-Identifier: Apache-2.0
 *
 * Sessions of Waybill, through the public API alone.
 */
#include "config.h"

#include "tests/bench/sessions.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <waybill/pgsql.h>
#include <waybill/session.h>

#define STATEMENT "bench_order"
#define INSERT "insert into bench_order (order_id, amount) values ($1::text, $2::int4)"
#define CONNECTIONS_MAX 256

struct bench_sessions {
    const struct bench_sessions_settings *settings;
    wb_endpoint *endpoint;
    pthread_mutex_t lock; /* guards the rest */
    int prepared[CONNECTIONS_MAX]; /* the server processes that know the statement */
    unsigned prepared_count;
};

struct bench_caller {
    struct bench_sessions *sessions;
};

static void write_log(void *argument, int level, const char *line, size_t size)
{
    (void)argument;
    (void)level;
    fprintf(stderr, "%.*s\n", (int)size, line);
}

struct bench_sessions *bench_sessions_open(const struct bench_sessions_settings *settings)
{
    struct bench_sessions *s = bench_zeroed(sizeof *s);
    wb_reason reason;
    s->settings = settings;
    pthread_mutex_init(&s->lock, NULL);
    wb_log_to(write_log, NULL);
    if (wb_endpoint_open(&(wb_endpoint_options){ .config = settings->config }, sizeof(wb_endpoint_options),
                         &s->endpoint, &reason) != WB_OK)
        bench_die("%s", reason.text);
    return s;
}

void bench_sessions_close(struct bench_sessions *s)
{
    wb_endpoint_close(s->endpoint);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

struct bench_caller *bench_caller_open(struct bench_sessions *s)
{
    struct bench_caller *caller = bench_zeroed(sizeof *caller);
    caller->sessions = s;
    return caller;
}

void bench_caller_close(struct bench_caller *caller)
{
    free(caller);
}

/* A connection goes from caller to caller. @return whether the statement is there already. */
static int is_prepared(struct bench_sessions *s, int process)
{
    unsigned i = 0;
    pthread_mutex_lock(&s->lock);
    while (i < s->prepared_count && s->prepared[i] != process)
        i++;
    int found = i < s->prepared_count;
    if (!found && i < CONNECTIONS_MAX)
        s->prepared[s->prepared_count++] = process;
    pthread_mutex_unlock(&s->lock);
    return found;
}

static void check(PGconn *db, PGresult *result)
{
    if (PQresultStatus(result) != PGRES_COMMAND_OK)
        bench_die("database: %s", PQerrorMessage(db));
    PQclear(result);
}

static void insert(struct bench_sessions *s, wb_context *ctx, const wb_pgsql_params *row)
{
    PGconn *db = wb_pgsql(ctx);
    if (!db)
        bench_die("no database connection");
    if (!is_prepared(s, PQbackendPID(db)))
        check(db, PQprepare(db, STATEMENT, INSERT, 0, NULL));
    check(db, PQexecPrepared(db, STATEMENT, row->count, row->values, row->lengths, row->formats, 1));
}

void bench_caller_commit(struct bench_caller *caller, const char *order_id, const void *body,
                         size_t body_size)
{
    struct bench_sessions *s = caller->sessions;
    wb_session *session;
    wb_reason reason;
    uint32_t amount = htonl((uint32_t)body_size);
    const wb_pgsql_params row = { .count = 2,
                                  .formats = (const int[]){ 1, 1 },
                                  .lengths = (const int[]){ (int)strlen(order_id), sizeof amount },
                                  .values = (const char *const[]){ order_id, (const char *)&amount } };
    if (wb_session_open(s->endpoint, NULL, 0, &session, &reason) != WB_OK)
        bench_die("open: %s", reason.text);
    wb_context *ctx = wb_session_context(session);
    if (s->settings->is_deferred)
        (void)wb_pgsql_defer(ctx, INSERT, &row);
    else
        insert(s, ctx, &row);
    (void)wb_send(ctx, &(wb_outgoing){ .type = BENCH_OUTPUT_TYPE, .destination = s->settings->sink,
                                       .body = body, .body_size = body_size });
    if (wb_session_commit(session, &reason) != WB_OK)
        bench_die("commit: %s", reason.text);
    wb_session_close(session);
}
