/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/pgsql/pgsql-clock.h"

#include "plugins/common/sql/ages.h"

/* 2000-01-01 UTC, where PostgreSQL's time begins, in microseconds since 1970. */
#define PGSQL_EPOCH INT64_C(946684800000000)

/* The type's binary form is in UTC, whatever the session's time zone. */
static int ask_clock(wb_storage_session *s, int64_t *ret_wall)
{
    PGresult *row = NULL;

    pgsql_exchange_start(s);
    pgsql_queue(s, PGSQL_SQL_CLOCK, NULL, 0, &row);
    int result = pgsql_exchange_run(s, NULL);
    if (result == WB_OK)
        *ret_wall = ((int64_t)pgsql_read_u64(PQgetvalue(row, 0, 0)) + PGSQL_EPOCH) * 1000;
    PQclear(row);
    return result;
}

int pgsql_clock(wb_storage_session *s, int64_t *ret_wall, wb_error *error)
{
    if (s->sql.state != WB_SQL_IDLE)
        return wb_sql_unusable(s, "ask for the server's time", error);
    if (ask_clock(s, ret_wall) != WB_OK)
        return wb_sql_report(s, "ask for the server's time", error);
    return WB_OK;
}

static void report(const wb_storage_session *s, const PGresult *row, int64_t now)
{
    const wb_persistence *p = s->persistence;
    wb_sql_report_future(p->host, p->sql.names.endpoint, pgsql_read_u64(PQgetvalue(row, 0, 0)),
                         pgsql_read_u64(PQgetvalue(row, 0, 1)),
                         PQgetisnull(row, 0, 2) ? 0 : pgsql_read_u64(PQgetvalue(row, 0, 2)), now);
}

int pgsql_clock_look_ahead(wb_storage_session *s)
{
    char numbers[2][8];
    const pgsql_value values[] = { { numbers[0], 8 }, { numbers[1], 8 } };
    PGresult *row = NULL;
    int64_t now = 0;

    if (s->sql.looked_ahead)
        return WB_OK;
    int result = ask_clock(s, &now);
    if (result != WB_OK)
        return result;
    pgsql_write_u64(numbers[0], wb_sql_future(now));
    pgsql_write_u64(numbers[1], WB_SQL_FUTURE_MAX);
    pgsql_exchange_start(s);
    pgsql_queue(s, PGSQL_SQL_FUTURE, values, 2, &row);
    result = pgsql_exchange_run(s, NULL);
    if (result == WB_OK)
        report(s, row, now);
    s->sql.looked_ahead = result == WB_OK;
    PQclear(row);
    return result;
}
