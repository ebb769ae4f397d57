/* SPDX-License-Identifier: Apache-2.0
 *
 * The cleaner: deletes deduplication records that are older than the retention, in small paced
 * steps that nobody notices.
 */
#ifndef WB_ENDPOINT_CLEANER_H
#define WB_ENDPOINT_CLEANER_H

#include "core/base/error.h"
#include "core/pipeline/pipeline.h"

/** Clean up until nothing is left, `until` has come or the endpoint stops. Asks the database
 *  for its time first; a round in which that turns out to have jumped since the last one deletes
 *  nothing. *offset is what the last round left there, 0 before the first. */
int wb_clean_up(wb_pipeline *p, wb_storage_session *storage, int64_t retention, int64_t *offset,
                int64_t until, wb_error *error);

#endif
