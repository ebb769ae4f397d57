/* SPDX-License-Identifier: Apache-2.0
 *
 * Isolation: a batch that failed was rolled back whole. Its messages run again one by one, so
 * that one poison message harms no other; a deadlock halves the batch first. Only the message
 * at fault counts an attempt, and none does when it is the server's fault.
 */
#include "config.h"

#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/base/log.h"
#include "core/pipeline/batch.h"
#include "core/pipeline/pace.h"
#include "core/pipeline/stages.h"
#include "core/pipeline/suspect.h"
#include "core/pipeline/unconfirmed.h"
#include "core/pipeline/verdict.h"

/* So often a message that runs alone may be rolled back before that counts. */
#define ABORTS_FORGIVEN 3
/* Between two tries of a move that nothing refused, and whose transaction did not come to its end. */
#define MOVE_PAUSE_FIRST (WB_SECOND / 10)
#define MOVE_PAUSE_LONGEST (30 * WB_SECOND)

/* Whose state says that it was to run, or did, or was being moved. */
static int took_part(const wb_item *item)
{
    return item->state == WB_ITEM_HANDLED || item->state == WB_ITEM_SENT || item->state == WB_ITEM_MOVING ||
           item->state == WB_ITEM_COMMITTED || wb_item_is_open(item);
}

/* With a single message there is no doubt whose failure it is; unless that has failed for good
 * already, and its move is refused: move.c has an answer to that. */
static wb_item *find_only_one(const wb_worker *w)
{
    wb_item *found = NULL;
    for (size_t i = 0; i < w->batch_size; i++) {
        if (!took_part(w->batch[i]))
            continue;
        if (found)
            return NULL;
        found = w->batch[i];
    }
    return found && found->verdict == WB_VERDICT_OPEN ? found : NULL;
}

/* Nobody's work was in the transaction before this one's; or nobody else can have ended it. With
 * mode none, which promises a single attempt, the handler's word has to do. */
static int is_sure(const wb_worker *w, const wb_item *culprit)
{
    int has_company = 0;
    for (size_t i = 0; i < culprit->place; i++)
        has_company |= w->batch[i]->state == WB_ITEM_HANDLED || w->batch[i]->state == WB_ITEM_SENT;
    return !has_company || !w->storage || w->transaction_ended ||
           (w->pipeline->mode == WB_MODE_NONE && w->handler_said);
}

/* What the handler wants, if what became of its transaction is what it said. */
static const wb_wish *wish_of(const wb_worker *w, int result)
{
    int wanted = w->wish.kind == WB_WISH_RETRY_AFTER ? WB_RETRY : WB_REJECT;
    return w->wish.kind != WB_WISH_NOTHING && result == wanted ? &w->wish : NULL;
}

static void blame(wb_worker *w, wb_item *culprit, int result, const wb_error *error, int sure)
{
    char reason[400];
    int is_deadly = wb_suspect_why_given_up(w->pipeline, culprit, reason, sizeof reason) != NULL;
    const wb_wish *wish = is_deadly ? NULL : wish_of(w, result);
    wb_attempt attempt = { .kind = is_deadly               ? WB_FAILURE_CRASHES
                                   : result == WB_REJECT ? WB_FAILURE_UNRECOVERABLE
                                                         : WB_FAILURE_HANDLER,
                           .reason = error->text,
                           .final = result == WB_REJECT || wish,
                           .is_sure = sure,
                           .counts = sure || w->handler_said,
                           .wish = wish };
    wb_verdict_attempt_failed(w, culprit, &attempt);
}

/* A deadlock is nobody's fault, also of one that runs alone; one that never ends is its own. */
static int is_forgiven(const wb_worker *w, int result, wb_item *culprit, const wb_error *error)
{
    if (result != WB_ABORT || ++culprit->aborts > ABORTS_FORGIVEN)
        return 0;
    wb_log_event(WB_LOG_INFO, "message was rolled back and runs again", { "endpoint", w->pipeline->endpoint },
                 { "message_id", culprit->incoming->id }, { "type", wb_item_type(culprit) }, { "reason", error->text });
    return 1;
}

static void halve(wb_worker *w, const wb_error *error)
{
    wb_log_event(WB_LOG_INFO, "batch was rolled back and runs again in halves",
                 { "endpoint", w->pipeline->endpoint }, { "reason", error->text });
    w->take = (unsigned)(w->batch_size + 1) / 2;
}

/* @return why what was handled may be committed though the batch failed; or NULL. */
static const char *why_in_doubt(const wb_worker *w, int result)
{
    if (w->transaction_ended && !wb_bug("twice_in_none"))
        return "the handler of another message ended the transaction of both: its effect may be committed or not, "
               "and what it sends is not sent";
    if (result == WB_IN_DOUBT && !wb_bug("doubted_in_none"))
        return "the database did not answer its commit: its effect may be committed or not, and what it sends is "
               "not sent";
    return NULL;
}

/* Mode none promises at most once: what was handled and may be committed does not run again, for no
 * record says whether it is, and somebody is told. */
static void give_up_handled(wb_worker *w, int result, const wb_item *culprit)
{
    const char *reason = w->pipeline->mode == WB_MODE_NONE ? why_in_doubt(w, result) : NULL;
    for (size_t i = 0; reason && i < w->batch_size; i++)
        if (w->batch[i] != culprit && w->batch[i]->state == WB_ITEM_HANDLED &&
            w->batch[i]->verdict == WB_VERDICT_OPEN && w->batch[i]->handler_count)
            wb_verdict_condemn(w, w->batch[i], WB_FAILURE_HANDLER, reason);
}

/* Nor what nothing undoes, for there is no database: that leaves as it is (worker.c). */
static void rerun(wb_worker *w)
{
    for (size_t i = 0; i < w->batch_size; i++)
        if (w->batch[i]->state != WB_ITEM_HANDLED || !wb_batch_keeps_handled(w))
            wb_item_rerun(w->batch[i]);
}

/* Its move was not refused, but what is to happen with it: nobody else is to wait for that. */
static void wait_to_move(wb_worker *w, wb_item *item, const wb_error *error)
{
    if (item->verdict != WB_VERDICT_FAILED)
        return;
    wb_pace_complain(w, "a message cannot be moved and is tried again", error);
    wb_item_pause(item, wb_clock_monotonic() + wb_clock_backoff(MOVE_PAUSE_FIRST, item->pauses, MOVE_PAUSE_LONGEST));
}

int wb_stage_isolate(wb_worker *w, int result, wb_item *culprit, const wb_error *error)
{
    wb_item *only = find_only_one(w);
    int sure = culprit ? is_sure(w, culprit) : 1;

    give_up_handled(w, result, culprit);
    rerun(w);
    if (result == WB_FATAL)
        return result;
    if (result == WB_ABORT && w->batch_size > 1) {
        halve(w, error);
        return WB_OK;
    }
    wb_batch_run_alone(w);
    if (result == WB_NOT_CONNECTED || result == WB_IN_DOUBT) {
        if (only && only->verdict == WB_VERDICT_OPEN && w->storage_lost && !w->transport_broken)
            wb_verdict_broke_connection(w, only, error);
        return result;
    }
    if (error->cause == WB_CAUSE_SENDING && (only || w->batch_size == 1)) {
        wb_unconfirmed_set_aside(w, only ? only : w->batch[0], error);
        return WB_OK;
    }
    if (wb_error_is_servers(error)) {
        if (only)
            wb_verdict_met_trouble(w, only, error);
        return result;
    }
    if (!culprit)
        culprit = only;
    if (culprit && culprit->verdict == WB_VERDICT_OPEN && !is_forgiven(w, result, culprit, error))
        blame(w, culprit, result, error, sure);
    if (!culprit && result != WB_ABORT && w->batch_size == 1) /* else the worker backs off, without a line */
        wait_to_move(w, w->batch[0], error);
    return result == WB_ABORT ? result : WB_OK;
}
