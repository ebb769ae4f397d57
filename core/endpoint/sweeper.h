/* SPDX-License-Identifier: Apache-2.0
 *
 * The sweeper: walks over the pending rows, oldest first, and dispatches what nobody else will:
 * operations whose message never came back, and parked ones that are due. One row at a time,
 * from reading to mark, so whatever becomes of one row is no other row's affair.
 *
 *   an ordinary row      dispatched once two rounds have seen it: a row normally lives
 *                        milliseconds, however long ago its transaction began
 *   a parked row         dispatched when it is due; parked again for longer if it cannot be
 *   a record of attempts deleted when nobody has touched it for a day
 *   anything else        of a later version: left alone
 *
 * A row whose operations cannot all be dispatched is parked: see core/recover/parked.h. So is one
 * whose destination confirms nothing, after a single window; what else is for that destination is
 * parked without a try, until the next round. One that the store refuses to park, with its reason and
 * without, stays as it is, but for what was confirmed, and is tried in each round; a line says so.
 */
#ifndef WB_ENDPOINT_SWEEPER_H
#define WB_ENDPOINT_SWEEPER_H

#include "core/base/error.h"
#include "core/pipeline/pipeline.h"

/** What one round leaves to the next: the ordinary rows it saw, in ascending order. */
typedef struct wb_sweep_memory {
    uint64_t *seen;
    size_t count;
} wb_sweep_memory;

/** What a round is to do. */
typedef struct wb_sweep_order {
    int64_t until;      /* monotonic: it ends then, at the latest */
    int64_t older_than; /* ns: younger ordinary rows are left to their workers */
    void (*passed)(uint64_t rows); /* told how many it has gone by; NULL: nobody is */
} wb_sweep_order;

/** What became of rows. */
typedef struct wb_sweep_result {
    size_t sent;       /* all of it, and the row is gone */
    size_t parked;
    size_t unreadable; /* left alone */
} wb_sweep_result;

/** One round, at most until its time has come or the endpoint stops. Opens a session of the
 *  transport when there is something to send. `ret_result` is filled in any case.
 *  @return WB_OK; WB_NOT_CONNECTED or WB_IN_DOUBT when the storage session is lost; other
 *  classes when the sweep had to end early. */
int wb_sweep(wb_pipeline *p, wb_storage_session *storage, wb_sweep_memory *memory, const wb_sweep_order *order,
             wb_sweep_result *ret_result, wb_error *error);
void wb_sweep_forget(wb_sweep_memory *memory);

#endif
