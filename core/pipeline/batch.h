/* SPDX-License-Identifier: Apache-2.0
 *
 * The batch: which of the messages in hand run together, and what becomes of them when it is
 * over. Its size follows the measured time of the handlers: types that are slow, or not known
 * yet, run one at a time.
 */
#ifndef WB_PIPELINE_BATCH_H
#define WB_PIPELINE_BATCH_H

#include "core/pipeline/worker.h"

/** Put received messages into the worker's hands. */
wb_item *wb_batch_hold(wb_worker *w, const wb_incoming *incoming, const wb_handler_entry *handler);
/** How many more it can hold. */
size_t wb_batch_room(const wb_worker *w);
/** The worker is about to ask for messages, or may not yet: whether it has nothing in hand, and nothing in its
 *  way (empty_since). */
void wb_batch_note_empty(wb_worker *w);

/** Whether messages that were set aside before may run, now that they are due. After each of them
 *  it is the others' turn, also of those that are still at the broker: or a few, tried in turn,
 *  would keep a worker busy. */
typedef enum {
    WB_BATCH_FRESH,
    WB_BATCH_ANY
} wb_batch_choice;

/** Count those of the batch that are in that state: their effect is durable now. */
void wb_batch_tally(wb_worker *w, wb_item_state state);

/** Choose what runs now. @return whether anything can. */
int wb_batch_choose(wb_worker *w, wb_batch_choice choice);
/** Whether anything in hand can run now. */
int wb_batch_can_run(const wb_worker *w);
/** When the first of the messages that are set aside may run again; WB_NEVER without any. */
int64_t wb_batch_next_time(const wb_worker *w);
/** How many are set aside, but for control messages of sessions. */
size_t wb_batch_count_aside(const wb_worker *w);
/** And how many of those. */
size_t wb_batch_count_controls_aside(const wb_worker *w);

/** Whether those that were handled before another one failed have their effect all the same: with mode none and no
 *  database, where nothing undoes it, and no record keeps them from running twice. */
int wb_batch_keeps_handled(const wb_worker *w);
/** Forget what the batch did: its messages are ready to run again. */
void wb_batch_rerun(wb_worker *w);
/** Each of its messages runs by itself next time. */
void wb_batch_run_alone(wb_worker *w);
/** Settled messages leave the worker's hands, the others are ready to run again. */
void wb_batch_finish(wb_worker *w);
/** Forget all messages, as after the loss of the transport session. */
void wb_batch_drop_all(wb_worker *w);

/** Put those whose handlers are to run into w->claimed. @return how many they are. */
size_t wb_batch_collect_open(wb_worker *w);
/** Of so many in w->claimed make w->claims, in ascending order of ids. The same id twice in one batch is
 *  one message, the one received first, and one duplicate. */
void wb_batch_prepare_claims(wb_worker *w, size_t open);

/** Encode the operations of its handled messages into w->encoded. @return how many there are. */
size_t wb_batch_encode(wb_worker *w);

/** What the transport should prefetch. */
unsigned wb_batch_prefetch(const wb_worker *w);

/** What a message of this handler takes, measured for `count` of them. */
void wb_batch_note_cost(wb_worker *w, const wb_handler_entry *handler, int64_t spent, size_t count);

#endif
