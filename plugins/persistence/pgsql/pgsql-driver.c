/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/pgsql/pgsql-driver.h"

#include <poll.h>
#include <stdio.h>

#include "plugins/common/sql/transaction.h"
#include "plugins/persistence/pgsql/pgsql-session.h"

/* So long a connection that answered is taken to live, ns. */
#define TRUSTED_FOR (INT64_C(5) * 1000 * 1000 * 1000)

/* Statements the server need not keep any longer; in a transaction of their own, so that
 * a rollback does not leave open which are gone. */
static void queue_dropped(wb_storage_session *s)
{
    pgsql_cache *cache = &s->defer.cache;
    for (size_t i = 0; i < cache->dropped_count; i++) {
        char statement[PGSQL_STATEMENT_NAME_SIZE + 16];
        (void)snprintf(statement, sizeof statement, "DEALLOCATE %s", cache->dropped[i]);
        pgsql_queue_text(s, statement, NULL);
    }
    if (cache->dropped_count)
        pgsql_queue_sync(s);
    cache->dropped_count = 0;
}

/* What was dispatched goes before, by itself: without a flush to disk it costs next to nothing. */
static void queue_begin(wb_storage_session *s, const wb_begin *begin)
{
    if (!s->sql.begin_is_due) /* what is dropped meanwhile waits for the next one */
        queue_dropped(s);
    pgsql_guard_queue_before(s);
    if (begin && wb_sql_has_dispatched(begin)) {
        pgsql_queue_outside(s);
        wb_sql_queue_dispatched(s, begin);
        pgsql_queue_end(s);
    }
    pgsql_queue(s, WB_SQL_BEGIN, NULL, 0, NULL);
    if (!s->prepared)
        pgsql_session_queue_settings(s, 1);
    pgsql_guard_queue_begin(s);
}

/* A connection that a NAT has forgotten looks well: one that has rested is asked, as long as another may be opened in
 * its place. */
static int may_begin_late(wb_storage_session *s)
{
    return !s->guard.is_left && !s->defer.cache.dropped_count && s->host->now() - s->answered < TRUSTED_FOR;
}

static void queue_rollback(wb_storage_session *s)
{
    pgsql_queue(s, WB_SQL_ROLLBACK, NULL, 0, NULL);
}

static void queue_deferred(wb_storage_session *s)
{
    pgsql_defer_queue(s);
    pgsql_guard_queue_commit(s);
}

static void forget(wb_storage_session *s)
{
    pgsql_guard_forget(s);
    pgsql_defer_reset(s);
    pgsql_cache_next_round(&s->defer.cache);
}

static int is_readable(const wb_storage_session *s)
{
    struct pollfd descriptor = { .fd = PQsocket(s->connection), .events = POLLIN };
    return descriptor.fd < 0 || poll(&descriptor, 1, 0) > 0;
}

/* Once: what a server says when it closes a connection is read before the end is, and is the reason. */
static void look_for_loss(wb_storage_session *s)
{
    s->exchange.commits = 0;
    if (is_readable(s) && (!PQconsumeInput(s->connection) || PQstatus(s->connection) == CONNECTION_BAD))
        pgsql_failure_lost(s, NULL);
}

static wb_sql_standing standing(wb_storage_session *s)
{
    const PGTransactionStatusType status = PQtransactionStatus(s->connection);
    if (PQpipelineStatus(s->connection) != PQ_PIPELINE_OFF || status == PQTRANS_ACTIVE) {
        pgsql_failure_lost(s, "a handler left it in the middle of a statement");
        return WB_SQL_UNUSABLE;
    }
    return status == PQTRANS_IDLE ? WB_SQL_NOTHING : WB_SQL_TRANSACTION;
}

int pgsql_fetch(wb_sql_answer *answer, wb_sql_cell *ret_cells, size_t count)
{
    const PGresult *rows = answer->rows;
    const int row = answer->row;

    if (!rows || row >= PQntuples(rows))
        return 0;
    for (int i = 0; i < (int)count; i++) {
        ret_cells[i].data = PQgetisnull(rows, row, i) ? NULL : PQgetvalue(rows, row, i);
        ret_cells[i].size = (size_t)PQgetlength(rows, row, i);
    }
    answer->row++;
    return 1;
}

static uint64_t number(const wb_sql_cell *cell)
{
    return cell->data ? pgsql_read_u64(cell->data) : 0;
}

void pgsql_clear(wb_sql_answer *answer)
{
    PQclear(answer->rows);
    answer->rows = NULL;
}

const wb_sql_driver pgsql_driver = {
    .locks_in_transaction = 1,
    .may_begin_late = may_begin_late,
    .start = pgsql_exchange_start,
    .queue = pgsql_queue,
    .queue_text = pgsql_queue_text,
    .queue_end = pgsql_queue_end,
    .queue_begin = queue_begin,
    .queue_rollback = queue_rollback,
    .queue_deferred = queue_deferred,
    .run = pgsql_exchange_run,
    .send = pgsql_exchange_send,
    .receive = pgsql_exchange_receive,
    .forget = forget,
    .inspect = pgsql_defer_inspect,
    .look_for_loss = look_for_loss,
    .standing = standing,
    .lose = pgsql_failure_lost,
    .fetch = pgsql_fetch,
    .number = number,
    .clear = pgsql_clear,
    .connect = pgsql_session_start,
    .close = pgsql_session_close,
};
