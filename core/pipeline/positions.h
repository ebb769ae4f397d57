/* SPDX-License-Identifier: Apache-2.0
 *
 * Positions: messages that came before, known by how far their partition is done with, instead of
 * or beside their ids. One row a partition says below which position everything is. It is moved on as ids
 * are claimed: at the begin of a batch, behind the last message of the batch, and set back at the commit
 * to what was not handled.
 *
 * What a position passes is done with: handled in the same transaction, known to have come before, or
 * confirmed in the error queue. So a worker takes the messages of a partition in their order, and
 * none while one before it is in hand that is not in the same batch and to be handled there. Nobody else
 * is ahead: a session is handed a partition from where all was acknowledged (wb_incoming.position), and
 * who has lost it waits for the row, and finds it moved.
 */
#ifndef WB_PIPELINE_POSITIONS_H
#define WB_PIPELINE_POSITIONS_H

#include "core/pipeline/worker.h"

/** Whether none before it of its partition is in hand. */
int wb_positions_is_first(const wb_worker *w, size_t at);
/** Whether it may be added to the batch: the one before it is in it, to be handled; it is really before it (what
 *  comes again, because its partition was taken away and has come back, may be behind what did not); and no copy of
 *  its id is there, which may have come before while this one has not. */
int wb_positions_may_join(const wb_worker *w, size_t at);

/** Begin a transaction that moves the batch's partitions on and claims w->claims: those that came before
 *  are duplicates there. */
int wb_positions_begin(wb_worker *w, wb_begin *begin, wb_error *error);
/** Of a partition some of whose messages came before, the others are kept: the row names the batch whose operations
 *  may be pending, and is to name it until those are out. After the duplicates are known. */
void wb_positions_keep_behind_duplicates(wb_worker *w);
/** Before any of those is believed to have come before: is the partition still the one it was? The
 *  transaction is open. */
int wb_positions_confirm(wb_worker *w, wb_error *error);
/** Begin once more, behind a batch that failed: nothing but w->claims is changed. */
int wb_positions_begin_again(wb_worker *w, wb_begin *begin, wb_error *error);

/** Those partitions are set back with the commit of which something of the batch is left. */
void wb_positions_set_back(wb_worker *w, wb_commit *commit, int (*is_left)(const wb_worker *w, const wb_item *item));

/** Refuse partitions that were made anew, of all that have a row. For the start of an endpoint. One whose end the
 *  server cannot say now (WB_CAUSE_SERVER) is passed over with a warning, unless `all` have to be known: it is looked
 *  at before a message of it is taken for a duplicate. */
int wb_positions_check(const wb_pipeline *p, wb_storage_session *storage, wb_transport_session *transport,
                       int all, wb_error *error);

#endif
