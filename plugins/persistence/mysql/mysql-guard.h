/* SPDX-License-Identifier: Apache-2.0
 *
 * What handlers may have done to the session with the plain connection: ended the transaction,
 * and left settings behind.
 *
 * - A savepoint is set when the transaction begins, and released in the commit's text before
 *   anything else: who ended the transaction took it along, and nothing behind it is executed.
 * - The server reports each change of a session variable and of the database in use
 *   (session_track_system_variables, session_track_schema), so that what nobody changed need not be
 *   put back. What mysql_select_db() is answered the library does not read: its own idea of the
 *   database in use is compared.
 * - mysql_reset_connection() and mysql_change_user() roll back, and leave autocommit on; of that
 *   answer nothing is read either. But the library disowns all prepared statements then: one that is
 *   kept for that tells. Such a session is given up.
 * - SET NAMES stands in front of the next text, because the server reads all of a text by the
 *   character set: a constant that is complete in UTF-8 may swallow its closing quote in gbk.
 *   The rest is put back in the commit's text, between the handlers' statements and ours, or with
 *   a rollback.
 */
#ifndef MYSQL_GUARD_H
#define MYSQL_GUARD_H

#include <mysql.h>
#include <waybill/sys/persistence.h>

#include "plugins/persistence/mysql/mysql-exchange.h"
#include "plugins/persistence/mysql/mysql-savepoints.h"

#define MYS_ENDED                                                                                  \
    "the handler ended the transaction: COMMIT, ROLLBACK, or a statement that commits by itself "  \
    "in MySQL, such as DDL, LOCK TABLES or SET autocommit"
#define MYS_CLOSED "a handler closed the connection"
#define MYS_RESET                                                                                  \
    "the handler ended the transaction: mysql_reset_connection() or mysql_change_user()"

/** All zero: no handler had the connection yet. */
typedef struct mys_guard {
    MYSQL_STMT *sentinel; /* of no statement: the library disowns it when the session is reset */
    const MARIADB_CHARSET_INFO *charset; /* of the session, as it was opened */
    char names[128];                     /* SET NAMES ... */
    wb_sql_buffer role;                  /* SET ROLE ..., or empty: the server has none */
    int takes_more;                      /* that statement takes assignments, too */
    int is_used;                         /* a handler of this session had the connection */
    int has_savepoint;                   /* the transaction */
    size_t users;                        /* handlers of this transaction that had it */
    size_t user;                         /* the item of the first */
    int needs_names;
    int needs_rest;
    mys_savepoints savepoints;
} mys_guard;

#define MYS_GUARD_COLUMNS "@@collation_connection"
/** What to ask a new session, after MYS_GUARD_COLUMNS, for the roles in use. */
const char *mys_guard_role_column(MYSQL *connection);
/** Keep what it answered. @return 0, or -1: no memory. */
int mys_guard_init(wb_storage_session *session, const wb_sql_cell *collation,
                   const wb_sql_cell *role);
/** When the connection is closed. */
void mys_guard_free(mys_guard *guard);

/** In front of every text. */
void mys_guard_queue_names(wb_storage_session *session);
/** In a transaction that just began, or where a handler is about to get the connection. */
void mys_guard_queue_savepoint(wb_storage_session *session);
/** In front of the commit's other statements; nothing if no handler had the connection. */
void mys_guard_queue_release(wb_storage_session *session);
/** Put back what handlers left, if anything, but for the character set. */
void mys_guard_queue_rest(wb_storage_session *session);

/** A step of one of these kinds succeeded. */
void mys_guard_take(wb_storage_session *session, mys_step_kind kind);

/** A handler gets the connection. */
void mys_guard_hand_out(wb_storage_session *session, size_t item);
/** Whether a handler reset the session: nothing in it is as it was set up. */
int mys_guard_was_reset(const mys_guard *guard);
/** No handler has it any more. One that a handler closed is no memory of ours: it is forgotten. Before anything
 *  that looks at one which a handler had. @return whether there is none. */
int mys_guard_take_back(wb_storage_session *session);
/** Record that the transaction was ended. @return its class. */
int mys_guard_found(wb_storage_session *session);
/** The transaction is over. */
void mys_guard_forget(mys_guard *guard);

#endif
