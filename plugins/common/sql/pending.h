/* SPDX-License-Identifier: Apache-2.0
 *
 * What outlives a transaction: pending operations and old deduplication records
 * (wb_persistence_ops.pending, next_pending, sweep, clean_up), and the server's time. Outside of
 * a transaction only.
 */
#ifndef WB_COMMON_SQL_PENDING_H
#define WB_COMMON_SQL_PENDING_H

#include "plugins/common/sql/driver.h"

int wb_sql_pending(wb_storage_session *session, const uint64_t *batches, size_t count,
                   wb_pending_fn visit, void *argument, wb_error *error);
/** Both hold one row in memory. The lock that keeps other instances out is held while it is
 *  visited. `visit` must not use the session. */
int wb_sql_next_pending(wb_storage_session *session, uint64_t after, uint64_t before,
                        wb_pending_fn visit, void *argument, wb_error *error);
int wb_sql_sweep(wb_storage_session *session, uint64_t before, size_t limit, wb_pending_fn visit,
                 void *argument, wb_error *error);
int wb_sql_take_pending(wb_storage_session *session, uint64_t batch, int *ret_taken, wb_error *error);
int wb_sql_clean_up(wb_storage_session *session, uint64_t before, size_t limit,
                    size_t *ret_deleted, wb_error *error);

/** wb_persistence_ops.clock: one round trip. */
int wb_sql_clock(wb_storage_session *session, int64_t *ret_wall, wb_error *error);
/** Warn of records from the future, once a session: two round trips.
 *  @return WB_OK, or the class in the session's failure. */
int wb_sql_look_ahead(wb_storage_session *session);

#endif
