/* SPDX-License-Identifier: Apache-2.0
 *
 * The transaction of a batch (wb_persistence_ops.begin, commit, rollback, mark).
 */
#ifndef MYSQL_TRANSACTION_H
#define MYSQL_TRANSACTION_H

#include "plugins/persistence/mysql/mysql-session.h"

int mys_begin(wb_storage_session *session, wb_begin *begin, wb_error *error);
int mys_commit(wb_storage_session *session, wb_commit *commit, wb_error *error);
int mys_rollback(wb_storage_session *session, wb_error *error);
int mys_mark(wb_storage_session *session, const wb_mark *marks, size_t count, wb_error *error);

/** Roll back what is open, if anything, make its marks by themselves in the same round trip,
 *  and keep session->sql.failure as it is. */
void mys_undo(wb_storage_session *session);

/** Run what was queued with mys_queue_end() behind it, outside of the framework's transactions:
 *  autocommit is off, so that even a SELECT has begun one. @return as mys_exchange_run(). */
int mys_run_outside(wb_storage_session *session);

/** Write the statements of the marks into session->marks. @return WB_OK, or the class in
 *  session->sql.failure. */
int mys_compose_marks(wb_storage_session *session, const wb_mark *marks, size_t count);
/** Queue BEGIN and session->marks. */
void mys_queue_begin(wb_storage_session *session);

/** A claim whose standing is not known yet: what duplicate_of is until then. */
#define MYS_UNSETTLED UINT64_MAX

/** Queue the claims of all unsettled ids; the number of those that are new is added. */
void mys_queue_claims(wb_storage_session *session, const wb_begin *begin, uint64_t *ret_new);
/** Fill duplicate_of of all claims, given the number that is new. Needs another round trip
 *  only if there are duplicates. @return WB_OK, or the class in session->sql.failure. */
int mys_settle_claims(wb_storage_session *session, wb_begin *begin, uint64_t count_new);

/** Ids of one statement: 270 KB of text at most, whatever the size of the batch. */
#define MYS_IDS_MAX 500
/** Append ids, separated by commas: of a statement that is being composed. */
void mys_put_ids(wb_storage_session *session, const wb_claim *claims, size_t count);

#endif
