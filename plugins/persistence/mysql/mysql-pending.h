/* SPDX-License-Identifier: Apache-2.0
 *
 * What outlives a transaction: pending operations and old deduplication records
 * (wb_persistence_ops.pending, next_pending, sweep, clean_up). Outside of a transaction only.
 */
#ifndef MYSQL_PENDING_H
#define MYSQL_PENDING_H

#include "plugins/persistence/mysql/mysql-session.h"

int mys_pending(wb_storage_session *session, const uint64_t *batches, size_t count,
                wb_pending_fn visit, void *argument, wb_error *error);
/** Both hold one row in memory. The lock that keeps other instances out is held while it is
 *  visited: `visit` must not use the session. */
int mys_next_pending(wb_storage_session *session, uint64_t after, uint64_t before,
                     wb_pending_fn visit, void *argument, wb_error *error);
int mys_sweep(wb_storage_session *session, uint64_t before, size_t limit, wb_pending_fn visit,
              void *argument, wb_error *error);
int mys_clean_up(wb_storage_session *session, uint64_t before, size_t limit, size_t *ret_deleted,
                 wb_error *error);

#endif
