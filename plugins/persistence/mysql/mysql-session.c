/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/mysql/mysql-session.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "plugins/common/sql/delayed.h"
#include "plugins/common/sql/schema.h"
#include "plugins/common/sql/transaction.h"
#include "plugins/persistence/mysql/mysql-driver.h"

#define SECOND INT64_C(1000000000)
/* The longest waits both servers take. */
#define ROW_LOCK_WAIT_MAX 100000000
#define TABLE_LOCK_WAIT_MAX 31536000

static int64_t whole_seconds(int64_t duration, int64_t most)
{
    const int64_t seconds = (duration + SECOND - 1) / SECOND;
    return duration == 0 || seconds > most ? most : seconds;
}

int64_t mys_session_row_lock_wait(const wb_storage_session *s)
{
    return whole_seconds(s->persistence->config->lock_timeout, ROW_LOCK_WAIT_MAX);
}

/* READ COMMITTED: no gap locks, and a claim that waited sees what it waited for. Strict,
 * because a value that is cut in silence is lost data. Autocommit off: what a handler does
 * after it lost the transaction is not committed. */
void mys_session_queue_settings(wb_storage_session *s)
{
    char text[768];
    const int64_t timeout = s->persistence->config->lock_timeout;
    mys_queue_text(s, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", NULL);
    (void)snprintf(
        text, sizeof text,
        "SET @@session.autocommit = 0, @@session.innodb_lock_wait_timeout = %" PRId64
        ", @@session.lock_wait_timeout = %" PRId64
        ", @@session.session_track_transaction_info = 'STATE'"
        ", @@session.session_track_schema = 1"
        ", @@session.session_track_system_variables = '*', @@session.sql_mode = IF("
        "FIND_IN_SET('STRICT_ALL_TABLES', @@session.sql_mode) OR "
        "FIND_IN_SET('STRICT_TRANS_TABLES', @@session.sql_mode), @@session.sql_mode, "
        "CONCAT_WS(',', NULLIF(@@session.sql_mode, ''), 'STRICT_TRANS_TABLES'))",
        mys_session_row_lock_wait(s), whole_seconds(timeout, TABLE_LOCK_WAIT_MAX));
    mys_queue_text(s, text, NULL);
}

/* A byte of what the server takes is the command's. On a replica some accounts may write in spite
 * of read_only: what they wrote would be on no other server. */
static int take_answer(wb_storage_session *s, wb_sql_answer *row, wb_error *error)
{
    wb_sql_cell cells[4];
    if (!mys_fetch(row, cells, 4) || !cells[0].data || !cells[1].data || !cells[3].data)
        return WB_OK;
    if (strcmp(cells[3].data, "0") != 0 && strcasecmp(cells[3].data, "OFF") != 0)
        return s->host->fail(s->host, error, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, 0,
                             "the MySQL server takes no writes (read_only): name its primary in "
                             "option \"host\"");
    s->packet_max = (size_t)strtoull(cells[0].data, NULL, 10) - 1;
    if (mys_guard_init(s, &cells[1], &cells[2]) == 0)
        return WB_OK;
    return s->host->fail(s->host, error, WB_RETRY, WB_CAUSE_SERVER, 0, "out of memory");
}

static int set_up(wb_storage_session *s, wb_error *error)
{
    char question[128];
    wb_sql_answer row = { 0 };

    (void)snprintf(question, sizeof question,
                   "SELECT @@max_allowed_packet, %s, %s, @@global.read_only", MYS_GUARD_COLUMNS,
                   mys_guard_role_column(s->connection));
    mys_exchange_start(s);
    mys_session_queue_settings(s);
    mys_queue_text(s, question, &row);
    int result = mys_exchange_run(s, NULL);
    if (result != WB_OK)
        result = wb_sql_report(s, "set up the session", error);
    else
        result = take_answer(s, &row, error);
    mys_clear(&row);
    return result;
}

static int open_with(wb_persistence *persistence, int needs_tables,
                     wb_storage_session **ret_session, wb_error *error)
{
    wb_storage_session *s = NULL;
    int result = mys_session_connect(persistence, &s, error);
    if (result != WB_OK)
        return result;
    s->sql.outbox = &persistence->sql;
    result = set_up(s, error);
    if (result == WB_OK && needs_tables)
        result = wb_sql_check_version(s, error);
    if (result == WB_OK)
        *ret_session = s;
    else
        mys_session_close(s);
    return result;
}

int mys_session_start(wb_persistence *persistence, wb_storage_session **ret_session,
                      wb_error *error)
{
    return open_with(persistence, 0, ret_session, error);
}

int mys_session_open(wb_persistence *persistence, wb_storage_session **ret_session,
                     wb_error *error)
{
    return open_with(persistence, 1, ret_session, error);
}

void mys_session_close(wb_storage_session *s)
{
    if (s->sql.state == WB_SQL_OPEN && s->marks.count)
        wb_sql_undo(s); /* the server would roll back what has to stand */
    wb_sql_delayed_forget(s);
    if (!mys_guard_take_back(s))
        mysql_close(s->connection);
    mys_list_free(&s->deferred);
    mys_list_free(&s->marks);
    mys_guard_free(&s->guard);
    mys_watch_free(&s->watch);
    wb_sql_buffer_free(&s->exchange.text);
    free(s->exchange.steps);
    free(s);
}
