/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/pgsql/pgsql-transaction.h"

#include <poll.h>
#include <stdio.h>

/* A field holds at most 1 GB, a message of the protocol a little more. */
#define OPERATIONS_MAX ((size_t)1000 * 1000 * 1000)

/* What a bigint holds. The milliseconds in a batch number reach it in the year 2089. */
#define BATCH_MAX ((uint64_t)INT64_MAX)

/* ---- begin ------------------------------------------------------------------- */

/* Statements the server need not keep any longer; in a transaction of their own, so that
 * a rollback does not leave open which are gone. */
static void queue_dropped(wb_storage_session *s)
{
    pgsql_cache *cache = &s->defer.cache;
    for (size_t i = 0; i < cache->dropped_count; i++) {
        char statement[PGSQL_STATEMENT_NAME_SIZE + 16];
        (void)snprintf(statement, sizeof statement, "DEALLOCATE %s", cache->dropped[i]);
        pgsql_queue_text(s, statement, NULL, 0, NULL);
    }
    if (cache->dropped_count)
        pgsql_queue_sync(s);
    cache->dropped_count = 0;
}

static void queue_begin(wb_storage_session *s, const wb_begin *begin, PGresult **ret_claimed)
{
    queue_dropped(s);
    if (begin->mark_count) {
        pgsql_queue_marks(s, begin->marks, begin->mark_count);
        pgsql_queue_sync(s);
    }
    pgsql_queue(s, PGSQL_SQL_BEGIN, NULL, 0, NULL);
    if (!s->prepared)
        pgsql_session_queue_settings(s, 1);
    if (begin->batch && begin->claim_count)
        pgsql_queue_claims(s, begin, ret_claimed);
}

static void forget_transaction(wb_storage_session *s)
{
    pgsql_defer_reset(s);
    pgsql_cache_next_round(&s->defer.cache);
    s->sql.flush_failed = s->sql.handed_out = 0;
    s->sql.last_item = WB_SQL_NO_ITEM;
}

static int claim(wb_storage_session *s, wb_begin *begin)
{
    PGresult *claimed = NULL;

    for (size_t i = 0; i < begin->claim_count; i++)
        begin->claims[i].duplicate_of = PGSQL_UNSETTLED;
    pgsql_exchange_start(s);
    s->sql.state = WB_SQL_OPEN;
    queue_begin(s, begin, &claimed);
    int result = pgsql_exchange_run(s, "claim_sent");
    if (result == WB_OK && claimed)
        return pgsql_settle_claims(s, begin, claimed);
    PQclear(claimed);
    return result;
}

int pgsql_begin(wb_storage_session *s, wb_begin *begin, wb_error *error)
{
    if (s->sql.state != WB_SQL_IDLE)
        return wb_sql_unusable(s, "begin a transaction", error);
    if (begin->batch > BATCH_MAX)
        return s->host->fail(s->host, error, WB_FATAL, WB_CAUSE_TOO_LARGE, 0,
                             "could not begin a transaction: the batch number is too large");
    forget_transaction(s);
    if (claim(s, begin) == WB_OK)
        return WB_OK;
    pgsql_undo(s);
    return wb_sql_report(s, "begin a transaction", error);
}

/* ---- commit -------------------------------------------------------------------- */

/* A connection that broke while handlers ran is found out before COMMIT is queued: then
 * it is known that nothing committed. Costs no round trip. */
static void look_for_loss(wb_storage_session *s)
{
    struct pollfd descriptor = { .fd = PQsocket(s->connection), .events = POLLIN };
    s->exchange.commits = 0;
    if (descriptor.fd < 0 ||
        (poll(&descriptor, 1, 0) > 0 &&
         (!PQconsumeInput(s->connection) || PQstatus(s->connection) == CONNECTION_BAD)))
        pgsql_failure_lost(s, NULL);
}

static void queue_commit(wb_storage_session *s, const wb_commit *commit)
{
    char batch[8];
    pgsql_write_u64(batch, commit->batch);
    pgsql_defer_queue(s);
    if (commit->operations) {
        const pgsql_value values[] = { { batch, sizeof batch },
                                       { commit->operations, commit->operations_size } };
        pgsql_queue(s, PGSQL_SQL_STORE, values, 2, NULL);
    }
    if (commit->released_count) {
        pgsql_encode_keys(&s->keys, commit->released, commit->released_count, 0);
        if (s->keys.failed)
            s->exchange.broken = s->exchange.out_of_memory = 1;
        const pgsql_value values[] = { { s->keys.data, s->keys.size }, { batch, sizeof batch } };
        pgsql_queue(s, PGSQL_SQL_RELEASE, values, 2, NULL);
    }
    pgsql_queue(s, PGSQL_SQL_COMMIT, NULL, 0, NULL);
}

/* The failure of before (a flush for the plain connection, or what a handler did) is
 * this transaction's; otherwise try. */
static int try_commit(wb_storage_session *s, const wb_commit *commit)
{
    int result = pgsql_defer_inspect(s);
    if (result != WB_OK)
        return result;
    s->sql.handed_out = 0;
    look_for_loss(s);
    if (s->sql.state == WB_SQL_LOST)
        return s->sql.failure.result;
    pgsql_exchange_start(s);
    queue_commit(s, commit);
    return pgsql_exchange_run(s, "commit_sent");
}

int pgsql_commit(wb_storage_session *s, wb_commit *commit, wb_error *error)
{
    commit->failed_item = WB_SQL_NO_ITEM;
    if (s->sql.state != WB_SQL_OPEN)
        return wb_sql_unusable(s, "commit", error);
    if (commit->operations && commit->operations_size > OPERATIONS_MAX) {
        pgsql_undo(s);
        return s->host->fail(s->host, error, WB_REJECT, WB_CAUSE_TOO_LARGE, 0,
                             "could not commit: %zu bytes of outgoing operations in one batch are "
                             "more than PostgreSQL keeps in a row",
                             commit->operations_size);
    }
    int result = try_commit(s, commit);
    if (result == WB_OK) {
        forget_transaction(s);
        if (s->sql.state == WB_SQL_OPEN)
            s->sql.state = WB_SQL_IDLE;
        return WB_OK;
    }
    commit->failed_item = s->sql.failure.item;
    pgsql_undo(s);
    return wb_sql_report(s, "commit", error);
}

/* ---- rollback -------------------------------------------------------------------- */

/* A connection in the middle of something cannot be rolled back on: giving it up makes
 * the server roll back. */
static int can_be_used(wb_storage_session *s)
{
    if (PQpipelineStatus(s->connection) == PQ_PIPELINE_OFF &&
        PQtransactionStatus(s->connection) != PQTRANS_ACTIVE)
        return 1;
    pgsql_failure_lost(s, "a handler left it in the middle of a statement");
    return 0;
}

void pgsql_undo(wb_storage_session *s)
{
    const wb_sql_failure failure = s->sql.failure;

    forget_transaction(s);
    if (s->sql.state != WB_SQL_OPEN)
        return;
    if (can_be_used(s) && PQtransactionStatus(s->connection) != PQTRANS_IDLE) {
        pgsql_exchange_start(s);
        pgsql_queue(s, PGSQL_SQL_ROLLBACK, NULL, 0, NULL);
        (void)pgsql_exchange_run(s, NULL);
    }
    if (s->sql.state == WB_SQL_OPEN)
        s->sql.state = WB_SQL_IDLE;
    if (failure.result != WB_OK)
        s->sql.failure = failure;
}

int pgsql_rollback(wb_storage_session *s, wb_error *error)
{
    if (s->sql.state == WB_SQL_OPEN) {
        s->sql.failure.result = WB_OK;
        pgsql_undo(s);
    }
    if (s->sql.state == WB_SQL_LOST)
        return wb_sql_unusable(s, "roll back", error);
    return WB_OK;
}
