/* SPDX-License-Identifier: Apache-2.0
 *
 * The delayed message store's inside: what delayed.c and fetch.c share.
 */
#ifndef WB_SQLITE_DELAYED_H
#define WB_SQLITE_DELAYED_H

#include "plugins/persistence/sqlite/persistence.h"

/* One call of the store, on the session's own connection or on the transport's that it has
 * joined. Statements live as long as the call: those of a joined connection must not outlive
 * it, and beside the flush that a call costs their making is nothing. */
typedef struct wb_sqlite_delayed_call {
    wb_storage_session *session;
    wb_sqlite_database *db;
    wb_sqlite_database joined; /* our settings with the transport's handle */
    wb_error *error;
} wb_sqlite_delayed_call;

/* Times in the table are microseconds; what is due is never rounded down. */
int64_t wb_sqlite_delayed_to_column(int64_t time);
int64_t wb_sqlite_delayed_from_column(int64_t column);
/* Now, rounded down. */
int64_t wb_sqlite_delayed_now(wb_storage_session *session);

/* A call that only looks, or is to begin a transaction. */
int wb_sqlite_delayed_enter(wb_sqlite_delayed_call *call, wb_storage_session *session,
                            wb_error *error);
/* A transaction of the call's own; nothing on a joined connection. */
int wb_sqlite_delayed_begin(wb_sqlite_delayed_call *call, wb_sqlite_db_durability durability);
/* Commit it, or roll it back if `result` is not WB_OK. `point`: a crash point, or NULL.
 * @return what became of the call. */
int wb_sqlite_delayed_end(wb_sqlite_delayed_call *call, int result, const char *point);
/* `format` as for wb_sqlite_names_format(); to be finalized. */
int wb_sqlite_delayed_prepare(wb_sqlite_delayed_call *call, sqlite3_stmt **ret_statement,
                              const char *format);

/* delayed.c: what is stored with a batch's commit; an owner's removal, as a part of a transaction. */
int wb_sqlite_delayed_insert(wb_storage_session *session, const wb_delayed *messages, size_t count,
                             wb_error *error);
int wb_sqlite_delayed_drop(wb_sqlite_delayed_call *call, const char *owner, wb_delayed_key *keys, size_t count);

/* fetch.c */
int wb_sqlite_delayed_next(wb_storage_session *session, int64_t *ret_due, int64_t *ret_now,
                           wb_error *error);
int wb_sqlite_delayed_fetch(wb_storage_session *session, const wb_delayed_fetch *fetch,
                            wb_delayed_fn visit, void *argument, wb_error *error);
int wb_sqlite_delayed_begin_fetch(wb_storage_session *session, wb_delayed_key *keys, size_t count,
                                  const wb_delayed_fetch *fetch, wb_error *error);
int wb_sqlite_delayed_end_fetch(wb_storage_session *session, wb_delayed_fn visit, void *argument,
                                wb_error *error);
/* Drop what was begun and not ended: the session is closed. */
void wb_sqlite_delayed_forget(wb_storage_session *session);
int wb_sqlite_delayed_list(wb_storage_session *session, const wb_delayed_filter *filter,
                           wb_delayed_fn visit, void *argument, wb_error *error);

#endif
