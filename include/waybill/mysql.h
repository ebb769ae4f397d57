/* SPDX-License-Identifier: Apache-2.0
 *
 * The MySQL and MariaDB storage session of a handler.
 *
 * Three ways to write business data, all inside the framework's transaction:
 * the plain connection (one round trip a statement), deferred statements (they
 * travel with the batch's next round trip), and either of them from a batch
 * handler (one statement for many messages).
 *
 * The connection is one of MariaDB Connector/C (libmariadb), also to a MySQL server. A
 * module that calls it may, but need not, link it: the plugin's libmariadb is made
 * visible to modules. Oracle's libmysqlclient has the same names and another layout: a
 * module must not bring it along.
 */
#ifndef WAYBILL_MYSQL_H
#define WAYBILL_MYSQL_H

#include <waybill/handler.h>

#if defined(__has_include)
#if __has_include(<mariadb/mysql.h>)
#include <mariadb/mysql.h>
#define WB_HAVE_MYSQL_H
#elif __has_include(<mysql.h>)
#include <mysql.h>
#define WB_HAVE_MYSQL_H
#endif
#endif
#ifndef WB_HAVE_MYSQL_H
typedef struct st_mysql MYSQL;
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Types of parameter. */
#define WB_MYSQL_TYPE_TEXT 0   /* UTF-8 */
#define WB_MYSQL_TYPE_BINARY 1 /* bytes */
#define WB_MYSQL_TYPE_NUMBER 2 /* decimal digits, maybe with "-" before and "." inside: LIMIT ? */

/** Parameters of a deferred statement, one for each `?`. Fixed for ever. Only values is required. A NULL
 *  value is SQL NULL. */
typedef struct wb_mysql_params {
    /** Number of parameters. */
    int count;
    /** NULL, or one WB_MYSQL_TYPE_x a parameter; NULL: all text. */
    const int *types;
    /** NULL, or one a parameter: bytes of the value. Needed for binary values; NULL: text
     *  and numbers end with NUL. */
    const size_t *lengths;
    const char *const *values;
} wb_mysql_params;

/** What the mysql persistence offers through wb_handler_api.storage().
 *  Size first, append-only. Change log: 1.0 first version. */
#define WB_MYSQL_INTERFACE "mysql.1"
typedef struct wb_mysql_api {
    size_t struct_size;
    MYSQL *(*connection)(void *session, size_t item);
    int (*defer)(void *session, size_t item, const char *statement, const wb_mysql_params *params);
} wb_mysql_api;

/** The connection, inside the framework's transaction (READ COMMITTED, autocommit off,
 *  strict), or NULL when the endpoint's persistence is not mysql, the connection was lost,
 *  or a statement that was deferred before has failed. It blocks as the client library does.
 *  Deferred statements are sent and awaited first, so that order is what the handler wrote;
 *  after deferring more, ask for it again.
 *
 *  Do not commit, roll back, close, reconnect, reset (mysql_reset_connection()), change user, or
 *  leave results unread; nor run
 *  what commits by itself in MySQL: DDL, LOCK TABLES, SET autocommit and so on. Savepoints may
 *  be used, but for one named waybill_batch. A handler that ends the transaction is found out,
 *  however it is written: its message goes to the error queue, and its neighbours are handled
 *  once; but what was committed then is. Do not turn off what the server reports
 *  (session_track_system_variables, session_track_transaction_info) either. Behind a handler that
 *  did, and where a proxy drops the reports, an end of the transaction that another begin follows at
 *  once is found out at the commit only. If several handlers of the batch had the connection, nobody
 *  knows then which it was, or what was committed: nothing is lost, but all of the batch run again,
 *  and what was committed of them is done twice. After an error 1213 (deadlock) or 1205 (lock wait)
 *  return: what the transaction did before may be gone. An error that is the server's (a full
 *  disk, a lock wait) costs the message no attempt if it was the last thing on the connection:
 *  mysql_stmt_close() and any further statement hide it.
 *
 *  What a handler sets lasts, at most, to the end of its batch. With the commit, or a rollback,
 *  Waybill puts back the character set (SET NAMES, mysql_set_character_set()), session variables
 *  that were changed (sql_mode, time_zone, timestamp, isolation, limits and whatever else the server
 *  reports: to the server's global value, or Waybill's own), the role and the database in use
 *  (USE, mysql_select_db()). The
 *  character set is put back before any text of Waybill's, also in the middle of a batch: what is
 *  deferred is always UTF-8. Deferred statements run under the other settings as they are when
 *  they are sent. Within a batch neighbours see each other's settings. Of variables of storage
 *  engines, which MariaDB 11.8 does not report, innodb_lock_wait_timeout, innodb_strict_mode and
 *  innodb_table_locks are put back; other ones may last as long as the session there. Not put back
 *  are user variables (@x), temporary tables, prepared statements, GET_LOCK() and LAST_INSERT_ID(), nor what a
 *  handler changed that set session_track_system_variables to something else before. */
static inline MYSQL *wb_mysql(wb_context *ctx)
{
    void *session = NULL;
    size_t item = 0;
    const wb_mysql_api *api =
        (const wb_mysql_api *)ctx->api->storage(ctx, WB_MYSQL_INTERFACE, &session, &item);
    return api ? api->connection(session, item) : NULL;
}

/** Run a statement with the batch's next round trip. Statement and parameters are
 *  copied. Its failure is the failure of the message being handled: that message
 *  is rolled back and retried, although the handler has returned by then.
 *  `wb_mysql_defer(ctx, "insert into orders values (?)", WB_MYSQL_TEXT(order_id))`
 *  One statement a call: DELETE, DO, INSERT, REPLACE, SELECT, UPDATE or WITH. Rows it returns
 *  are dropped. Nothing in a value is escaped: what is not plain text is written in hexadecimal
 *  digits. Refused is also what the server may read in two ways: a backslash in front of a quote
 *  (write the quote twice, or pass a parameter), a string right behind a parameter (`? 'b'`; write
 *  AS if it is an alias), and comments it would execute.
 *  @return WB_OK; WB_REJECT when the endpoint's persistence is not mysql or the
 *  statement is refused; WB_NOT_CONNECTED; WB_RETRY: no memory. */
static inline int wb_mysql_defer(wb_context *ctx, const char *statement,
                                 const wb_mysql_params *params)
{
    void *session = NULL;
    size_t item = 0;
    const wb_mysql_api *api =
        (const wb_mysql_api *)ctx->api->storage(ctx, WB_MYSQL_INTERFACE, &session, &item);
    if (!api)
        return wb_fail(ctx, WB_REJECT, "there is no mysql session here: the endpoint's persistence is another, or it cannot be had now");
    return api->defer(session, item, statement, params);
}

#ifndef __cplusplus
/** All-text parameters for wb_mysql_defer(): WB_MYSQL_TEXT("a", NULL, b). */
#define WB_MYSQL_TEXT(...)                                                                         \
    (&(wb_mysql_params){ .count = (int)(sizeof((const char *[]){ __VA_ARGS__ })                    \
                                        / sizeof(const char *)),                                   \
                         .values = (const char *const[]){ __VA_ARGS__ } })
#endif

#ifdef __cplusplus
}
#endif
#endif
