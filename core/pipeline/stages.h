/* SPDX-License-Identifier: Apache-2.0
 *
 * The stages, in the order in which a batch passes them. Each works on the worker it is
 * given, on that worker's thread, and returns a result class with w->error filled. A stage
 * that finds a session broken sets w->transport_broken or w->storage_broken.
 */
#ifndef WB_PIPELINE_STAGES_H
#define WB_PIPELINE_STAGES_H

#include "core/pipeline/pipeline.h"

/** No item in particular. */
#define WB_NOBODY SIZE_MAX

/** receive.c: if nothing is held, take what is there; settles when there is nothing. */
int wb_stage_receive(wb_worker *w);

/** batch.c: choose the batch, the first of the held messages. */
void wb_batch_start(wb_worker *w);
/** batch.c: move what is done out of the worker's hands, keep the rest for the next. */
void wb_batch_finish(wb_worker *w);
/** batch.c: forget what the batch did; its messages are ready to run again. */
void wb_batch_reset(wb_worker *w);
/** batch.c: forget all messages, as after the loss of the transport session. */
void wb_batch_drop_all(wb_worker *w);

/** claim.c: marks of the batch before, begin, claim the ids: one round trip. */
int wb_stage_claim(wb_worker *w);

/** handle.c: run the handlers. On failure *ret_culprit is the item's index, or WB_NOBODY. */
int wb_stage_handle(wb_worker *w, size_t *ret_culprit);
/** context.c: call one handler for `count` messages of the batch. */
int wb_context_call(wb_worker *w, wb_item *const *items, size_t count);

/** commit.c: store the operations and commit. */
int wb_stage_commit(wb_worker *w, size_t *ret_culprit);
/** commit.c: undo what the batch did. */
int wb_stage_rollback(wb_worker *w);

/** dispatch.c: send the operations of the batch, and failed messages to the error queue. */
int wb_stage_dispatch(wb_worker *w);
/** dispatch.c: send one window until nothing in it is unknown. */
int wb_dispatch_window(wb_worker *w);
void wb_window_add(wb_worker *w, wb_operation *operation);
/** Whether sends and acknowledgements are part of a transport transaction. */
int wb_has_transport_transaction(const wb_worker *w);
/** dispatch.c: the same inside a transport transaction, before the commit. */
int wb_stage_dispatch_inside(wb_worker *w, size_t *ret_culprit);

/** resume.c: dispatch what earlier attempts of duplicates left pending. */
int wb_stage_resume(wb_worker *w);

/** settle.c: mark alone, then acknowledge: for when no batch follows. */
int wb_stage_settle(wb_worker *w);
/** settle.c: the marks were made: acknowledge what waited for them. */
int wb_settle_marked(wb_worker *w);
/** settle.c: remember to mark `batch`; NULL and 0 for nothing remaining. Copies. */
void wb_settle_add_mark(wb_worker *w, uint64_t batch, const void *remaining, size_t size);
void wb_settle_add_message(wb_worker *w, const wb_incoming *incoming);

/** commit.c: encode the operations of handled messages. @return how many there are. */
size_t wb_encode_handled(wb_worker *w);
/** ended.c: make good that a handler ended the transaction; the batch was rolled back and is
 *  not reset yet. Overwrites w->error. */
void wb_repair_ended(wb_worker *w);

/** isolate.c: after a failed batch: whose fault, and how it runs again. */
int wb_isolate(wb_worker *w, int result, size_t culprit);
/** isolate.c: a deadlock halves the batch before anything else. @return whether it did. */
int wb_halve_after_abort(wb_worker *w, int result);
/** isolate.c: an attempt of one message failed: retry it, or to the error queue. */
void wb_item_fail(wb_worker *w, wb_item *item, const char *kind, const char *reason, int recoverable);

/** connect.c: open what is not open; backs off after failures. */
int wb_worker_connect(wb_worker *w);
void wb_worker_disconnect(wb_worker *w);
/** connect.c: log why the worker cannot go on, unless it did so lately; w->error says why. */
void wb_worker_complain(wb_worker *w, const char *text);

/** suspect.c: whether a message may have ended a process; it then runs by itself. */
int wb_item_is_suspect(const wb_worker *w, const wb_item *item);
/** suspect.c: if the batch is a suspect, write its attempt down. */
int wb_stage_suspect(wb_worker *w);
/** suspect.c: its ids are claimed: a suspect that was not committed before and has used up its
 *  attempts goes to the error queue, unhandled. */
int wb_suspect_give_up(wb_worker *w);
/** suspect.c: the message is done: its record goes with the next marks. */
void wb_suspect_done(wb_worker *w, const wb_item *item);

#endif
