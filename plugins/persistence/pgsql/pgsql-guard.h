/* SPDX-License-Identifier: Apache-2.0
 *
 * What handlers may have done to the session: ended the transaction, with the plain connection,
 * and left settings behind, with that or a deferred statement.
 *
 * Both are looked after in the commit's round trip, between the handlers' statements and ours,
 * and only when a handler had the connection, or deferred what may set something. From the first time on each BEGIN is followed by
 * the question for the transaction's id; at the commit a statement fails unless it is still the
 * same, so that nothing behind it is executed. RESET ALL and the user and role of before go with
 * it: PostgreSQL takes settings back by itself when a transaction is rolled back, so that the
 * commit is all that could make them last. What a handler set in a transaction of its own is
 * taken back with the next BEGIN.
 */
#ifndef PGSQL_GUARD_H
#define PGSQL_GUARD_H

#include <libpq-fe.h>
#include <stddef.h>
#include <waybill/sys/persistence.h>

#include "plugins/common/savepoints.h"
#include "plugins/common/sql/driver.h"

/** With what the guard fails: division by zero. */
#define PGSQL_GUARD_SQLSTATE "22012"
/** With what a statement that writes does where nothing may be written. */
#define PGSQL_READ_ONLY_SQLSTATE "25006"

/** What a deferred statement may leave in the session. */
typedef enum pgsql_leaves {
    PGSQL_LEAVES_NOTHING, /* it changes rows */
    PGSQL_LEAVES_UNSEEN,  /* what a function that it calls sets */
    PGSQL_LEAVES_SETTINGS /* it sets something, perhaps the character set */
} pgsql_leaves;

/** All zero: no handler had the connection yet. */
typedef struct pgsql_guard {
    wb_sql_answer initial; /* user and role of the session */
    int encoding;          /* of the client, libpq's number */
    wb_sql_answer began;   /* the id of the transaction; none: nobody asked */
    int is_left;           /* a handler had the connection, and its settings may be there */
    int is_deferred;       /* settings may be left by what was deferred in this transaction */
    int is_ended;          /* a statement that ends transactions was seen */
    int suspects;          /* handlers that ended it, or went back to a savepoint */
    size_t suspect;        /* the item of the first */
    wb_common_savepoints savepoints;
    size_t users;          /* handlers of this transaction that had the connection */
    size_t user;           /* the item of the first */
} pgsql_guard;

/** A handler gets the connection: does something have to be asked before? */
int pgsql_guard_is_new(const wb_storage_session *session);
/** Queue that. */
void pgsql_guard_queue_first(wb_storage_session *session);
/** After BEGIN, in the same exchange; and before it, in a transaction of its own. */
void pgsql_guard_queue_begin(wb_storage_session *session);
void pgsql_guard_queue_before(wb_storage_session *session);
/** In front of what was deferred: whose text it is did not choose another's character set. */
void pgsql_guard_queue_encoding(wb_storage_session *session);
/** The same behind a deferred statement that may have chosen one. */
void pgsql_guard_queue_encoding_behind(wb_storage_session *session);
/** Behind what handlers did, in front of what is ours. */
void pgsql_guard_queue_commit(wb_storage_session *session);

/** A handler gets the connection. */
void pgsql_guard_hand_out(wb_storage_session *session, size_t item);
/** A statement that may leave something is deferred. */
void pgsql_guard_defer(wb_storage_session *session, pgsql_leaves leaves);
/** A statement of the handler of last_item succeeded. */
void pgsql_guard_watch(wb_storage_session *session, const PGresult *result);
/** Record that the transaction was ended. @return its class. */
int pgsql_guard_found(wb_storage_session *session);
/** If a handler made the transaction one that does not write, record it, which a statement of ours
 *  met: `text` says how. @return whether it can be a handler's doing. */
int pgsql_guard_met_read_only(wb_storage_session *session, const char *text);
/** The transaction is over. */
void pgsql_guard_forget(wb_storage_session *session);
void pgsql_guard_free(pgsql_guard *guard);

#endif
