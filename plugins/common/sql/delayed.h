/* SPDX-License-Identifier: Apache-2.0
 *
 * The delayed message store (waybill/sys/delayed.h) in a table beside the outbox'. Outside of a
 * batch only; each call is a transaction of its own.
 *
 * A row is taken for an owner and until a time; who takes it in a server that answers with what it
 * takes needs one round trip, in others two: what is due is locked, passing over what others have
 * locked, and then taken. The same goes for the statements that name rows by their keys.
 */
#ifndef WB_COMMON_SQL_DELAYED_H
#define WB_COMMON_SQL_DELAYED_H

#include "plugins/common/sql/columns.h"

extern const wb_delayed_ops wb_sql_delayed;

/* ---- of delayed_keys.c ---- */

int wb_sql_delayed_remove(wb_storage_session *session, const char *owner, wb_delayed_key *keys,
                          size_t count, wb_error *error);
int wb_sql_delayed_increment(wb_storage_session *session, const char *owner, wb_delayed_key *keys,
                             size_t count, int64_t due, wb_error *error);
int wb_sql_delayed_release(wb_storage_session *session, const char *owner, wb_delayed_key *keys,
                           size_t count, int64_t due, wb_error *error);
int wb_sql_delayed_cancel(wb_storage_session *session, wb_delayed_key *keys, size_t count,
                          wb_error *error);
int wb_sql_delayed_reschedule(wb_storage_session *session, wb_delayed_key *keys, size_t count,
                              int64_t due, wb_error *error);

/* ---- of delayed_fetch.c ---- */

int wb_sql_delayed_fetch(wb_storage_session *session, const wb_delayed_fetch *fetch, wb_delayed_fn visit,
                         void *argument, wb_error *error);
int wb_sql_delayed_begin_fetch(wb_storage_session *session, wb_delayed_key *keys, size_t count,
                               const wb_delayed_fetch *fetch, wb_error *error);
int wb_sql_delayed_end_fetch(wb_storage_session *session, wb_delayed_fn visit, void *argument,
                             wb_error *error);
/** Drop what was begun and not ended: the session is closed. */
void wb_sql_delayed_forget(wb_storage_session *session);

/** An owner's removal that goes in the transaction of his fetch. NULL: memory is out, or rows would
 *  have to be looked for first. */
typedef struct wb_sql_removal wb_sql_removal;
wb_sql_removal *wb_sql_removal_make(wb_storage_session *session, const char *owner, wb_delayed_key *keys,
                                    size_t count);
/** In front of the fetch's statements. */
void wb_sql_removal_queue(wb_storage_session *session, wb_sql_removal *removal);
/** Behind their run: rows that were not in the places where they were fetched are gone, or elsewhere, and
 *  removed now. @return WB_OK, or the class of that. */
int wb_sql_removal_complete(wb_storage_session *session, wb_sql_removal *removal, wb_error *error);
/** Whether what the fetch has taken is one of those: its lease had ended. */
int wb_sql_removal_took(const wb_sql_removal *removal, const wb_delayed *message);
void wb_sql_removal_free(wb_storage_session *session, wb_sql_removal *removal);

/* ---- of delayed_list.c ---- */

int wb_sql_delayed_list(wb_storage_session *session, const wb_delayed_filter *filter,
                        wb_delayed_fn visit, void *argument, wb_error *error);

/* ---- storing, also with a batch's commit (transaction.c) ---- */

/** @return 0, or -1: memory is out. Free them in either case. */
int wb_sql_delayed_columns(const wb_delayed *messages, size_t count, wb_sql_columns *columns);
/** @return WB_OK, or what is recorded: a row does not hold one of them. */
int wb_sql_delayed_fit(wb_storage_session *session, const wb_sql_columns *columns);
void wb_sql_delayed_queue(wb_storage_session *session, const wb_sql_columns *columns);

/* ---- what these have in common ---- */

/** Start an exchange of the store: of a transaction that ends with it. */
void wb_sql_delayed_start(wb_storage_session *session);
/** The same, of one that goes on. */
void wb_sql_delayed_begin(wb_storage_session *session);
/** Queue its COMMIT and run that. @return WB_OK; or the class in the session's failure, and nothing
 *  is open. */
int wb_sql_delayed_commit(wb_storage_session *session, const char *crash_point);
/** Record that memory is out. @return the class. */
int wb_sql_delayed_no_memory(wb_storage_session *session);

#define WB_SQL_ROW_CELLS 6
/** A row's cells as a message; they stay where they are. */
wb_delayed wb_sql_delayed_of(const wb_sql_driver *driver, const wb_sql_cell *cells);

#endif
