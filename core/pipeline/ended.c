/* SPDX-License-Identifier: Apache-2.0
 *
 * A handler ended the batch's transaction, which it must not. If it committed, the claims of
 * the whole batch are recorded and the effects of the messages handled before it, but neither
 * their operations were stored nor the claims of the others given back: they would all pass
 * for duplicates and be lost. Both are made good in a transaction of their own, before the
 * batch runs again one by one. (A process that dies before that loses them: no rule of the
 * database keeps a handler from committing.)
 *
 * Whatever else failed may hide it: an error of the handler's own, a deadlock, a connection that
 * was lost right after. So each batch that is undone is looked at, and not only those of which it
 * is known. Where nobody knows who it was everybody runs again: what came after it was in another
 * transaction, and is rolled back, and nothing may be lost.
 *
 * Who began another transaction at once may be found by the commit only (commit.c): then those
 * after the culprit count as not handled.
 */
#include "config.h"

#include "core/base/crash.h"
#include "core/base/log.h"
#include "core/pipeline/batch.h"
#include "core/pipeline/distrust.h"
#include "core/pipeline/positions.h"
#include "core/pipeline/stages.h"

/* Claims once more: what the handler committed is a duplicate of this very batch. */
static int probe(wb_worker *w, wb_error *error)
{
    for (size_t i = 0; i < w->claim_count; i++) /* the commit may have used the array up */
        w->claims[i] = (wb_claim){ w->claimed[i]->id, w->claimed[i]->id_size, 0 };
    wb_begin begin = { .struct_size = sizeof begin,
                       .batch = wb_pipeline_batch_number(w->pipeline),
                       .claims = w->claims,
                       .claim_count = w->claim_count };
    int r = w->pipeline->positions ? wb_positions_begin_again(w, &begin, error)
                                   : w->pipeline->persistence_ops->begin(w->storage, &begin, error);
    w->in_transaction = r == WB_OK;
    return r;
}

/* A duplicate's record was another batch's, and may have gone to the store of deduplication since. */
static int was_ours(const wb_worker *w, size_t claim)
{
    return w->claimed[claim]->state != WB_ITEM_DUPLICATE || w->claimed[claim]->is_passed || wb_bug("believes_others");
}

/* A claim of ours that is free was rolled back, and all others with it; or it was made good before a
 * connection broke. */
static int was_committed(const wb_worker *w)
{
    for (size_t i = 0; i < w->claim_count; i++)
        if (!w->claims[i].duplicate_of && was_ours(w, i))
            return 0;
    return w->claim_count > 0;
}

static size_t collect_unhandled(wb_worker *w)
{
    size_t count = 0;
    for (size_t i = 0; i < w->claim_count; i++)
        if (w->claims[i].duplicate_of == w->batch_number &&
            (!w->transaction_ended || w->claimed[i]->state != WB_ITEM_HANDLED))
            w->claims[count++] = w->claims[i];
    return count;
}

/* Rows that another batch has moved since stay: the number tells. */
static int is_left(const wb_worker *w, const wb_item *item)
{
    return item->state != WB_ITEM_DUPLICATE && !(w->transaction_ended && item->state == WB_ITEM_HANDLED);
}

static int make_good(wb_worker *w, wb_error *error)
{
    wb_commit commit = { .struct_size = sizeof commit, .batch = w->batch_number, .failed_item = SIZE_MAX };
    if (w->transaction_ended && wb_batch_encode(w)) {
        commit.operations = w->encoded.data;
        commit.operations_size = w->encoded.size;
    }
    commit.released = w->claims;
    commit.released_count = collect_unhandled(w);
    if (w->pipeline->positions == WB_POSITIONS_ALONE)
        commit.released_count = 0;
    wb_positions_set_back(w, &commit, is_left);
    int r = w->pipeline->persistence_ops->commit(w->storage, &commit, error);
    w->in_transaction = 0;
    return r;
}

static int leave(wb_worker *w, wb_error *error)
{
    w->in_transaction = 0;
    if (w->pipeline->persistence_ops->rollback(w->storage, error) == WB_OK)
        return WB_OK;
    w->storage_broken = 1;
    return WB_NOT_CONNECTED;
}

static void tell_unnamed(const wb_worker *w)
{
    if (!w->transaction_ended)
        wb_log_event(WB_LOG_WARNING, "a handler ended the transaction, nobody knows which: its batch runs again",
                     { "endpoint", w->pipeline->endpoint });
}

int wb_stage_repair(wb_worker *w, wb_error *error)
{
    int r = wb_distrust(w, probe(w, error), error);
    if (r == WB_OK && was_committed(w)) {
        tell_unnamed(w);
        r = wb_distrust(w, make_good(w, error), error);
    } else if (r == WB_OK) {
        r = leave(w, error);
    }
    if (r == WB_NOT_CONNECTED || r == WB_IN_DOUBT)
        w->storage_broken = 1;
    return r;
}
