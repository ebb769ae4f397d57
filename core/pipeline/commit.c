/* SPDX-License-Identifier: Apache-2.0
 *
 * Stage 4: store the outgoing operations, give back the claims of what was not handled, and
 * commit: one round trip. A connection lost during COMMIT leaves the outcome unknown; the
 * batch then runs again, and its claims say which it was.
 */
#include "config.h"

#include "core/base/crash.h"
#include "core/pipeline/batch.h"
#include "core/pipeline/defer.h"
#include "core/pipeline/distrust.h"
#include "core/pipeline/misbehave.h"
#include "core/pipeline/positions.h"
#include "core/pipeline/stages.h"

/* The claims of messages that are kept, or known by their positions alone, move to the front of the claim array. */
static size_t collect_released(wb_worker *w)
{
    size_t count = 0;
    for (size_t i = 0; i < w->claim_count; i++)
        if (w->claimed[i]->state == WB_ITEM_KEPT || (w->claimed[i]->is_passed && !wb_bug("passed_recorded")))
            w->claims[count++] = w->claims[i];
    return count;
}

static int is_left(const wb_worker *w, const wb_item *item)
{
    (void)w;
    return item->state == WB_ITEM_KEPT;
}

static void give_back_claims(wb_worker *w, wb_commit *commit)
{
    wb_positions_set_back(w, commit, is_left);
    commit->released_count = collect_released(w);
    commit->released = w->claims;
    if (w->pipeline->positions == WB_POSITIONS_ALONE)
        commit->released_count = 0;
}

static int leave_joined(wb_worker *w, wb_error *error)
{
    int r = wb_distrust(w, w->pipeline->persistence_ops->join(w->storage, NULL, error), error);
    w->storage_broken |= r == WB_NOT_CONNECTED || r == WB_IN_DOUBT;
    return r;
}

/* A deferred statement that failed names its message; what a batch handler deferred for several
 * is nobody's in particular, and the server's trouble nobody's at all. */
static wb_item *find_culprit(const wb_worker *w, const wb_commit *commit, const wb_error *error)
{
    if (w->grouped || commit->failed_item >= w->batch_size || wb_error_is_servers(error))
        return NULL;
    return w->batch[commit->failed_item];
}

/* A handler ended the transaction, which only the commit has shown. What was handled before it
 * may be committed; what came after it was in another transaction, and is rolled back. Where
 * nobody knows who it was everybody runs again: nothing may be lost. */
static void note_ended(wb_worker *w, size_t failed_item)
{
    const unsigned turn = failed_item < w->batch_size ? w->batch[failed_item]->turn : 0;
    w->transaction_ended = 1;
    if (w->pipeline->mode == WB_MODE_NONE && !turn)
        return; /* nor may anything happen twice (isolate.c) */
    for (size_t i = 0; i < w->batch_size; i++)
        if (w->batch[i]->state == WB_ITEM_HANDLED && w->batch[i]->turn >= turn)
            wb_item_rerun(w->batch[i]);
}

/* ---- what is due later --------------------------------------------------------------- */

static void collect_delayed(wb_worker *w, wb_commit *commit)
{
    size_t most = 0;
    for (size_t i = 0; i < w->batch_size; i++)
        most += w->batch[i]->state == WB_ITEM_HANDLED ? w->batch[i]->operations.count : 0;
    if (!w->pipeline->stores_with_commit || !most || wb_bug("stored_behind"))
        return;
    int64_t now = wb_pipeline_due_now(w->pipeline);
    wb_delayed *rows = wb_arena_alloc(&w->arena, most * sizeof *rows);
    for (size_t i = 0; i < w->batch_size; i++)
        if (w->batch[i]->state == WB_ITEM_HANDLED)
            commit->delayed_count += wb_defer_take(&w->batch[i]->operations, now, &w->arena, &w->encoded,
                                                   rows + commit->delayed_count);
    if (wb_bug("delay_needs_outbox") && !w->pipeline->outbox)
        commit->delayed_count = 0;
    commit->delayed = rows;
}

/* They are not stored: who makes good what a handler committed (ended.c) writes them down with the rest. */
static void untake_delayed(wb_worker *w, const wb_commit *commit)
{
    if (!commit->delayed_count || wb_bug("delay_not_made_good"))
        return;
    for (size_t i = 0; i < w->batch_size; i++)
        for (wb_operation_node *node = w->batch[i]->operations.first; node; node = node->next)
            if (node->operation.deliver_at && node->operation.result == WB_OK)
                node->operation.result = WB_RETRY;
}

static void tell_breaker(wb_worker *w, const wb_commit *commit, int result, const wb_error *error)
{
    if (!commit->delayed_count)
        return;
    if (result == WB_OK)
        wb_breaker_succeeded(&w->pipeline->store_breaker, w->pipeline);
    else if (wb_error_is_servers(error))
        wb_breaker_failed(&w->pipeline->store_breaker, w->pipeline, error);
}

static void wake_poller(wb_worker *w, const wb_commit *commit)
{
    for (size_t i = 0; i < commit->delayed_count && !wb_bug("poller_not_woken"); i++)
        wb_alarm_tell(&w->pipeline->alarm, commit->delayed[i].due);
}

/* Whoever finds its record knows that it was made. */
static void note_doubt(wb_worker *w)
{
    for (size_t i = 0; i < w->batch_size; i++)
        if (w->batch[i]->state == WB_ITEM_HANDLED)
            w->batch[i]->doubted_in = w->batch_number;
}

/* ---- commit -------------------------------------------------------------------------- */

static int commit(wb_worker *w, wb_item **ret_culprit, wb_error *error)
{
    wb_commit commit = { .struct_size = sizeof commit, .batch = w->batch_number, .failed_item = SIZE_MAX };
    collect_delayed(w, &commit);
    if (w->pipeline->outbox) {
        if ((w->stored = wb_batch_encode(w) > 0)) {
            commit.operations = w->encoded.data;
            commit.operations_size = w->encoded.size;
        }
        give_back_claims(w, &commit);
    }
    wb_misbehave_before_commit(w);
    wb_crash_point("before_commit");
    if (w->stored)
        wb_underway_begin(&w->pipeline->underway, w, w->batch_number);
    int r = wb_distrust(w, w->pipeline->persistence_ops->commit(w->storage, &commit, error), error);
    error->result = r;
    w->in_transaction = 0;
    /* in doubt its own records tell what became of it */
    w->may_have_ended &= r != WB_OK && r != WB_IN_DOUBT;
    tell_breaker(w, &commit, r, error);
    if (r != WB_OK) {
        untake_delayed(w, &commit);
        wb_underway_give_up(&w->pipeline->underway, w);
    }
    if (r == WB_IN_DOUBT)
        note_doubt(w);
    if (r == WB_OK) {
        wb_underway_landed(&w->pipeline->underway, w);
        wake_poller(w, &commit);
        wb_crash_point("after_commit");
    } else if (r == WB_NOT_CONNECTED || r == WB_IN_DOUBT)
        w->storage_broken = 1;
    else
        *ret_culprit = find_culprit(w, &commit, error);
    if (r == WB_REJECT && error->cause != WB_CAUSE_TOO_LARGE)
        note_ended(w, commit.failed_item);
    return r;
}

/* Inside a transport transaction what they send is sent by now, and the commit is not the last
 * step: they stay as they are. */
static void note_committed(wb_worker *w)
{
    for (size_t i = 0; i < w->batch_size; i++)
        if (w->batch[i]->state == WB_ITEM_HANDLED)
            wb_item_change(w->batch[i], WB_ITEM_COMMITTED);
    wb_batch_tally(w, WB_ITEM_COMMITTED);
}

int wb_stage_commit(wb_worker *w, wb_item **ret_culprit, wb_error *error)
{
    int r = WB_OK;
    *ret_culprit = NULL;
    if (w->pipeline->mode == WB_MODE_TRANSACTION_SCOPE && w->storage)
        r = leave_joined(w, error);
    else if (w->in_transaction)
        r = commit(w, ret_culprit, error);
    if (r == WB_OK)
        note_committed(w);
    return r;
}

int wb_stage_rollback(wb_worker *w)
{
    const wb_pipeline *p = w->pipeline;
    wb_error ignored; /* the reason for rolling back is what counts */
    int r = WB_OK;

    if (w->in_transaction && !w->storage_broken)
        r = p->persistence_ops->rollback(w->storage, &ignored);
    if (r != WB_OK)
        w->storage_broken = 1;
    if (!w->storage_broken) /* the plugin has made the marks all the same */
        wb_underway_landed(&w->pipeline->underway, w);
    w->in_transaction = 0;
    if (p->mode == WB_MODE_TRANSACTION_SCOPE && w->storage)
        w->storage_broken |= p->persistence_ops->join(w->storage, NULL, &ignored) != WB_OK;
    if (wb_has_transport_transaction(p) && !w->transport_broken &&
        p->transport_ops->rollback(w->transport, &ignored) != WB_OK)
        w->transport_broken = 1;
    return w->storage_broken || w->transport_broken ? WB_NOT_CONNECTED : WB_OK;
}
