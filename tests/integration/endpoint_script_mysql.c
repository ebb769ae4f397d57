/* SPDX-License-Identifier: Apache-2.0
 *
 * SQL of the scripted handler on MySQL or MariaDB.
 */
#include "config.h"

#include <string.h>
#include <waybill/mysql.h>

#include "tests/integration/endpoint_script.h"

static int answered(wb_context *ctx, MYSQL *db, int failed)
{
    return failed ? wb_fail(ctx, WB_RETRY, "%s", mysql_error(db)) : WB_OK;
}

static int query(wb_context *ctx, MYSQL *db, const char *sql)
{
    if (!db)
        return wb_fail(ctx, WB_RETRY, "no connection");
    return answered(ctx, db, mysql_real_query(db, sql, strlen(sql)));
}

static _Thread_local MYSQL *last; /* what a handler got last */

int script_sql_again(wb_context *ctx, const char *sql)
{
    int r = query(ctx, last, sql);
    if (r == WB_OK)
        mysql_free_result(mysql_store_result(last));
    return r;
}

int script_sql(wb_context *ctx, const char *sql)
{
    last = wb_mysql(ctx);
    return script_sql_again(ctx, sql);
}

int script_defer(wb_context *ctx, const char *sql)
{
    return wb_mysql_defer(ctx, sql, NULL);
}

int script_leave_unread(wb_context *ctx, const char *sql)
{
    return query(ctx, wb_mysql(ctx), sql);
}

int script_send_unread(wb_context *ctx, const char *sql)
{
    MYSQL *db = wb_mysql(ctx);
    return db ? answered(ctx, db, mysql_send_query(db, sql, strlen(sql))) : wb_fail(ctx, WB_RETRY, "no connection");
}

int script_leave_pipeline(wb_context *ctx)
{
    MYSQL *db = wb_mysql(ctx);
    /* whose answer begins long before it ends */
    static const char slow[] = "select repeat('x', 100000) union all select sleep(0.1)";
    return db ? answered(ctx, db, mysql_send_query(db, slow, sizeof slow - 1))
              : wb_fail(ctx, WB_RETRY, "no connection");
}

int script_close(wb_context *ctx, int with_statements)
{
    (void)with_statements;
    mysql_close(wb_mysql(ctx));
    return WB_OK;
}

int script_reset(wb_context *ctx)
{
    return mysql_reset_connection(wb_mysql(ctx)) == 0 ? WB_OK : WB_RETRY;
}

int script_leave_behind(wb_context *ctx, const char *what)
{
    (void)what;
    return wb_fail(ctx, WB_UNRECOVERABLE, "no connection of SQLite");
}

int script_has_storage(wb_context *ctx)
{
    return wb_mysql(ctx) != NULL;
}
