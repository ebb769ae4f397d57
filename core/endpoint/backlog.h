/* SPDX-License-Identifier: Apache-2.0
 *
 * The backlog of an outbox: what is pending, and since when. A look at the heads of rows, which takes
 * no lock and waits for nobody.
 */
#ifndef WB_ENDPOINT_BACKLOG_H
#define WB_ENDPOINT_BACKLOG_H

#include "core/base/error.h"
#include "core/pipeline/pipeline.h"

/* What a pending row is. */
#define WB_ROW_OPERATIONS 0 /* of a batch, not dispatched yet */
#define WB_ROW_PARKED 1     /* core/recover/parked.h */
#define WB_ROW_ATTEMPTS 2   /* core/recover/attempts.h */
#define WB_ROW_UNKNOWN 3    /* of a later version */

typedef struct wb_backlog {
    size_t rows[4];   /* by WB_ROW_x */
    size_t of_future; /* of WB_ROW_OPERATIONS, those with a number that has not come yet */
    int is_cut;       /* there are more rows: they were counted up to the limit */
    uint64_t oldest;  /* the lowest number of WB_ROW_OPERATIONS; 0: there is none */
    uint32_t tries;   /* of the parked row that was tried most */
    uint64_t most_tried; /* its number */
    uint64_t due;     /* the lowest of WB_ROW_PARKED: due then, less sweep_after; 0: there is none */
} wb_backlog;

/** What a row that begins so is. */
int wb_backlog_kind(const void *data, size_t size);

/** Look at the rows with a number below `before`, `limit` at most (0: all; with a limit what a sweep of this process
 *  found empty a while ago, and dear to look through, is passed over).
 *  @return WB_OK, the class of what the persistence says, or WB_FATAL: it cannot list them. */
int wb_backlog_look(const wb_pipeline *p, wb_storage_session *storage, uint64_t before, size_t limit,
                    wb_backlog *ret_backlog, wb_error *error);

/** How many rows are still to be dealt with, of all there are: records of attempts are none, they go with their messages
 *  or with the retention. For who may not overlook one. */
int wb_backlog_count_work(const wb_pipeline *p, wb_storage_session *storage, size_t *ret_count, wb_error *error);

/** How many messages that programs wrote in SQL are still in their table, counted up to `limit`, whoever sends them.
 *  *ret_count: -1 where the SQL interface is not installed, or the persistence does not count them. */
int wb_backlog_count_written(const wb_pipeline *p, wb_storage_session *storage, size_t limit, int64_t *ret_count,
                             wb_error *error);

#endif
