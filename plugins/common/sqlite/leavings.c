/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/sqlite/leavings.h"

#include <limits.h>
#include <string.h>

/* ---- settings ------------------------------------------------------------------------------ */

/* At first each limit is as high as it can be, but for that of threads; there is none where sqlite3_limit() is negative. */
void wb_sqlite_leavings_end_settings(sqlite3 *handle)
{
    sqlite3_progress_handler(handle, 0, NULL, NULL);
    for (int limit = 0; sqlite3_limit(handle, limit, limit == SQLITE_LIMIT_WORKER_THREADS ? -1 : INT_MAX) >= 0; limit++)
        continue;
    (void)sqlite3_extended_result_codes(handle, 1);
}

/* ---- what stands in front of our tables --------------------------------------------------- */

static int is_ours(const unsigned char *name)
{
    return name && sqlite3_strnicmp((const char *)name, "waybill_", sizeof "waybill_" - 1) == 0;
}

/* An index goes with its table. */
static char *removal_of(sqlite3_stmt *row)
{
    const unsigned char *type = sqlite3_column_text(row, 0), *name = sqlite3_column_text(row, 1);
    if (!type || type[0] == 'i' || (!is_ours(name) && !is_ours(sqlite3_column_text(row, 2))))
        return NULL;
    return sqlite3_mprintf("drop %s temp.\"%w\"", type, name);
}

/* *ret_sql: what removes one, or NULL. */
static int find_in_front(sqlite3 *handle, char **ret_sql)
{
    sqlite3_stmt *list = NULL;
    int code = sqlite3_prepare_v2(handle, "select type,name,tbl_name from sqlite_temp_master", -1, &list, NULL);
    *ret_sql = NULL;
    while (code == SQLITE_OK && !*ret_sql && (code = sqlite3_step(list)) == SQLITE_ROW) {
        *ret_sql = removal_of(list);
        code = SQLITE_OK;
    }
    (void)sqlite3_finalize(list);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* One after the other, since triggers go with their table. */
static int remove_in_front(sqlite3 *handle)
{
    char *sql;
    int code;
    while ((code = find_in_front(handle, &sql)) == SQLITE_OK && sql) {
        code = sqlite3_exec(handle, sql, NULL, NULL, NULL);
        sqlite3_free(sql);
        if (code != SQLITE_OK)
            break;
    }
    return code;
}

/* ---- all of it ---------------------------------------------------------------------------- */

/* The first two have SQLite compile all statements anew. Some versions do not when an authorizer goes, and what it made do
 * nothing would go on so. The last: as many pages as any version takes for a number of them. */
#define PRAGMAS "pragma query_only=0; pragma count_changes=0; pragma locking_mode=normal; pragma main.max_page_count=2147483646"

static int is_sentinel(sqlite3_stmt *statement)
{
    const char *sql = sqlite3_sql(statement);
    return sql && strcmp(sql, WB_SQLITE_LEAVINGS_SENTINEL) == 0;
}

static sqlite3_stmt *find_sentinel(sqlite3 *handle)
{
    sqlite3_stmt *each = sqlite3_next_stmt(handle, NULL);
    while (each && !is_sentinel(each))
        each = sqlite3_next_stmt(handle, each);
    return each;
}

/* Each step takes the connection's lock: all statements are passed once, and no text but the sentinel's is read.
 * @return the sentinel. */
static sqlite3_stmt *reset_all(sqlite3 *handle, uintptr_t where)
{
    sqlite3_stmt *sentinel = NULL;
    for (sqlite3_stmt *each = sqlite3_next_stmt(handle, NULL); each; each = sqlite3_next_stmt(handle, each)) {
        if (sqlite3_stmt_busy(each))
            (void)sqlite3_reset(each);
        if ((uintptr_t)each == where)
            sentinel = each;
    }
    return sentinel && is_sentinel(sentinel) ? sentinel : find_sentinel(handle);
}

/* Since it was asked last; so is one that is not there. Who cannot be compiled has no row. */
static int was_compiled_anew(sqlite3_stmt *sentinel)
{
    const int code = sentinel ? sqlite3_step(sentinel) : SQLITE_MISUSE;
    (void)sqlite3_reset(sentinel);
    return code != SQLITE_ROW || sqlite3_stmt_status(sentinel, SQLITE_STMTSTATUS_REPREPARE, 1) != 0;
}

static int end_all(sqlite3 *handle, sqlite3_stmt *sentinel)
{
    (void)sqlite3_set_authorizer(handle, NULL, NULL);
    int code = sqlite3_exec(handle, PRAGMAS, NULL, NULL, NULL);
    if (code == SQLITE_OK)
        code = remove_in_front(handle);
    (void)was_compiled_anew(sentinel); /* by us */
    return code;
}

int wb_sqlite_leavings_end_all(sqlite3 *handle)
{
    return end_all(handle, find_sentinel(handle));
}

int wb_sqlite_leavings_end(sqlite3 *handle, uintptr_t *where, int is_known)
{
    sqlite3_stmt *sentinel = reset_all(handle, *where);
    *where = (uintptr_t)sentinel;
    return was_compiled_anew(sentinel) || is_known ? end_all(handle, sentinel) : SQLITE_OK;
}
