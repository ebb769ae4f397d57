/* SPDX-License-Identifier: Apache-2.0
 *
 * Closing the id of a session: a record whose number says that no batch is behind it, so that a commit
 * that claims the id fails, however late it comes.
 */
#ifndef WB_PIPELINE_CLOSE_ID_H
#define WB_PIPELINE_CLOSE_ID_H

#include "core/pipeline/pipeline.h"

/** Close it, in a transaction of its own; waits for who is committing it. One that is closed is closed anew, under
 *  another number: who meant to replace the record that was there (core/session/closed_keys.h) is shut out, too.
 *  @return WB_OK, with the number of the record that is there now: one that closes it, or of the batch that has it;
 *  else what failed, and it may be tried again. */
int wb_close_id(const wb_pipeline *p, wb_storage_session *storage, const void *id, size_t size, uint64_t *ret_owner,
                wb_error *error);

#endif
