/* SPDX-License-Identifier: Apache-2.0
 *
 * Deduplication apart from the outbox (wb_persistence_ops.forget, remember): records that go once their
 * operations are dispatched, and records that another outbox has had made here.
 */
#ifndef WB_COMMON_SQL_APART_H
#define WB_COMMON_SQL_APART_H

#include "plugins/common/sql/driver.h"

int wb_sql_forget(wb_storage_session *session, const wb_claim *claims, size_t count, wb_error *error);
int wb_sql_remember(wb_storage_session *session, const wb_claim *claims, size_t count, wb_error *error);

/** How many records a transaction is to forget before it begins. */
size_t wb_sql_count_forgotten(const wb_begin *begin);

/** Queue that they are removed: a statement for each run of claims of one batch. */
void wb_sql_queue_forgotten(wb_storage_session *session, const wb_claim *claims, size_t count);

#endif
