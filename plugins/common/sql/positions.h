/* SPDX-License-Identifier: Apache-2.0
 *
 * How far the partitions of a transport are done with: one row each (wb_begin.positions).
 */
#ifndef WB_COMMON_SQL_POSITIONS_H
#define WB_COMMON_SQL_POSITIONS_H

#include "plugins/common/sql/driver.h"

int wb_sql_positions(wb_storage_session *session, wb_position_fn visit, void *argument, wb_error *error);
int wb_sql_forget_positions(wb_storage_session *session, size_t *ret_count, wb_error *error);

/** What the locked rows answer, one for each partition. */
typedef struct wb_sql_found_positions {
    wb_sql_answer *rows;
    size_t count;
} wb_sql_found_positions;

/** How many partitions a transaction begins with. */
size_t wb_sql_count_positions(const wb_begin *begin);

/** Queue that the rows are locked, read and moved on. @return 0, or -1: no memory, and nothing is queued. */
int wb_sql_queue_positions(wb_storage_session *session, const wb_begin *begin, wb_sql_found_positions *found);
/** Fill found and batch when that has run. Needs two round trips more for partitions without a row.
 *  @return WB_OK, or the class in the session's failure. */
int wb_sql_settle_positions(wb_storage_session *session, wb_begin *begin, wb_sql_found_positions *found);
void wb_sql_clear_positions(wb_storage_session *session, wb_sql_found_positions *found);

/** All of that by itself, in a transaction that is open. @return as wb_sql_settle_positions(). */
int wb_sql_claim_positions(wb_storage_session *session, wb_begin *begin);

/** Queue that rows are set back. */
void wb_sql_queue_set_back(wb_storage_session *session, const wb_commit *commit);

#endif
