/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/mysql/mysql-driver.h"

#include <poll.h>
#include <stdlib.h>

#include "plugins/common/sql/transaction.h"
#include "plugins/persistence/mysql/mysql-session.h"

/* What was dispatched goes inside: by itself it would cost a flush to disk. It is kept, because a
 * rollback must not take it back. */
static void queue_begin(wb_storage_session *s, const wb_begin *begin)
{
    mys_guard_queue_rest(s);
    mys_queue(s, WB_SQL_BEGIN, NULL, 0, NULL);
    mys_queue_list(s, &s->marks, MYS_STEP_OWN);
    const size_t first = s->exchange.count;
    if (begin)
        wb_sql_queue_dispatched(s, begin);
    mys_exchange_keep(s, first, &s->marks);
    if (s->guard.is_used)
        mys_guard_queue_savepoint(s);
}

/* What was dispatched was in the transaction, because only its flush to disk made it last; now it
 * needs one of its own. */
static void queue_rollback(wb_storage_session *s)
{
    mys_queue(s, WB_SQL_ROLLBACK, NULL, 0, NULL);
    mys_guard_queue_rest(s);
    if (s->marks.count) {
        mys_queue_list(s, &s->marks, MYS_STEP_OWN);
        mys_queue_end(s);
    }
}

static void queue_deferred(wb_storage_session *s)
{
    mys_guard_queue_release(s);
    mys_queue_list(s, &s->deferred, MYS_STEP_DEFERRED);
    mys_guard_queue_rest(s);
}

static void forget(wb_storage_session *s)
{
    mys_list_reset(&s->deferred);
    mys_list_reset(&s->marks);
    mys_watch_reset(&s->watch, 0);
    mys_guard_forget(&s->guard);
}

/* A server says nothing unasked but that it goes. */
static void look_for_loss(wb_storage_session *s)
{
    s->exchange.commit_sent = 0;
    if (mys_guard_take_back(s)) {
        mys_failure_lost(s, MYS_CLOSED);
        return;
    }
    struct pollfd descriptor = { .fd = mysql_get_socket(s->connection), .events = POLLIN };
    if (!s->connection->net.pvio || descriptor.fd < 0 || poll(&descriptor, 1, 0) > 0)
        mys_failure_lost(s, NULL);
}

static wb_sql_standing standing(wb_storage_session *s)
{
    s->exchange.commit_sent = 0; /* what ends here was not committed */
    if (mys_guard_take_back(s)) {
        mys_failure_lost(s, MYS_CLOSED);
        return WB_SQL_UNUSABLE;
    }
    const MYSQL *c = s->connection;
    if (mys_guard_was_reset(&s->guard)) {
        mys_failure_lost(s, MYS_RESET);
        return WB_SQL_UNUSABLE;
    }
    if (c->status == MYSQL_STATUS_READY && !(c->server_status & SERVER_MORE_RESULTS_EXIST))
        return WB_SQL_TRANSACTION;
    mys_failure_lost(s, "a handler left it in the middle of a statement");
    return WB_SQL_UNUSABLE;
}

int mys_fetch(wb_sql_answer *answer, wb_sql_cell *ret_cells, size_t count)
{
    MYSQL_ROW row = answer->rows ? mysql_fetch_row(answer->rows) : NULL;
    if (!row)
        return 0;
    const unsigned long *sizes = mysql_fetch_lengths(answer->rows);
    for (size_t i = 0; i < count; i++)
        ret_cells[i] = (wb_sql_cell){ row[i], sizes[i] };
    return 1;
}

uint64_t mys_number(const wb_sql_cell *cell)
{
    return cell->data ? strtoull(cell->data, NULL, 10) : 0;
}

void mys_clear(wb_sql_answer *answer)
{
    mysql_free_result(answer->rows);
    answer->rows = NULL;
}

const wb_sql_driver mys_driver = {
    .start = mys_exchange_start,
    .queue = mys_queue,
    .queue_text = mys_queue_text,
    .queue_end = mys_queue_end,
    .queue_begin = queue_begin,
    .queue_rollback = queue_rollback,
    .queue_deferred = queue_deferred,
    .run = mys_exchange_run,
    .forget = forget,
    .inspect = mys_defer_inspect,
    .look_for_loss = look_for_loss,
    .standing = standing,
    .lose = mys_failure_lost,
    .fetch = mys_fetch,
    .number = mys_number,
    .clear = mys_clear,
    .connect = mys_session_start,
    .close = mys_session_close,
};
