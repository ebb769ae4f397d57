/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/pgsql/pgsql-exchange.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/persistence/pgsql/pgsql-dialect.h"
#include "plugins/persistence/pgsql/pgsql-session.h"
#include "plugins/persistence/pgsql/pgsql-values.h"

/* Names of our prepared statements on the server. */
static const char *const prepared_names[WB_SQL_FREQUENT] = {
    "waybill_begin",    "waybill_claim",  "waybill_store",    "waybill_mark",
    "waybill_mark_one", "waybill_forget", "waybill_remember", "waybill_claim_late",
    "waybill_commit"
};

void pgsql_exchange_start(wb_storage_session *s)
{
    pgsql_exchange *x = &s->exchange;
    x->count = 0;
    x->is_outside = x->commits = x->committed = x->puts_back = x->broken = x->out_of_memory = 0;
    s->sql.failure.result = WB_OK;
    s->sql.failure.item = WB_SQL_NO_ITEM;
    if (PQsetnonblocking(s->connection, 1) != 0 || !PQenterPipelineMode(s->connection))
        x->broken = 1;
}

void pgsql_exchange_note(wb_storage_session *s, const pgsql_step *step, int sent)
{
    pgsql_exchange *x = &s->exchange;
    if (!sent || x->broken) {
        x->broken = 1;
        return;
    }
    if (x->count == x->capacity) {
        size_t capacity = x->capacity ? 2 * x->capacity : 128;
        pgsql_step *steps = realloc(x->steps, capacity * sizeof *steps);
        if (!steps) { /* a result would be taken for another's: give up the connection */
            x->broken = x->out_of_memory = 1;
            return;
        }
        x->steps = steps;
        x->capacity = capacity;
    }
    x->steps[x->count++] = *step;
}

static const char *text_of(const wb_storage_session *s, wb_sql_which which)
{
    if (which == WB_SQL_LOCK && s->sql.locks_in_transaction)
        which = WB_SQL_LOCK_IN_TRANSACTION;
    return s->sql.outbox->statements[which];
}

void pgsql_queue_values(wb_storage_session *s, const pgsql_step *step, const char *what,
                        const pgsql_value *values, int count)
{
    const char *data[WB_SQL_VALUES_MAX];
    int sizes[WB_SQL_VALUES_MAX];
    static const int binary[WB_SQL_VALUES_MAX] = { 1, 1, 1, 1, 1, 1, 1, 1 };

    if (s->exchange.broken)
        return;
    for (int i = 0; i < count; i++) {
        data[i] = values[i].data;
        sizes[i] = (int)values[i].size;
    }
    /* from here on the server may see it, whatever libpq answers */
    s->exchange.commits |= step->kind == PGSQL_STEP_COMMIT;
    int sent = step->is_prepared
                   ? PQsendQueryPrepared(s->connection, what, count, data, sizes, binary, 1)
                   : PQsendQueryParams(s->connection, what, count, NULL, data, sizes, binary, 1);
    pgsql_exchange_note(s, step, sent);
}

static void queue_values(wb_storage_session *s, wb_sql_which which, const pgsql_value *values,
                         int count, wb_sql_answer *ret_answer)
{
    const pgsql_step step = { .kind = which == WB_SQL_COMMIT ? PGSQL_STEP_COMMIT : PGSQL_STEP_OWN,
                              .is_prepared = s->prepared && which < WB_SQL_FREQUENT,
                              .item = WB_SQL_NO_ITEM,
                              .ret_answer = ret_answer };
    pgsql_queue_values(s, &step, step.is_prepared ? prepared_names[which] : text_of(s, which),
                       values, count);
}

void pgsql_queue_outside(wb_storage_session *s)
{
    if (s->prepared)
        return;
    queue_values(s, WB_SQL_BEGIN, NULL, 0, NULL);
    pgsql_session_queue_settings(s, 1);
    s->exchange.is_outside = 1;
}

void pgsql_queue_end(wb_storage_session *s)
{
    if (s->exchange.is_outside)
        pgsql_queue_text(s, "COMMIT", NULL); /* ours, and not in doubt */
    s->exchange.is_outside = 0;
    pgsql_queue_sync(s);
}

/* The first of an exchange, and no transaction is open. */
static int starts_outside(const wb_storage_session *s)
{
    return s->sql.state == WB_SQL_IDLE && !s->exchange.count && !s->exchange.broken &&
           PQtransactionStatus(s->connection) == PQTRANS_IDLE;
}

void pgsql_queue(wb_storage_session *s, wb_sql_which which, const wb_sql_value *values,
                 size_t count, wb_sql_answer *ret_answer)
{
    pgsql_value encoded[WB_SQL_VALUES_MAX] = { { 0 } };

    if (which == WB_SQL_LOCK && s->sql.locks_in_transaction)
        pgsql_queue(s, WB_SQL_BEGIN, NULL, 0, NULL);
    else if (which != WB_SQL_BEGIN && starts_outside(s))
        pgsql_queue_outside(s);
    for (size_t i = 0; i < count; i++)
        if (pgsql_encode(s, &values[i], i, &encoded[i]) != 0)
            s->exchange.broken = s->exchange.out_of_memory = 1;
    if (!s->exchange.broken)
        queue_values(s, which, encoded, (int)count, ret_answer);
}

void pgsql_queue_text(wb_storage_session *s, const char *statement, wb_sql_answer *ret_answer)
{
    const pgsql_step step = { .kind = PGSQL_STEP_OWN, .item = WB_SQL_NO_ITEM,
                              .ret_answer = ret_answer };
    if (!s->exchange.broken)
        pgsql_exchange_note(s, &step,
                            PQsendQueryParams(s->connection, statement, 0, NULL, NULL, NULL, NULL,
                                              0));
}

void pgsql_queue_preparations(wb_storage_session *s)
{
    const pgsql_step step = { .kind = PGSQL_STEP_OWN, .item = WB_SQL_NO_ITEM };
    char *const *texts = s->sql.outbox->statements;
    for (int i = 0; i < WB_SQL_FREQUENT && !s->exchange.broken; i++)
        if (texts[i])
            pgsql_exchange_note(s, &step,
                                PQsendPrepare(s->connection, prepared_names[i], texts[i], 0, NULL));
}

static int ends_with_sync(const pgsql_exchange *x)
{
    return x->count && x->steps[x->count - 1].kind == PGSQL_STEP_SYNC;
}

void pgsql_queue_sync(wb_storage_session *s)
{
    const pgsql_step step = { .kind = PGSQL_STEP_SYNC, .item = WB_SQL_NO_ITEM };
    if (!s->exchange.broken && !ends_with_sync(&s->exchange))
        pgsql_exchange_note(s, &step, PQpipelineSync(s->connection));
}

/* Wait until the socket is ready for `events`, and take in what has arrived.
 * @return 0, or -1: the connection is gone, or was given up. */
static int pump(wb_storage_session *s, short events)
{
    const int64_t timeout = s->persistence->config->reply_timeout;
    struct pollfd descriptor = { .fd = PQsocket(s->connection), .events = events };
    int ready;

    if (descriptor.fd < 0)
        return -1;
    do
        ready = poll(&descriptor, 1, timeout ? (int)(timeout / 1000000) + 1 : -1);
    while (ready < 0 && errno == EINTR);
    if (ready == 0) {
        pgsql_failure_lost(s, "the server has not answered within reply_timeout");
        return -1;
    }
    if (descriptor.revents & (POLLIN | POLLERR | POLLHUP))
        return PQconsumeInput(s->connection) ? 0 : -1;
    return ready < 0 ? -1 : 0;
}

/* Reads while it writes: a server that cannot get rid of its answers stops reading. */
static int flush(wb_storage_session *s)
{
    int rest;
    while ((rest = PQflush(s->connection)) > 0)
        if (pump(s, POLLIN | POLLOUT) != 0)
            return -1;
    return rest;
}

/* The next result, or NULL: no more for this step, or the connection was given up.
 * A connection that breaks still yields what arrived before, then an error result. */
static PGresult *next_result(wb_storage_session *s)
{
    while (s->sql.state != WB_SQL_LOST && PQisBusy(s->connection))
        if (flush(s) != 0 || pump(s, POLLIN) != 0)
            break;
    return s->sql.state == WB_SQL_LOST ? NULL : PQgetResult(s->connection);
}

static void take_result(wb_storage_session *s, const pgsql_step *step, PGresult *result)
{
    const ExecStatusType status = PQresultStatus(result);

    switch (status) {
    case PGRES_COMMAND_OK:
    case PGRES_TUPLES_OK:
    case PGRES_EMPTY_QUERY:
        if (step->kind == PGSQL_STEP_PREPARE)
            step->cached->is_ready = 1;
        if (step->kind == PGSQL_STEP_GUARD)
            s->guard.is_left = 0;
        if (step->kind == PGSQL_STEP_COMMIT)
            s->exchange.committed = strcmp(PQcmdStatus(result), "COMMIT") == 0;
        if (step->ret_answer)
            step->ret_answer->affected += strtoull(PQcmdTuples(result), NULL, 10);
        if (step->ret_answer && status == PGRES_TUPLES_OK && !step->ret_answer->rows) {
            step->ret_answer->rows = result;
            return;
        }
        break;
    case PGRES_PIPELINE_SYNC:
    case PGRES_PIPELINE_ABORTED: break;
    case PGRES_COPY_IN:
    case PGRES_COPY_OUT:
    case PGRES_COPY_BOTH: pgsql_failure_lost(s, "a statement started a copy"); break;
    default: pgsql_failure_record(s, step, result); break;
    }
    PQclear(result);
}

/* Read what belongs to one step. @return 0, or -1: nothing more can be read. */
static int read_step(wb_storage_session *s, const pgsql_step *step)
{
    if (step->kind == PGSQL_STEP_PREPARE)
        step->cached->is_sent = 0;
    for (;;) {
        PGresult *result = next_result(s);
        if (!result && (s->sql.state == WB_SQL_LOST || PQstatus(s->connection) == CONNECTION_BAD))
            return -1;
        if (!result && step->kind != PGSQL_STEP_SYNC)
            return 0;
        if (!result)
            continue;
        int ends = PQresultStatus(result) == PGRES_PIPELINE_SYNC;
        take_result(s, step, result);
        if (ends)
            return 0;
    }
}

static void read_all(wb_storage_session *s)
{
    for (size_t i = 0; i < s->exchange.count && s->sql.state != WB_SQL_LOST; i++)
        if (read_step(s, &s->exchange.steps[i]) != 0)
            break;
}

/* Back to libpq's ordinary mode, if the connection is as good as it was. */
static void leave(wb_storage_session *s)
{
    if (s->sql.state == WB_SQL_LOST)
        return;
    if (s->exchange.broken || PQstatus(s->connection) == CONNECTION_BAD ||
        !PQexitPipelineMode(s->connection) || PQsetnonblocking(s->connection, 0) != 0)
        pgsql_failure_lost(s, NULL);
}

void pgsql_exchange_send(wb_storage_session *s, const char *crash_point)
{
    const pgsql_exchange *x = &s->exchange;

    pgsql_queue_sync(s);
    if (x->out_of_memory)
        pgsql_failure_lost(s, "out of memory");
    else if (x->broken && PQstatus(s->connection) == CONNECTION_OK)
        pgsql_failure_lost(s, NULL); /* the server would wait for the rest for ever */
    else if (!x->broken && flush(s) == 0 && crash_point)
        s->host->crash_point(crash_point);
}

int pgsql_exchange_receive(wb_storage_session *s)
{
    const pgsql_exchange *x = &s->exchange;

    /* also after a failed write: the server may have said why it went away */
    read_all(s);
    leave(s);
    if (s->sql.state != WB_SQL_LOST)
        s->answered = s->host->now();
    if (x->puts_back && s->sql.failure.result != WB_OK) /* perhaps that failed: nothing begins before it is done */
        s->guard.is_left = 1;
    if (x->committed) /* what is lost after that answer is only the connection */
        return WB_OK;
    if (x->commits && s->sql.failure.result == WB_OK) {
        s->sql.failure = (wb_sql_failure){ .result = WB_RETRY, .item = WB_SQL_NO_ITEM };
        (void)snprintf(s->sql.failure.text, sizeof s->sql.failure.text,
                       "the server rolled the transaction back at its end");
    }
    return s->sql.failure.result;
}

int pgsql_exchange_run(wb_storage_session *s, const char *crash_point)
{
    pgsql_exchange_send(s, crash_point);
    return pgsql_exchange_receive(s);
}
