/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/mysql/mysql-clock.h"

#include <stdlib.h>

#include "plugins/common/sql/ages.h"
#include "plugins/persistence/mysql/mysql-transaction.h"

/* NULL is 0. */
static uint64_t number_of(MYSQL_ROW row, unsigned column)
{
    return row && row[column] ? strtoull(row[column], NULL, 10) : 0;
}

static int ask_clock(wb_storage_session *s, int64_t *ret_wall)
{
    MYSQL_RES *row = NULL;

    mys_exchange_start(s);
    mys_put(s, MYS_SQL_CLOCK);
    mys_exchange_end_rows(s, &row);
    mys_queue_end(s);
    int result = mys_run_outside(s);
    if (result == WB_OK)
        *ret_wall = (int64_t)number_of(mysql_fetch_row(row), 0) * 1000;
    mysql_free_result(row);
    return result;
}

int mys_clock(wb_storage_session *s, int64_t *ret_wall, wb_error *error)
{
    if (s->sql.state != WB_SQL_IDLE)
        return wb_sql_unusable(s, "ask for the server's time", error);
    if (ask_clock(s, ret_wall) != WB_OK)
        return wb_sql_report(s, "ask for the server's time", error);
    return WB_OK;
}

static void report(const wb_storage_session *s, MYSQL_RES *rows, int64_t now)
{
    const wb_persistence *p = s->persistence;
    MYSQL_ROW row = mysql_fetch_row(rows);
    wb_sql_report_future(p->host, p->sql.names.endpoint, number_of(row, 0), number_of(row, 1),
                         number_of(row, 2), now);
}

int mys_clock_look_ahead(wb_storage_session *s)
{
    MYSQL_RES *rows = NULL;
    int64_t now = 0;

    if (s->sql.looked_ahead)
        return WB_OK;
    int result = ask_clock(s, &now);
    if (result != WB_OK)
        return result;
    mys_exchange_start(s);
    mys_put(s, MYS_SQL_FUTURE);
    mys_put_number(s, wb_sql_future(now));
    mys_put(s, MYS_SQL_FUTURE_PENDING);
    mys_put_number(s, wb_sql_future(now));
    mys_put(s, MYS_SQL_FUTURE_END);
    mys_exchange_end_rows(s, &rows);
    mys_queue_end(s);
    result = mys_run_outside(s);
    if (result == WB_OK)
        report(s, rows, now);
    s->sql.looked_ahead = result == WB_OK;
    mysql_free_result(rows);
    return result;
}
