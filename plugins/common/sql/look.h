/* SPDX-License-Identifier: Apache-2.0
 *
 * What people look at who look after an endpoint (wb_persistence_ops.stats, count_records,
 * list_pending). Nothing is locked.
 */
#ifndef WB_COMMON_SQL_LOOK_H
#define WB_COMMON_SQL_LOOK_H

#include "plugins/common/sql/driver.h"

int wb_sql_stats(wb_storage_session *session, wb_outbox_stats *stats, wb_error *error);
int wb_sql_count_records(wb_storage_session *session, uint64_t from, uint64_t before, size_t limit,
                         uint64_t *ret_count, wb_error *error);
int wb_sql_list_pending(wb_storage_session *session, const wb_pending_filter *filter,
                        wb_pending_fn visit, void *argument, wb_error *error);

#endif
