/* SPDX-License-Identifier: Apache-2.0
 *
 * The cleaner: deletes deduplication records that are older than the retention, in small paced
 * steps that nobody notices.
 */
#ifndef WB_ENDPOINT_CLEANER_H
#define WB_ENDPOINT_CLEANER_H

#include "core/base/error.h"
#include "core/endpoint/cleaner_pace.h"
#include "core/pipeline/pipeline.h"

/** What one round leaves to the next. */
typedef struct wb_cleaning {
    int64_t time_offset; /* by how much the database's clock was ahead; 0: not asked yet */
    int is_held_back;    /* the database's clock jumped: nothing is deleted this time */
    wb_cleaner_pace pace;
    wb_cleaner_pace store_pace;
} wb_cleaning;

/** Records: the endpoint's own, or those in its deduplication store. */
typedef struct wb_records {
    const wb_persistence_ops *ops;
    wb_storage_session *session;
} wb_records;

/** Delete at most as much of what is older than `before` (a batch number) as the pace has it, and rest after
 *  that, if it was any, no longer than `until`. There may be more unless *ret_deleted is 0. @return the class of what
 *  the persistence says. */
int wb_clean_up_step(wb_pipeline *p, const wb_records *records, uint64_t before, wb_cleaner_pace *pace, int64_t until,
                     size_t *ret_deleted, wb_error *error);

/** Clean up until nothing is left, `until` has come or the endpoint stops. Asks the database
 *  for its time first; a round in which that turns out to have jumped since the last one deletes
 *  nothing. */
int wb_clean_up(wb_pipeline *p, const wb_records *records, int64_t retention,
                wb_cleaning *cleaning, int64_t until, wb_error *error);
/** The same in the deduplication store, whose numbers are by the endpoint's database's time, too: after that was
 *  asked, and nothing while that one is held back. */
int wb_clean_up_store(wb_pipeline *p, const wb_records *store, int64_t retention, wb_cleaning *cleaning, int64_t until,
                      wb_error *error);

/** Remove failed messages that nobody waits for and that changed before the retention, in small steps with rests
 *  between, until nothing is left, `until` has come or the endpoint stops. */
int wb_clean_up_failures(wb_pipeline *p, wb_storage_session *session, int64_t until, wb_error *error);

#endif
