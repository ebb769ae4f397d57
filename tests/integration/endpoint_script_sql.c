/* SPDX-License-Identifier: Apache-2.0
 *
 * SQL of the scripted handler on PostgreSQL or SQLite, whichever the endpoint has.
 */
#include "config.h"

#include <waybill/pgsql.h>
#include <waybill/sqlite.h>

#include "tests/integration/endpoint_script.h"

static int run_pgsql(wb_context *ctx, PGconn *db, const char *sql)
{
    PGresult *result = PQexec(db, sql);
    ExecStatusType status = PQresultStatus(result);
    int r = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK
                ? WB_OK
                : wb_fail(ctx, WB_RETRY, "%s", PQresultErrorMessage(result));
    PQclear(result);
    return r;
}

int script_sql(wb_context *ctx, const char *sql)
{
    PGconn *pgsql = wb_pgsql(ctx);
    sqlite3 *sqlite = wb_sqlite(ctx);
    if (pgsql)
        return run_pgsql(ctx, pgsql, sql);
    if (!sqlite)
        return WB_OK;
    if (sqlite3_exec(sqlite, sql, NULL, NULL, NULL) != SQLITE_OK)
        return wb_fail(ctx, WB_RETRY, "%s", sqlite3_errmsg(sqlite));
    return WB_OK;
}

int script_sql_again(wb_context *ctx, const char *sql)
{
    return script_sql(ctx, sql);
}

int script_defer(wb_context *ctx, const char *sql)
{
    static const wb_pgsql_params none = { 0 };
    return wb_sqlite(ctx) ? script_sql(ctx, sql) : wb_pgsql_defer(ctx, sql, &none);
}

static int left(wb_context *ctx, PGconn *db, int done)
{
    return done ? WB_OK : wb_fail(ctx, WB_UNRECOVERABLE, "%s", PQerrorMessage(db));
}

/* On SQLite a statement in the middle of its rows, never finalized. */
int script_leave_unread(wb_context *ctx, const char *sql)
{
    PGconn *db = wb_pgsql(ctx);
    sqlite3_stmt *statement = NULL;
    if (db)
        return left(ctx, db, PQsendQuery(db, sql));
    (void)sqlite3_prepare_v2(wb_sqlite(ctx), sql, -1, &statement, NULL);
    return sqlite3_step(statement) == SQLITE_ROW ? WB_OK : WB_RETRY;
}

static int close_all(sqlite3 *db)
{
    for (sqlite3_stmt *each; (each = sqlite3_next_stmt(db, NULL));)
        (void)sqlite3_finalize(each);
    return sqlite3_close(db);
}

int script_close(wb_context *ctx, int with_statements)
{
    PGconn *pgsql = wb_pgsql(ctx);
    sqlite3 *sqlite = wb_sqlite(ctx);
    if (sqlite)
        return (with_statements ? close_all(sqlite) : sqlite3_close_v2(sqlite)) == SQLITE_OK ? WB_OK : WB_RETRY;
    PQfinish(pgsql);
    return WB_OK;
}

static int stop(void *argument)
{
    (void)argument;
    return 1;
}

static int deny(void *argument, int action, const char *one, const char *two, const char *database, const char *trigger)
{
    (void)argument, (void)action, (void)one, (void)two, (void)database, (void)trigger;
    return SQLITE_DENY;
}

/* Nothing fails: it is written nowhere. */
static int ignore(void *argument, int action, const char *one, const char *two, const char *database, const char *trigger)
{
    (void)argument, (void)one, (void)two, (void)database, (void)trigger;
    return action == SQLITE_INSERT || action == SQLITE_UPDATE || action == SQLITE_TRANSACTION ? SQLITE_IGNORE : SQLITE_OK;
}

int script_leave_behind(wb_context *ctx, const char *what)
{
    sqlite3 *db = wb_sqlite(ctx);
    if (strcmp(what, "authorizer") == 0)
        return sqlite3_set_authorizer(db, deny, NULL) == SQLITE_OK ? WB_OK : WB_RETRY;
    if (strcmp(what, "ignorer") == 0)
        return sqlite3_set_authorizer(db, ignore, NULL) == SQLITE_OK ? WB_OK : WB_RETRY;
    sqlite3_progress_handler(db, 1, stop, NULL);
    for (int limit = 0; sqlite3_limit(db, limit, 0) >= 0; limit++)
        continue;
    return WB_OK;
}

int script_reset(wb_context *ctx)
{
    PGconn *db = wb_pgsql(ctx);
    PQreset(db);
    return db ? WB_OK : WB_RETRY;
}

int script_has_storage(wb_context *ctx)
{
    return wb_pgsql(ctx) || wb_sqlite(ctx);
}

int script_send_unread(wb_context *ctx, const char *sql)
{
    PGconn *db = wb_pgsql(ctx);
    return db && PQsendQuery(db, sql) ? WB_OK : WB_RETRY;
}

int script_leave_pipeline(wb_context *ctx)
{
    PGconn *db = wb_pgsql(ctx);
    return left(ctx, db, PQenterPipelineMode(db));
}
