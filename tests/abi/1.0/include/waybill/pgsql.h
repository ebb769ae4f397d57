/* SPDX-License-Identifier: Apache-2.0
 *
 * The PostgreSQL storage session of a handler.
 *
 * Three ways to write business data, all inside the framework's transaction:
 * the plain connection (one round trip a statement), deferred statements (they
 * travel with the batch's next round trip), and either of them from a batch
 * handler (one statement for many messages).
 *
 * A module that calls libpq itself may, but need not, link it: the plugin's libpq
 * is made visible to modules.
 */
#ifndef WAYBILL_PGSQL_H
#define WAYBILL_PGSQL_H

#include <waybill/handler.h>

#if defined(__has_include)
#if __has_include(<libpq-fe.h>)
#include <libpq-fe.h>
#define WB_HAVE_LIBPQ_FE_H
#elif __has_include(<postgresql/libpq-fe.h>)
#include <postgresql/libpq-fe.h>
#define WB_HAVE_LIBPQ_FE_H
#endif
#endif
#ifndef WB_HAVE_LIBPQ_FE_H
typedef struct pg_conn PGconn;
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** Parameters of a deferred statement: the arrays of PQexecParams(). Fixed for ever, as those
 *  are. Only values is required. A NULL value is SQL NULL. */
typedef struct wb_pgsql_params {
    /** Number of parameters. */
    int count;
    /** NULL, or one a parameter; NULL: all text. 1 = binary. */
    const int *formats;
    /** NULL, or one a parameter; needed for binary values only. */
    const int *lengths;
    /** NULL, or one type OID a parameter; 0 = inferred. */
    const unsigned int *types;
    const char *const *values;
} wb_pgsql_params;

/** What the pgsql persistence offers through wb_handler_api.storage().
 *  Size first, append-only. Change log: 1.0 first version. */
#define WB_PGSQL_INTERFACE "pgsql.1"
typedef struct wb_pgsql_api {
    size_t struct_size;
    PGconn *(*connection)(void *session, size_t item);
    int (*defer)(void *session, size_t item, const char *statement, const wb_pgsql_params *params);
} wb_pgsql_api;

/** The connection, inside the framework's transaction, or NULL when the endpoint's
 *  persistence is not pgsql or the connection was lost. It blocks as libpq does;
 *  it is not in pipeline mode. Deferred statements are sent and awaited first, so
 *  that order is what the handler wrote; after deferring more, ask for it again. If one
 *  of them fails, the transaction is failed (PQTRANS_INERROR) and so is every statement
 *  on it. An error that is the server's (a full disk, a lock) costs the message no attempt,
 *  unless a savepoint took it back.
 *
 *  Do not commit, roll back, prepare the transaction, close, leave results unread, or drop
 *  prepared statements that are not yours (DEALLOCATE ALL), or set the transaction read only: it
 *  is Waybill's too, which then fails to write what is sent, and your message is retried. Savepoints may be used. A handler
 *  that ends the transaction is found out, however it is written: its message goes to the error
 *  queue, and its neighbours are handled once.
 *
 *  What a handler sets lasts, at most, to the end of its batch: with the commit Waybill puts the
 *  user and the role back (SET SESSION AUTHORIZATION, SET ROLE) and runs RESET ALL, so that every
 *  setting (search_path, time zone, client_encoding, timeouts, synchronous_commit, your own
 *  custom.settings) is what the connection began with; a rollback takes settings back by itself.
 *  The statements that were deferred run before that, Waybill's own and the triggers that are
 *  deferred to COMMIT after it. The character set alone is put back before any statement that
 *  was deferred: the text of those is in the connection's own. What a deferred statement sets (SET, set_config(),
 *  DO, CALL, a function that SELECT calls) is put back the same way; what a trigger sets, or a function called by INSERT, UPDATE, DELETE
 *  or MERGE, only if a handler of the batch had the connection. Within a batch neighbours see each other's settings: SET LOCAL
 *  does not change that. With the option prepare = false, behind a pooler, only user and role
 *  are put back: use SET LOCAL there. Not put back are temporary tables, advisory locks of the
 *  session, LISTEN, prepared statements, cursors WITH HOLD and what currval() knows. */
static inline PGconn *wb_pgsql(wb_context *ctx)
{
    void *session = NULL;
    size_t item = 0;
    const wb_pgsql_api *api =
        (const wb_pgsql_api *)ctx->api->storage(ctx, WB_PGSQL_INTERFACE, &session, &item);
    return api ? api->connection(session, item) : NULL;
}

/** Run a statement with the batch's next round trip. Statement and parameters are
 *  copied. Its failure is the failure of the message being handled: that message
 *  is rolled back and retried, although the handler has returned by then.
 *  `wb_pgsql_defer(ctx, "insert into orders values ($1)",
 *                  WB_PGSQL_TEXT(order_id))`
 *  One statement a call; neither transaction control nor COPY. Rows it returns are
 *  dropped.
 *  @return WB_OK; WB_REJECT when the endpoint's persistence is not pgsql or the
 *  statement is malformed; WB_NOT_CONNECTED; WB_RETRY: no memory. */
static inline int wb_pgsql_defer(wb_context *ctx, const char *statement,
                                 const wb_pgsql_params *params)
{
    void *session = NULL;
    size_t item = 0;
    const wb_pgsql_api *api =
        (const wb_pgsql_api *)ctx->api->storage(ctx, WB_PGSQL_INTERFACE, &session, &item);
    if (!api)
        return wb_fail(ctx, WB_REJECT, "there is no pgsql session here: the endpoint's persistence is another, or it cannot be had now");
    return api->defer(session, item, statement, params);
}

#ifndef __cplusplus
/** All-text parameters for wb_pgsql_defer(): WB_PGSQL_TEXT("a", NULL, b). */
#define WB_PGSQL_TEXT(...)                                                                         \
    (&(wb_pgsql_params){ .count = (int)(sizeof((const char *[]){ __VA_ARGS__ })                    \
                                        / sizeof(const char *)),                                   \
                         .values = (const char *const[]){ __VA_ARGS__ } })
#endif

#ifdef __cplusplus
}
#endif
#endif
