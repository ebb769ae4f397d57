/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/mysql/mysql-transaction.h"

#include <poll.h>
#include <stdio.h>

/* ---- begin ------------------------------------------------------------------- */

void mys_queue_begin(wb_storage_session *s)
{
    mys_queue(s, MYS_SQL_BEGIN);
    mys_queue_list(s, &s->marks, MYS_STEP_OWN);
}

static void forget_transaction(wb_storage_session *s)
{
    mys_list_reset(&s->deferred);
    mys_list_reset(&s->marks);
    mys_watch_reset(&s->watch, 0);
    s->sql.flush_failed = s->sql.handed_out = 0;
    s->sql.last_item = WB_SQL_NO_ITEM;
}

static int claim(wb_storage_session *s, wb_begin *begin)
{
    uint64_t count_new = 0;
    const int claims = begin->batch && begin->claim_count;

    for (size_t i = 0; i < begin->claim_count; i++)
        begin->claims[i].duplicate_of = MYS_UNSETTLED;
    mys_exchange_start(s);
    int result = mys_compose_marks(s, begin->marks, begin->mark_count);
    if (result != WB_OK)
        return result;
    s->sql.state = WB_SQL_OPEN;
    mys_queue_begin(s);
    if (claims)
        mys_queue_claims(s, begin, &count_new);
    result = mys_exchange_run(s, "claim_sent");
    return result == WB_OK && claims ? mys_settle_claims(s, begin, count_new) : result;
}

int mys_begin(wb_storage_session *s, wb_begin *begin, wb_error *error)
{
    if (s->sql.state != WB_SQL_IDLE)
        return wb_sql_unusable(s, "begin a transaction", error);
    forget_transaction(s);
    if (claim(s, begin) == WB_OK)
        return WB_OK;
    mys_undo(s);
    return wb_sql_report(s, "begin a transaction", error);
}

/* ---- commit -------------------------------------------------------------------- */

/* A connection that broke while handlers ran is found out before COMMIT is sent: then it
 * is known that nothing committed. Costs no round trip: a server says nothing unasked but
 * that it goes. */
static void look_for_loss(wb_storage_session *s)
{
    struct pollfd descriptor = { .fd = mysql_get_socket(s->connection), .events = POLLIN };
    s->exchange.commit_sent = 0;
    if (!s->connection->net.pvio || descriptor.fd < 0 || poll(&descriptor, 1, 0) > 0)
        mys_failure_lost(s, NULL);
}

/* Only operations are as long as that, because what is deferred has an item. */
static int fail_too_large(wb_storage_session *s, const wb_commit *commit, wb_error *error)
{
    return s->host->fail(s->host, error, WB_REJECT, WB_CAUSE_TOO_LARGE, s->sql.failure.native_code,
                         "could not commit: %zu bytes of outgoing operations in one batch are more "
                         "than a statement holds: %s",
                         commit->operations_size, s->sql.failure.text);
}

static void queue_store(wb_storage_session *s, const wb_commit *commit)
{
    mys_put(s, MYS_SQL_STORE);
    mys_put_number(s, commit->batch);
    mys_put_text(s, ",");
    mys_put_bytes(s, commit->operations, commit->operations_size);
    mys_put(s, MYS_SQL_LIST_END);
    mys_exchange_end(s);
}

static void queue_release(wb_storage_session *s, const wb_commit *commit)
{
    for (size_t i = 0; i < commit->released_count; i += MYS_IDS_MAX) {
        const size_t rest = commit->released_count - i;
        mys_put(s, MYS_SQL_RELEASE);
        mys_put_number(s, commit->batch);
        mys_put(s, MYS_SQL_RELEASE_IDS);
        mys_put_ids(s, commit->released + i, rest < MYS_IDS_MAX ? rest : MYS_IDS_MAX);
        mys_put(s, MYS_SQL_LIST_END);
        mys_exchange_end(s);
    }
}

/* The failure of before (of what was deferred before the plain connection, or what a handler
 * did) is this transaction's; otherwise try. */
static int try_commit(wb_storage_session *s, const wb_commit *commit)
{
    int result = mys_defer_inspect(s);
    if (result != WB_OK)
        return result;
    s->sql.handed_out = 0;
    look_for_loss(s);
    if (s->sql.state == WB_SQL_LOST)
        return s->sql.failure.result;
    mys_exchange_start(s);
    mys_queue_list(s, &s->deferred, MYS_STEP_DEFERRED);
    if (commit->operations)
        queue_store(s, commit);
    queue_release(s, commit);
    mys_queue(s, MYS_SQL_COMMIT);
    return mys_exchange_run(s, "commit_sent");
}

int mys_commit(wb_storage_session *s, wb_commit *commit, wb_error *error)
{
    commit->failed_item = WB_SQL_NO_ITEM;
    if (s->sql.state != WB_SQL_OPEN)
        return wb_sql_unusable(s, "commit", error);
    int result = try_commit(s, commit);
    if (result == WB_OK) {
        forget_transaction(s);
        if (s->sql.state == WB_SQL_OPEN)
            s->sql.state = WB_SQL_IDLE;
        return WB_OK;
    }
    commit->failed_item = s->sql.failure.item;
    mys_undo(s);
    if (result == WB_REJECT && s->sql.failure.cause == WB_CAUSE_TOO_LARGE &&
        commit->failed_item == WB_SQL_NO_ITEM)
        return fail_too_large(s, commit, error);
    return wb_sql_report(s, "commit", error);
}

/* ---- rollback -------------------------------------------------------------------- */

/* A connection in the middle of something cannot be rolled back on: giving it up makes
 * the server roll back. */
static int can_be_used(wb_storage_session *s)
{
    const MYSQL *c = s->connection;
    if (c->status == MYSQL_STATUS_READY && !(c->server_status & SERVER_MORE_RESULTS_EXIST))
        return 1;
    mys_failure_lost(s, "a handler left it in the middle of a statement");
    return 0;
}

/* The marks were in the transaction, because only its flush to disk made them last; now they
 * need one of their own. */
static void roll_back(wb_storage_session *s)
{
    mys_exchange_start(s);
    mys_queue(s, MYS_SQL_ROLLBACK);
    if (s->marks.count) {
        mys_queue_list(s, &s->marks, MYS_STEP_OWN);
        mys_queue_end(s);
    }
    if (mys_exchange_run(s, NULL) != WB_OK)
        mys_failure_lost(s, NULL); /* nobody knows what is open now */
}

void mys_undo(wb_storage_session *s)
{
    const wb_sql_failure failure = s->sql.failure;

    s->exchange.commit_sent = 0; /* what ends here was not committed */
    if (s->sql.state == WB_SQL_OPEN && can_be_used(s))
        roll_back(s);
    forget_transaction(s);
    if (s->sql.state == WB_SQL_OPEN)
        s->sql.state = WB_SQL_IDLE;
    if (failure.result != WB_OK)
        s->sql.failure = failure;
}

int mys_run_outside(wb_storage_session *s)
{
    s->sql.state = WB_SQL_OPEN;
    int result = mys_exchange_run(s, NULL);
    if (result == WB_OK)
        s->sql.state = WB_SQL_IDLE;
    else
        mys_undo(s);
    return result;
}

int mys_rollback(wb_storage_session *s, wb_error *error)
{
    if (s->sql.state == WB_SQL_OPEN) {
        s->sql.failure.result = WB_OK;
        mys_undo(s);
    }
    if (s->sql.state == WB_SQL_LOST)
        return wb_sql_unusable(s, "roll back", error);
    return WB_OK;
}
