/* SPDX-License-Identifier: Apache-2.0
 *
 * Moving a failed message to the error queue: an operation like any other, whose refusal has
 * an answer: the copy is cut down step by step; what is refused even so is parked with the
 * outbox, and set aside without.
 */
#ifndef WB_PIPELINE_MOVE_H
#define WB_PIPELINE_MOVE_H

#include "core/pipeline/worker.h"

/** Its copy for the error queue becomes its only operation; it is then WB_ITEM_MOVING. */
void wb_move_prepare(wb_worker *w, wb_item *item);
/** What was said of that operation: it is settled, or tried again in another way. Outside of
 *  any transaction. */
void wb_move_conclude(wb_worker *w, wb_item *item);
/** Inside a transport transaction it was refused: how it is tried again. Its state stays. */
void wb_move_refused(wb_worker *w, wb_item *item, const wb_operation *refused);
/** It is in the error queue, or will come back: a line, and a count. */
void wb_move_note_done(wb_worker *w, const wb_item *item);

#endif
