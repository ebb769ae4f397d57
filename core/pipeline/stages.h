/* SPDX-License-Identifier: Apache-2.0
 *
 * The stages, in the order in which worker.c runs them. Each works on the worker's running
 * batch, on that worker's thread, and returns a result class with `error` filled. A stage that
 * finds a session broken sets w->transport_broken or w->storage_broken. No stage calls another:
 * what several need is in the rooms below them (item, batch, window, marks, verdict, suspect).
 */
#ifndef WB_PIPELINE_STAGES_H
#define WB_PIPELINE_STAGES_H

#include "core/pipeline/worker.h"

/** connect.c: open what is not open; backs off after failures. WB_FATAL: somebody must act. */
int wb_stage_connect(wb_worker *w, wb_error *error);
/** connect.c: the same for the storage session alone: what is in hand stays. */
int wb_stage_connect_storage(wb_worker *w, wb_error *error);
/** connect.c: close both sessions; what is in hand goes back to the broker. */
void wb_stage_disconnect(wb_worker *w);

/** receive.c: take what is there, and refuse what cannot be handled. Waits while nothing is
 *  in hand that could run and nothing is to be acknowledged. */
int wb_stage_receive(wb_worker *w, wb_error *error);

/** suspect.c: if the batch is a suspect, write its attempt down. */
int wb_stage_suspect(wb_worker *w, wb_error *error);

/** witness.c: if a connection broke while the batch's one message was handled, see whether the
 *  database is well; then that counts. WB_NOT_CONNECTED: it is not. */
int wb_stage_witness(wb_worker *w, wb_error *error);

/** claim.c: marks of the batch before, begin, claim the ids: one round trip. What waited for
 *  those marks can be acknowledged then. */
int wb_stage_claim(wb_worker *w, wb_error *error);

/** handle.c: run the handlers. On failure *ret_culprit is whose it is, or NULL: nobody's
 *  for sure. The verdict of a handler counts when it ran first in the transaction. */
int wb_stage_handle(wb_worker *w, wb_item **ret_culprit, wb_error *error);

/** commit.c: store the operations, give back claims, commit: one round trip. */
int wb_stage_commit(wb_worker *w, wb_item **ret_culprit, wb_error *error);
/** commit.c: undo what the batch did, in database and transport. */
int wb_stage_rollback(wb_worker *w);

/** ended.c: the batch was rolled back and not rerun yet; a handler may have ended its transaction
 *  before: make good what that committed. WB_NOT_CONNECTED, WB_IN_DOUBT, WB_ABORT, WB_RETRY: to be
 *  tried again. */
int wb_stage_repair(wb_worker *w, wb_error *error);

/** session.c: the batch is control messages of sessions: what their records say. */
int wb_stage_sessions(wb_worker *w, wb_error *error);

/** resume.c: dispatch what earlier attempts of duplicates left pending. */
int wb_stage_resume(wb_worker *w, wb_error *error);
/** dispatch.c: send the operations of the batch, and failed messages to the error queue. */
int wb_stage_dispatch(wb_worker *w, wb_error *error);

/** transaction.c: the same inside a transport transaction, and acknowledge; before the commit. */
int wb_stage_dispatch_inside(wb_worker *w, wb_item **ret_culprit, wb_error *error);
/** transaction.c: commit the transport transaction. */
int wb_stage_commit_transport(wb_worker *w, wb_error *error);

/** settle.c: make the marks, then acknowledge what waited for them. */
int wb_stage_settle(wb_worker *w, wb_error *error);
/** settle.c: the same, and what was acknowledged is so for good: before a handler that may end the
 *  process, and behind a suspect, whose record goes then. WB_RETRY: to be tried again. */
int wb_stage_settle_for_good(wb_worker *w, wb_error *error);
/** settle.c: the second half of the first. */
int wb_stage_acknowledge(wb_worker *w, wb_error *error);

/** isolate.c: the batch failed and was rolled back: whose fault, and how it runs again.
 *  @return WB_OK if it can run again at once, else the class to wait for. */
int wb_stage_isolate(wb_worker *w, int result, wb_item *culprit, const wb_error *error);

#endif
