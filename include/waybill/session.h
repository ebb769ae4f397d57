/* SPDX-License-Identifier: Apache-2.0
 *
 * Waybill inside a program: transactional sessions, for code that handles no message (an HTTP
 * service, a job, a migration), and endpoints that a program hosts itself.
 *
 *     #include <waybill/pgsql.h>
 *     #include <waybill/session.h>
 *
 *     wb_reason reason;
 *     wb_endpoint *shop;
 *     wb_session *session;
 *     if (wb_endpoint_open(&(wb_endpoint_options){ .config = "shop.conf" }, sizeof(wb_endpoint_options),
 *                          &shop, &reason) != WB_OK)
 *         return report(reason.text);
 *     ...
 *     if (wb_session_open(shop, NULL, 0, &session, &reason) == WB_OK) {
 *         PGconn *db = wb_pgsql(wb_session_context(session));
 *         ... business data ...
 *         wb_session_publish(session, &(wb_outgoing){ .type = "Sales.OrderPlaced", .body = ... });
 *         if (wb_session_commit(session, &reason) != WB_OK)
 *             ... nothing happened, or reason.result is WB_IN_DOUBT ...
 *         wb_session_close(session);
 *     }
 *     wb_endpoint_close(shop);
 *
 *     cc shop.c $(pkg-config --cflags --libs libwaybill)
 *
 * A session is to a program what a handler's call is to a handler: business data and messages,
 * both or neither. wb_session_context() is what a handler gets, so that functions which take
 * a wb_context serve both. The endpoint needs the outbox; its own `waybill install` makes what
 * a session needs.
 *
 * The library does not exit, write to stdout or stderr, or touch signal handlers. Its
 * threads take no signals. Where memory is out, calls of sessions say so (WB_RETRY with WB_CAUSE_SERVER); workers and
 * the housekeeper, which nobody calls, end the process then, as `waybill run` does. A
 * program that talks TLS through it should ignore SIGPIPE, as servers do. Plugins are loaded through
 * libltdl: a program that uses libltdl itself must not do so while an endpoint is opened. After
 * fork() the child must not use what the parent opened.
 *
 * Threads: any thread may open, and different threads may use different sessions at the same time.
 * One session is used by one thread at a time. What else may be called when is said below.
 *
 * Structs that a caller fills are passed with their size and append-only; zero what you do not set: what a version does
 * not know (a flag, a field that a later one appends) it refuses. Sizes of texts are explained in waybill/message.h.
 */
#ifndef WAYBILL_SESSION_H
#define WAYBILL_SESSION_H

#include <stddef.h>
#include <stdint.h>
#include <waybill/handler.h>

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

typedef struct wb_endpoint wb_endpoint;
typedef struct wb_session wb_session;

/** Why a call failed. The caller's; filled only by a call that fails, and may be NULL where a
 *  function takes one. Fixed for ever. */
typedef struct wb_reason {
    int result;          /* the class that the call returned */
    int cause;           /* WB_CAUSE_x */
    int64_t native_code; /* errno, SQLSTATE as a number, AMQP reply code, ...; 0: none */
    char text[1024];     /* lower case, no period; what is wrong with a configuration file is a line each */
} wb_reason;

/** Where the lines of the log go: `line` without a line break, as `waybill` writes them, NUL behind
 *  it. NULL: nowhere, which is the default. For the whole process; called by any thread, one at a time. It calls
 *  nothing of Waybill.
 *  `level` (WB_LOG_x): lines above it are not made; after wb_endpoint_open() the file's log_level counts. */
typedef void (*wb_log_fn)(void *argument, int level, const char *line, size_t size);
void wb_log_to(wb_log_fn write, void *argument);

/* ---- endpoints ------------------------------------------------------------------------- */

/** wb_endpoint_options.flags: load the handler modules of the file, for wb_endpoint_run(). */
#define WB_ENDPOINT_HANDLERS 1u

/** Passed with its size, append-only. */
typedef struct wb_endpoint_options {
    const char *config; /* path of the configuration file */
    const char *name;   /* of the endpoint; NULL: the first of the file */
    uint32_t flags;     /* WB_ENDPOINT_x */
    uint32_t reserved;
} wb_endpoint_options;

/** Read the file, load the plugins, connect, and check that queues and tables are there. Serialised
 *  inside the library.
 *  @return WB_OK, or the class of what failed: WB_FATAL with WB_CAUSE_CONFIG, _MISSING, _REFUSED;
 *  WB_NOT_CONNECTED. */
int wb_endpoint_open(const wb_endpoint_options *options, size_t options_size, wb_endpoint **ret_endpoint,
                     wb_reason *reason);

/** Send what sessions committed, for as long as the file's shutdown_timeout, and close. What is left
 *  is sent by whoever runs the endpoint. No session is open, wb_endpoint_run() has returned. NULL is allowed. */
void wb_endpoint_close(wb_endpoint *endpoint);

/** Handle messages, as `waybill run` does, until wb_endpoint_quit(). On one thread, once; sessions may be used
 *  meanwhile. Needs WB_ENDPOINT_HANDLERS. A handler that calls exit() is named in the log, and what follows is the
 *  program's affair; of one that ends its thread, the worker is started again. A child of fork() that returns from a
 *  handler ends there, with 70.
 *  @return WB_OK after wb_endpoint_quit(), or why it ended. */
int wb_endpoint_run(wb_endpoint *endpoint, wb_reason *reason);
/** Have wb_endpoint_run() finish what is in flight and return; or return at once, if it has not begun.
 *  Any thread, and a signal handler. */
void wb_endpoint_quit(wb_endpoint *endpoint);

/* ---- sessions -------------------------------------------------------------------------- */

/** Passed with its size, append-only. */
typedef struct wb_session_options {
    /** The session's id, 1 to 255 bytes, NULL: a new one. An id that is given is an idempotency key: of
     *  all sessions with that id one is committed, as long as the outbox remembers it (outbox.retention). It must be
     *  no message's id. */
    const char *id;
    size_t id_size; /* WB_TEXT: up to the NUL byte */
    /** How long to wait for one of the endpoint's `session.connections` to be free, ns. 0: 30 seconds. */
    int64_t patience;
} wb_session_options;

/* What a call returns through ret_x is NULL when it fails. */

/** Open a session: a connection of the pool. Its transaction begins when its context is asked for the
 *  connection, or with the commit. `options` may be NULL.
 *  @return WB_OK; WB_RETRY with WB_CAUSE_SERVER: none was free in time, or memory is out; WB_NOT_CONNECTED;
 *  WB_REJECT: the id is none, or the endpoint has no outbox. */
int wb_session_open(wb_endpoint *endpoint, const wb_session_options *options, size_t options_size,
                    wb_session **ret_session, wb_reason *reason);

/** NUL-terminated (an id that was given may hold others); valid until close. */
const char *wb_session_id(const wb_session *session);

/** What handlers get: for wb_pgsql(), wb_mysql(), wb_sqlite() and their deferred statements, wb_send(),
 *  wb_publish(), wb_fail(), wb_log(), wb_setting(). There is no message, so that wb_reply() is refused. What is sent leaves after
 *  the commit (WB_IMMEDIATE at once, whatever becomes of the session). Valid until wb_session_close(), for one thread at a time. On SQLite the transaction keeps everybody else's
 *  waiting from the first statement on, for busy_timeout. */
wb_context *wb_session_context(wb_session *session);

/** @return WB_OK, or WB_REJECT: the message is malformed or over a limit, the session is over; with WB_IMMEDIATE what
 *  became of it. The reason is that of wb_session_commit(), which then commits nothing. */
static inline int wb_session_send(wb_session *session, const wb_outgoing *outgoing)
{
    return wb_send(wb_session_context(session), outgoing);
}

static inline int wb_session_publish(wb_session *session, const wb_outgoing *outgoing)
{
    return wb_publish(wb_session_context(session), outgoing);
}

/** Commit business data and messages. Messages leave right afterwards, from a thread of the library; if the
 *  process dies before, whoever runs the endpoint sends them. Once a session; afterwards it can only be closed.
 *
 *  @return WB_OK: committed. Otherwise nothing was committed, but for WB_IN_DOUBT:
 *  WB_REJECT   WB_CAUSE_DUPLICATE: the id was committed before, and that stands, whatever else failed; WB_CAUSE_EXPIRED: it took longer
 *              than session.maximum_commit_duration, or an earlier session with this key did, or failed behind its
 *              control message: try the key again with a new session. Else as wb_fail() or a refused message said, or
 *              the transaction can never be committed
 *  WB_ABORT    a deadlock or a serialization failure: try again with a new session
 *  WB_RETRY    a statement failed; with WB_CAUSE_SERVER it was the server's trouble
 *  WB_NOT_CONNECTED  the database, or in mode control_message the broker, is away
 *  WB_IN_DOUBT the connection broke during the commit and the database did not come back within the time
 *              for it. A session with the same id tells: it is a duplicate, or commits. (A session that has no messages
 *              and a generated id leaves no record; its business data tells.) */
int wb_session_commit(wb_session *session, wb_reason *reason);

/** Without a commit nothing of it happens. NULL is allowed. */
void wb_session_close(wb_session *session);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
