/* SPDX-License-Identifier: Apache-2.0
 *
 * An exchange: several statements in one round trip, with MySQL's multi-statements.
 *
 *     mys_exchange_start -> (mys_put_... -> mys_exchange_end)... -> mys_exchange_run
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

#include "plugins/common/sql/session.h"
#include "plugins/persistence/mysql/mysql-list.h"
#include "plugins/persistence/mysql/mysql-sql.h"

typedef enum mys_step_kind {
    MYS_STEP_OWN,
    MYS_STEP_COMMIT,
    MYS_STEP_DEFERRED /* a handler's statement */
} mys_step_kind;

/** A statement of the text. */
typedef struct mys_step {
    mys_step_kind kind;
    size_t item;
    size_t end;             /* of the statement in the text, with its ";" */
    MYSQL_RES **ret_rows;   /* who wants the rows, or NULL */
    uint64_t *ret_affected; /* who wants their number added, or NULL */
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

/** Append to the statement that is being composed. */
void mys_put(wb_storage_session *session, mys_sql part);
void mys_put_number(wb_storage_session *session, uint64_t number);
void mys_put_bytes(wb_storage_session *session, const void *data, size_t size);
void mys_put_text(wb_storage_session *session, const char *text);
/** It is complete. */
void mys_exchange_end(wb_storage_session *session);
/** The same; its rows go to *ret_rows (which the caller frees, if they come) or its affected
 *  rows are added to *ret_affected. */
void mys_exchange_end_rows(wb_storage_session *session, MYSQL_RES **ret_rows);
void mys_exchange_end_affected(wb_storage_session *session, uint64_t *ret_affected);
/** A whole statement. */
void mys_queue(wb_storage_session *session, mys_sql which);
void mys_queue_list(wb_storage_session *session, const mys_list *list, mys_step_kind kind);
/** COMMIT of what is nobody's business: not the framework's transaction, so that its loss is
 *  not called in doubt. */
void mys_queue_end(wb_storage_session *session);

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
