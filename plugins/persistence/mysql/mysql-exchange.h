/* SPDX-License-Identifier: Apache-2.0
 *
 * An exchange: several statements in one round trip, with MySQL's multi-statements.
 *
 *     mys_exchange_start -> mys_queue_... -> mys_exchange_run
 *
 * Composing reports nothing; run() sends the text and reads every result. The server
 * stops at the first statement that fails: a COMMIT behind it is not executed. A text that is
 * longer than the server takes (max_allowed_packet) goes in several round trips, of which none
 * is sent after a failure.
 *
 * The server takes several statements in one text only while it is told to. For a
 * handler's plain connection it is told not to, by a command that travels with the batch's
 * own (its answer is read with theirs): what a handler pasted into a statement cannot add
 * one. This needs two things the client library's functions do not offer (a command sent
 * without awaiting its answer, and reading that answer), see send_option().
 */
#ifndef MYSQL_EXCHANGE_H
#define MYSQL_EXCHANGE_H

#include <mysql.h>
#include <stddef.h>
#include <stdint.h>
#include <waybill/sys/persistence.h>

#include "plugins/common/sql/driver.h"
#include "plugins/persistence/mysql/mysql-list.h"

typedef enum mys_step_kind {
    MYS_STEP_OWN,
    MYS_STEP_COMMIT,
    MYS_STEP_DEFERRED,    /* a handler's statement */
    MYS_STEP_GUARD,       /* fails if the transaction is not the one that was begun */
    MYS_STEP_NAMES,       /* puts the character set back */
    MYS_STEP_REST,        /* and the rest of what handlers left */
    MYS_STEP_LAST_OF_REST
} mys_step_kind;

/** A statement of the text. */
typedef struct mys_step {
    mys_step_kind kind;
    size_t item;
    size_t end;                /* of the statement in the text, with its ";" */
    wb_sql_answer *ret_answer; /* who wants to know, or NULL */
} mys_step;

typedef struct mys_exchange {
    wb_sql_buffer text;
    mys_step *steps;
    size_t count;
    size_t capacity;
    int commit_sent; /* a COMMIT may have reached the server */
    int committed;   /* and the server said that it did */
    int out_of_memory;
} mys_exchange;

/** Forgets the failure of before. */
void mys_exchange_start(wb_storage_session *session);

/** wb_sql_driver.queue and queue_text. */
void mys_queue(wb_storage_session *session, wb_sql_which which, const wb_sql_value *values,
               size_t count, wb_sql_answer *ret_answer);
void mys_queue_text(wb_storage_session *session, const char *statement,
                    wb_sql_answer *ret_answer);
/** The text, if any is left of it to be put, ends a step of that kind. */
void mys_queue_kind(wb_storage_session *session, mys_step_kind kind, const char *text);
void mys_queue_list(wb_storage_session *session, const mys_list *list, mys_step_kind kind);
/** COMMIT of what is nobody's business: not the framework's transaction, so that its loss is
 *  not called in doubt. Autocommit is off, so that even a SELECT has begun one. */
void mys_queue_end(wb_storage_session *session);
/** Remember the statements queued since there were `first`. */
void mys_exchange_keep(wb_storage_session *session, size_t first, mys_list *list);

/** Send, pass `crash_point` (may be NULL) when everything is written, read all results.
 *  @return WB_OK, or the class in session->sql.failure. The session is lost if the
 *  connection is. A transaction that was open may still be: MySQL rolls back the statement. */
int mys_exchange_run(wb_storage_session *session, const char *crash_point);

/** Before a handler gets the connection of a restricted session: it must not take several
 *  statements in one text. One round trip, unless an exchange has seen to it.
 *  @return WB_OK, or the class in session->sql.failure. */
int mys_exchange_restrict(wb_storage_session *session);

/** Record why the last call of the client library failed, unless there is something already. */
void mys_failure_record(wb_storage_session *session, mys_step_kind kind, size_t item);
/** Record that the connection is gone, and why; ends in WB_SQL_LOST. */
void mys_failure_lost(wb_storage_session *session, const char *reason);

#endif
