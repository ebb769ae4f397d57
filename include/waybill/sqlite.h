/* SPDX-License-Identifier: Apache-2.0
 *
 * The SQLite storage session of a handler.
 */
#ifndef WAYBILL_SQLITE_H
#define WAYBILL_SQLITE_H

#include <waybill/handler.h>

#if defined(__has_include)
#if __has_include(<sqlite3.h>)
#include <sqlite3.h>
#define WB_HAVE_SQLITE3_H
#endif
#endif
#ifndef WB_HAVE_SQLITE3_H
typedef struct sqlite3 sqlite3;
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** What the sqlite persistence offers through wb_handler_api.storage().
 *  Size first, append-only. Change log: 1.0 first version. */
#define WB_SQLITE_INTERFACE "sqlite.1"
typedef struct wb_sqlite_api {
    size_t struct_size;
    sqlite3 *(*connection)(void *session, size_t item);
} wb_sqlite_api;

/** The connection, inside the framework's transaction (BEGIN IMMEDIATE), or NULL
 *  when the endpoint's persistence is not sqlite. The same connection serves all
 *  messages of a worker, so prepared statements may be cached in a thread-local
 *  variable together with it. Do not commit, roll back or close it, nor replace its commit or
 *  rollback hook: that is found out, and the message goes to the error queue. A progress handler,
 *  an authorizer, limits (sqlite3_limit(), but for that of threads), result codes that are not
 *  extended, and the pragmas query_only, count_changes, locking_mode and max_page_count end with
 *  the call of the handler that set them; so do temporary tables, views and triggers whose names,
 *  or whose tables' names, begin with "waybill_"; a busy timeout ends with its batch. Whatever else
 *  it sets stays as it is, for other messages of this worker, too: other pragmas,
 *  sqlite3_db_config(), attached files, other temporary tables and triggers, which may stand in
 *  front of a business table, functions, other hooks. */
static inline sqlite3 *wb_sqlite(wb_context *ctx)
{
    void *session = NULL;
    size_t item = 0;
    const wb_sqlite_api *api =
        (const wb_sqlite_api *)ctx->api->storage(ctx, WB_SQLITE_INTERFACE, &session, &item);
    return api ? api->connection(session, item) : NULL;
}

#ifdef __cplusplus
}
#endif
#endif
