/* SPDX-License-Identifier: Apache-2.0
 *
 * The transaction of a batch (wb_persistence_ops.begin, check, commit, rollback, mark).
 */
#ifndef WB_COMMON_SQL_TRANSACTION_H
#define WB_COMMON_SQL_TRANSACTION_H

#include "plugins/common/sql/driver.h"

int wb_sql_begin(wb_storage_session *session, wb_begin *begin, wb_error *error);
int wb_sql_check(wb_storage_session *session, size_t item, wb_error *error);
int wb_sql_commit(wb_storage_session *session, wb_commit *commit, wb_error *error);
int wb_sql_rollback(wb_storage_session *session, wb_error *error);
int wb_sql_mark(wb_storage_session *session, const wb_mark *marks, size_t count, wb_error *error);
int wb_sql_find(wb_storage_session *session, wb_claim *claims, size_t count, wb_error *error);

/** Queue the BEGIN that wb_sql_begin() has put off (may_begin_late), if it has. */
void wb_sql_queue_due_begin(wb_storage_session *session);

/** Roll back what is open, if anything, and keep the session's failure as it is. */
void wb_sql_undo(wb_storage_session *session);

/** End what was queued and run it, outside of the framework's transactions: nothing is open
 *  afterwards. @return as wb_sql_driver.run(). */
int wb_sql_run_outside(wb_storage_session *session, const char *crash_point);
/** The same in two halves, by a driver that has them. */
void wb_sql_send_outside(wb_storage_session *session, const char *crash_point);
int wb_sql_receive_outside(wb_storage_session *session);

/** Queue what a transaction makes first: its marks, a statement for all rows that go and one for each that
 *  only shrinks, which is rare; and the records it is to forget. */
void wb_sql_queue_dispatched(wb_storage_session *session, const wb_begin *begin);
/** Whether there is any of it. */
int wb_sql_has_dispatched(const wb_begin *begin);

/** Queue a statement of keys and a batch, for all of these claims. */
void wb_sql_queue_keys(wb_storage_session *session, wb_sql_which statement, const wb_claim *claims, size_t count,
                       uint64_t batch);

/** Queue the claims of all unsettled ids; the number of those that are new is added to
 *  ret_new->affected. */
void wb_sql_queue_claims(wb_storage_session *session, const wb_begin *begin,
                         wb_sql_answer *ret_new);
/** Fill duplicate_of of all claims, given the number that is new. Needs another round trip
 *  only if there are duplicates. @return WB_OK, or the class in the session's failure. */
int wb_sql_settle_claims(wb_storage_session *session, wb_begin *begin, uint64_t count_new);

#endif
