/* SPDX-License-Identifier: Apache-2.0
 *
 * The transaction of a batch (wb_persistence_ops.begin, commit, rollback, mark).
 */
#ifndef PGSQL_TRANSACTION_H
#define PGSQL_TRANSACTION_H

#include "plugins/persistence/pgsql/pgsql-session.h"

int pgsql_begin(wb_storage_session *session, wb_begin *begin, wb_error *error);
int pgsql_commit(wb_storage_session *session, wb_commit *commit, wb_error *error);
int pgsql_rollback(wb_storage_session *session, wb_error *error);
int pgsql_mark(wb_storage_session *session, const wb_mark *marks, size_t count, wb_error *error);

/** Roll back what is open, if anything, and keep session->sql.failure as it is. */
void pgsql_undo(wb_storage_session *session);

/** Queue a transaction that makes the marks, up to its synchronization point. */
void pgsql_queue_marks(wb_storage_session *session, const wb_mark *marks, size_t count);

/** A claim whose standing is not known yet: what duplicate_of is until then. */
#define PGSQL_UNSETTLED UINT64_MAX

/** Queue the claim statement for all unsettled claims. */
void pgsql_queue_claims(wb_storage_session *session, const wb_begin *begin,
                        PGresult **ret_claimed);
/** Fill duplicate_of of all claims, given the answer to that statement, which is taken.
 *  Needs another round trip only if there are duplicates.
 *  @return WB_OK, or the class in session->sql.failure. */
int pgsql_settle_claims(wb_storage_session *session, wb_begin *begin, PGresult *claimed);

/** Arrays in PostgreSQL's binary format. */
void pgsql_encode_keys(wb_sql_buffer *buffer, const wb_claim *claims, size_t count,
                       int only_unsettled);
void pgsql_encode_batches(wb_sql_buffer *buffer, const uint64_t *batches, size_t count);
/** The batches of the `gone` marks of which nothing remains. */
void pgsql_encode_gone(wb_sql_buffer *buffer, const wb_mark *marks, size_t count, size_t gone);

#endif
