/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/sql/transaction.h"

#include "plugins/common/sql/apart.h"
#include "plugins/common/sql/delayed.h"
#include "plugins/common/sql/positions.h"

/* ---- begin ------------------------------------------------------------------- */

static void forget_transaction(wb_storage_session *session)
{
    wb_sql_session *s = wb_sql_of(session);
    s->outbox->driver->forget(session);
    s->flush_failed = s->handed_out = s->begin_is_due = 0;
    s->last_item = WB_SQL_NO_ITEM;
}

static int claim(wb_storage_session *session, wb_begin *begin)
{
    wb_sql_session *s = wb_sql_of(session);
    const wb_sql_driver *driver = s->outbox->driver;
    const int claims = begin->batch && begin->claim_count;
    wb_sql_answer claimed = { 0 };
    wb_sql_found_positions found;

    for (size_t i = 0; i < begin->claim_count; i++)
        begin->claims[i].duplicate_of = WB_SQL_UNSETTLED;
    driver->start(session);
    s->state = WB_SQL_OPEN;
    driver->queue_begin(session, begin);
    const int lacks_memory = wb_sql_queue_positions(session, begin, &found) != 0;
    if (claims)
        wb_sql_queue_claims(session, begin, &claimed);
    int result = driver->run(session, "claim_sent");
    if (result == WB_OK && lacks_memory)
        result = wb_sql_note(session, WB_RETRY, WB_CAUSE_SERVER, WB_SQL_NO_ITEM, "out of memory");
    if (result == WB_OK)
        result = wb_sql_settle_positions(session, begin, &found);
    wb_sql_clear_positions(session, &found);
    return result == WB_OK && claims ? wb_sql_settle_claims(session, begin, claimed.affected)
                                     : result;
}

/* Nothing is asked yet: BEGIN goes with the first statement. A connection that broke meanwhile is found
 * out all the same, as long as another may be opened in its place. */
static int begin_late(wb_storage_session *session)
{
    wb_sql_session *s = wb_sql_of(session);
    s->failure.result = WB_OK;
    for (int looks = 0; looks < 2 && s->state != WB_SQL_LOST; looks++) /* behind the server's last words is the end */
        s->outbox->driver->look_for_loss(session);
    if (s->state == WB_SQL_LOST)
        return s->failure.result;
    s->state = WB_SQL_OPEN;
    s->begin_is_due = 1;
    return WB_OK;
}

void wb_sql_queue_due_begin(wb_storage_session *session)
{
    const wb_sql_session *s = wb_sql_of(session);
    if (s->begin_is_due)
        s->outbox->driver->queue_begin(session, NULL);
}

static int may_begin_late(wb_storage_session *session, const wb_begin *begin)
{
    const wb_sql_driver *driver = wb_sql_of(session)->outbox->driver;
    return driver->may_begin_late && begin->batch && !begin->claim_count && !wb_sql_has_dispatched(begin) &&
           !wb_sql_count_positions(begin) && driver->may_begin_late(session);
}

int wb_sql_begin(wb_storage_session *session, wb_begin *begin, wb_error *error)
{
    const wb_sql_session *s = wb_sql_of(session);
    const wb_host *host = s->outbox->host;

    if (s->state != WB_SQL_IDLE)
        return wb_sql_unusable(session, "begin a transaction", error);
    if (begin->batch > s->outbox->dialect->batch_max)
        return host->fail(host, error, WB_FATAL, WB_CAUSE_TOO_LARGE, 0,
                          "could not begin a transaction: the batch number is too large");
    forget_transaction(session);
    if ((may_begin_late(session, begin) ? begin_late(session) : claim(session, begin)) == WB_OK)
        return WB_OK;
    wb_sql_undo(session);
    return wb_sql_report(session, "begin a transaction", error);
}

/* ---- check --------------------------------------------------------------------- */

int wb_sql_check(wb_storage_session *session, size_t item, wb_error *error)
{
    const wb_sql_session *s = wb_sql_of(session);
    const wb_host *host = s->outbox->host;
    int result = s->state == WB_SQL_IDLE ? WB_OK : s->outbox->driver->inspect(session);

    if (s->state == WB_SQL_LOST && result != WB_REJECT) /* a handler that ended it outranks that */
        return wb_sql_unusable(session, "go on with the transaction", error);
    if (result == WB_OK)
        return WB_OK;
    /* not this item's doing: nobody may be blamed for it before its item runs alone */
    if (s->failure.item != item && s->failure.item != WB_SQL_NO_ITEM)
        return host->fail(host, error, WB_ABORT, WB_CAUSE_OTHER, s->failure.native_code,
                          "a statement that another message deferred failed: %s",
                          s->failure.text);
    return host->fail(host, error, result, s->failure.cause, s->failure.native_code, "%s",
                      s->failure.text);
}

/* ---- commit -------------------------------------------------------------------- */

void wb_sql_queue_keys(wb_storage_session *session, wb_sql_which statement, const wb_claim *claims, size_t count,
                       uint64_t batch)
{
    const wb_sql_outbox *outbox = wb_sql_of(session)->outbox;
    const size_t most = outbox->dialect->keys_max;
    for (size_t i = 0; i < count; i += most) {
        const size_t rest = count - i;
        const wb_sql_value values[] = {
            WB_SQL_KEYS(WB_SQL_SOME_KEYS, session, claims + i, rest < most ? rest : most),
            WB_SQL_NUMBER(batch),
        };
        outbox->driver->queue(session, statement, values, 2, NULL);
    }
}

static void queue_late_claim(wb_storage_session *session, const wb_claim *claim, uint64_t batch)
{
    unsigned char room[WB_SQL_KEY_ROOM];
    const wb_sql_value alone = WB_SQL_KEYS(WB_SQL_SOME_KEYS, session, claim, 1);
    const wb_sql_key key = wb_sql_listed_key(&alone, 0, room);
    const wb_sql_value values[] = { WB_SQL_BYTES(key.data, key.size), WB_SQL_NUMBER(batch) };
    wb_sql_of(session)->outbox->driver->queue(session, WB_SQL_CLAIM_LATE, values, 2, NULL);
}

/* A statement each: a session has one, and no list is as cheap as a row. */
static void queue_late_claims(wb_storage_session *session, const wb_commit *commit)
{
    const size_t count = WB_HAS(commit, wb_commit, claim_count) ? commit->claim_count : 0;
    for (size_t i = 0; i < count; i++) {
        if (commit->claims[i].duplicate_of)
            wb_sql_queue_keys(session, WB_SQL_RELEASE, &commit->claims[i], 1, commit->claims[i].duplicate_of);
        queue_late_claim(session, &commit->claims[i], commit->batch);
    }
}

static void queue_commit(wb_storage_session *session, const wb_commit *commit,
                         const wb_sql_columns *delayed)
{
    const wb_sql_driver *driver = wb_sql_of(session)->outbox->driver;
    const wb_sql_value stored[] = { WB_SQL_NUMBER(commit->batch),
                                    WB_SQL_BYTES(commit->operations, commit->operations_size) };
    wb_sql_queue_due_begin(session);
    driver->queue_deferred(session);
    if (commit->operations)
        driver->queue(session, WB_SQL_STORE, stored, 2, NULL);
    wb_sql_queue_keys(session, WB_SQL_RELEASE, commit->released, commit->released_count, commit->batch);
    wb_sql_queue_set_back(session, commit);
    wb_sql_delayed_queue(session, delayed);
    queue_late_claims(session, commit);
    driver->queue(session, WB_SQL_COMMIT, NULL, 0, NULL);
}

/* The failure of before (of what was deferred before the plain connection, or what a handler
 * did) is this transaction's; otherwise try. A connection that broke while handlers ran is
 * found out before COMMIT is sent: then it is known that nothing committed. */
static int try_commit(wb_storage_session *session, const wb_commit *commit,
                      const wb_sql_columns *delayed)
{
    wb_sql_session *s = wb_sql_of(session);
    const wb_sql_driver *driver = s->outbox->driver;

    if (commit->operations && commit->operations_size > s->outbox->dialect->operations_max)
        return wb_sql_note(session, WB_REJECT, WB_CAUSE_TOO_LARGE, WB_SQL_NO_ITEM,
                           "a row does not hold it");
    int result = wb_sql_delayed_fit(session, delayed);
    if (result == WB_OK)
        result = driver->inspect(session);
    if (result != WB_OK)
        return result;
    s->handed_out = 0;
    driver->look_for_loss(session);
    if (s->state == WB_SQL_LOST)
        return s->failure.result;
    driver->start(session);
    queue_commit(session, commit, delayed);
    return driver->run(session, "commit_sent");
}

static size_t outgoing_size(const wb_commit *commit, const wb_sql_columns *delayed)
{
    size_t size = commit->operations_size;
    for (size_t i = 0; i < delayed->count; i++)
        size += delayed->operations[i].size;
    return size;
}

/* Only operations are as long as that, because what is deferred has an item. */
static int report_commit(wb_storage_session *session, const wb_commit *commit,
                         const wb_sql_columns *delayed, wb_error *error)
{
    const wb_sql_session *s = wb_sql_of(session);
    const wb_host *host = s->outbox->host;
    const wb_sql_failure *f = &s->failure;
    if (f->result != WB_REJECT || f->cause != WB_CAUSE_TOO_LARGE || f->item != WB_SQL_NO_ITEM)
        return wb_sql_report(session, "commit", error);
    return host->fail(host, error, WB_REJECT, WB_CAUSE_TOO_LARGE, f->native_code,
                      "could not commit: %zu bytes of outgoing operations in one batch are more "
                      "than the server takes: %s",
                      outgoing_size(commit, delayed), f->text);
}

static int make_delayed(const wb_commit *commit, wb_sql_columns *columns)
{
    const size_t count = WB_HAS(commit, wb_commit, delayed_count) ? commit->delayed_count : 0;
    return count ? wb_sql_delayed_columns(commit->delayed, count, columns) : 0;
}

int wb_sql_commit(wb_storage_session *session, wb_commit *commit, wb_error *error)
{
    wb_sql_session *s = wb_sql_of(session);
    wb_sql_columns delayed = { 0 };

    commit->failed_item = WB_SQL_NO_ITEM;
    if (s->state != WB_SQL_OPEN)
        return wb_sql_unusable(session, "commit", error);
    int result = make_delayed(commit, &delayed) == 0 ? try_commit(session, commit, &delayed)
                                                     : wb_sql_delayed_no_memory(session);
    if (result == WB_OK) {
        forget_transaction(session);
        if (s->state == WB_SQL_OPEN)
            s->state = WB_SQL_IDLE;
    } else {
        commit->failed_item = s->failure.item;
        wb_sql_undo(session);
        result = report_commit(session, commit, &delayed, error);
    }
    wb_sql_columns_free(&delayed);
    return result;
}

/* ---- rollback -------------------------------------------------------------------- */

/* A connection in the middle of something cannot be rolled back on: giving it up makes the
 * server roll back. So does one that does not answer: nobody knows what is open. */
static void roll_back(wb_storage_session *session)
{
    const wb_sql_driver *driver = wb_sql_of(session)->outbox->driver;
    if (driver->standing(session) != WB_SQL_TRANSACTION)
        return;
    driver->start(session);
    driver->queue_rollback(session);
    if (driver->run(session, NULL) != WB_OK)
        driver->lose(session, NULL);
}

void wb_sql_undo(wb_storage_session *session)
{
    wb_sql_session *s = wb_sql_of(session);
    const wb_sql_failure failure = s->failure;

    s->handed_out = 0;
    if (s->state == WB_SQL_OPEN)
        roll_back(session);
    forget_transaction(session);
    if (s->state == WB_SQL_OPEN)
        s->state = WB_SQL_IDLE;
    if (failure.result != WB_OK)
        s->failure = failure;
}

int wb_sql_rollback(wb_storage_session *session, wb_error *error)
{
    wb_sql_session *s = wb_sql_of(session);
    if (s->state == WB_SQL_OPEN) {
        s->failure.result = WB_OK;
        wb_sql_undo(session);
    }
    if (s->state == WB_SQL_LOST)
        return wb_sql_unusable(session, "roll back", error);
    return WB_OK;
}

/* ---- outside of a batch ------------------------------------------------------------ */

/* Where a server begins a transaction with any statement, one is open while this runs. */
static void begin_outside(wb_storage_session *session)
{
    wb_sql_session *s = wb_sql_of(session);
    s->outbox->driver->queue_end(session);
    s->state = WB_SQL_OPEN;
}

static int end_outside(wb_storage_session *session, int result)
{
    wb_sql_session *s = wb_sql_of(session);
    if (result == WB_OK && s->state == WB_SQL_OPEN)
        s->state = WB_SQL_IDLE;
    else if (result != WB_OK)
        wb_sql_undo(session);
    return result;
}

int wb_sql_run_outside(wb_storage_session *session, const char *crash_point)
{
    begin_outside(session);
    return end_outside(session, wb_sql_of(session)->outbox->driver->run(session, crash_point));
}

void wb_sql_send_outside(wb_storage_session *session, const char *crash_point)
{
    begin_outside(session);
    wb_sql_of(session)->outbox->driver->send(session, crash_point);
}

int wb_sql_receive_outside(wb_storage_session *session)
{
    return end_outside(session, wb_sql_of(session)->outbox->driver->receive(session));
}

/* Mostly one: a server that plans may plan it once, what it does not do with a list. */
static void queue_gone(wb_storage_session *session, const wb_mark *marks, size_t count)
{
    const wb_sql_outbox *outbox = wb_sql_of(session)->outbox;
    const wb_sql_value gone = WB_SQL_LIST(WB_SQL_GONE_BATCHES, marks, count);
    const wb_sql_value one = WB_SQL_NUMBER(marks[0].batch);
    const size_t listed = wb_sql_count_listed(&gone);

    if (count == 1 && !marks[0].remaining && outbox->statements[WB_SQL_MARK_ONE])
        outbox->driver->queue(session, WB_SQL_MARK_ONE, &one, 1, NULL);
    else if (listed)
        outbox->driver->queue(session, listed > 1 && outbox->statements[WB_SQL_MARK_MANY] ? WB_SQL_MARK_MANY : WB_SQL_MARK,
                              &gone, 1, NULL);
}

static void queue_marks(wb_storage_session *session, const wb_mark *marks, size_t count)
{
    const wb_sql_driver *driver = wb_sql_of(session)->outbox->driver;

    if (count)
        queue_gone(session, marks, count);
    for (size_t i = 0; i < count; i++) {
        const wb_sql_value values[] = {
            WB_SQL_NUMBER(marks[i].batch),
            WB_SQL_BYTES(marks[i].remaining, marks[i].remaining_size),
        };
        if (marks[i].remaining)
            driver->queue(session, WB_SQL_SHRINK, values, 2, NULL);
    }
}

int wb_sql_has_dispatched(const wb_begin *begin)
{
    return begin->mark_count || wb_sql_count_forgotten(begin);
}

void wb_sql_queue_dispatched(wb_storage_session *session, const wb_begin *begin)
{
    queue_marks(session, begin->marks, begin->mark_count);
    wb_sql_queue_forgotten(session, begin->forgotten, wb_sql_count_forgotten(begin));
}

int wb_sql_mark(wb_storage_session *session, const wb_mark *marks, size_t count, wb_error *error)
{
    const wb_sql_session *s = wb_sql_of(session);

    if (s->state != WB_SQL_IDLE)
        return wb_sql_unusable(session, "mark operations as dispatched", error);
    if (!count)
        return WB_OK;
    s->outbox->driver->start(session);
    queue_marks(session, marks, count);
    if (wb_sql_run_outside(session, "mark_sent") != WB_OK)
        return wb_sql_report(session, "mark operations as dispatched", error);
    return WB_OK;
}
