/* SPDX-License-Identifier: Apache-2.0
 *
 * What every session of an SQL server has: where its transaction stands, what went wrong, and
 * what handlers were given.
 *
 * A session is used by one thread at a time. Its state says what the server was last known to
 * be in; whatever makes that unsure ends in WB_SQL_LOST, from which only close and open lead
 * away: the server rolls back what a lost connection left open.
 */
#ifndef WB_COMMON_SQL_SESSION_H
#define WB_COMMON_SQL_SESSION_H

#include <waybill/sys/persistence.h>

#include "plugins/common/sql/outbox.h"

#define WB_SQL_NO_ITEM SIZE_MAX

typedef enum wb_sql_state {
    WB_SQL_IDLE, /* connected, no transaction */
    WB_SQL_OPEN, /* inside the framework's transaction, which may have failed */
    WB_SQL_LOST  /* the connection is gone or cannot be trusted */
} wb_sql_state;

/** What went wrong first. */
typedef struct wb_sql_failure {
    int result; /* WB_OK: nothing */
    int cause;
    int64_t native_code; /* of the server or the client library */
    size_t item;         /* whose deferred statement it was, or WB_SQL_NO_ITEM */
    char text[768];
} wb_sql_failure;

typedef struct wb_sql_fetching wb_sql_fetching;

/** "sweep " and a batch number. */
#define WB_SQL_ROW_LOCK_SIZE 28

/** The first member of each plugin's struct wb_storage_session. */
typedef struct wb_sql_session {
    wb_sql_outbox *outbox;
    wb_sql_state state;
    /** Since the transaction began, or in the last exchange. */
    wb_sql_failure failure;
    int flush_failed; /* a deferred statement failed before the connection was handed out, or
                         was not even taken */
    int begin_is_due; /* OPEN, but the server has not been told: BEGIN goes with the first statement */
    int handed_out;   /* a handler of this transaction has the connection */
    size_t last_item; /* whose handler has it */
    /** The server's locks end with the transaction that takes them: what visits rows does so
     *  inside of one. */
    int locks_in_transaction;
    char row_lock[WB_SQL_ROW_LOCK_SIZE]; /* the purpose of the lock on the pending row it has; "": none */
    int looked_ahead; /* records from the future were looked for */
    int has_compact_keys; /* the table of records; known once the session is open */
    int has_turn;     /* to be given what programs wrote (written.h) */
    /** What was begun to fetch (delayed_fetch.c), or NULL. The state is OPEN while its answer comes. */
    wb_sql_fetching *fetching;
} wb_sql_session;

static inline wb_sql_session *wb_sql_of(wb_storage_session *session)
{
    return (wb_sql_session *)(void *)session;
}

/** Report a session that cannot be used: WB_NOT_CONNECTED. */
int wb_sql_unusable(wb_storage_session *session, const char *action, wb_error *error);

/** Report what failed as "could not <action>: <text>". @return its class. */
int wb_sql_report(wb_storage_session *session, const char *action, wb_error *error);

/** The same of what changes something and may be done again: if the connection is lost, nobody knows
 *  whether it was done, so that WB_NOT_CONNECTED becomes WB_IN_DOUBT. */
int wb_sql_report_doubt(wb_storage_session *session, const char *action, wb_error *error);

/** Record something of our own. @return `result`. */
int wb_sql_note(wb_storage_session *session, int result, int cause, size_t item, const char *text);

#endif
