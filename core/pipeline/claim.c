/* SPDX-License-Identifier: Apache-2.0
 *
 * Stage 2: one round trip makes the marks of the batch before, opens the transaction and
 * claims all ids of this batch. The claim is the check: a unique key, never a SELECT.
 */
#include "config.h"

#include "core/base/crash.h"
#include "core/base/log.h"
#include "core/pipeline/apart.h"
#include "core/pipeline/batch.h"
#include "core/pipeline/distrust.h"
#include "core/pipeline/marks.h"
#include "core/pipeline/misbehave.h"
#include "core/pipeline/positions.h"
#include "core/pipeline/stages.h"

static void apply_claims(wb_worker *w)
{
    for (size_t i = 0; i < w->claim_count; i++) {
        wb_item *item = w->claimed[i];
        if (!w->claims[i].duplicate_of || wb_bug("skip_dedup"))
            continue;
        wb_item_change(item, WB_ITEM_DUPLICATE);
        item->duplicate_of = w->claims[i].duplicate_of;
        wb_log_event(WB_LOG_DEBUG, "duplicate: handled before", { "endpoint", w->pipeline->endpoint },
                     { "message_id", item->incoming->id });
    }
}

static int begin(wb_worker *w, wb_error *error)
{
    wb_begin begin = {
        .struct_size = sizeof begin,
        .marks = w->marks,
        .mark_count = w->mark_count,
        .batch = w->batch_number,
        .claims = w->claims,
        .claim_count = w->claim_count,
    };
    wb_apart_fill(w, &begin);
    int r = w->pipeline->positions ? wb_positions_begin(w, &begin, error)
                                   : w->pipeline->persistence_ops->begin(w->storage, &begin, error);
    r = wb_distrust(w, r, error);
    if (r == WB_NOT_CONNECTED || r == WB_IN_DOUBT)
        w->storage_broken = 1;
    w->in_transaction = r == WB_OK;
    if (r == WB_OK) {
        wb_marks_clear(w);
        wb_underway_ride(&w->pipeline->underway, w);
        wb_apart_forgotten(w);
    }
    return r;
}

/* Only now: whoever had an id before us is done with it, and its store says so. */
static int ask_apart(wb_worker *w, wb_error *error)
{
    return wb_bug("asked_before_claimed") ? wb_misbehave_after_claim(w) : wb_apart_ask(w, error);
}

static int join(wb_worker *w, wb_error *error)
{
    const wb_pipeline *p = w->pipeline;
    int r = p->persistence_ops->join(w->storage, p->transport_ops->native(w->transport), error);
    r = wb_distrust(w, r, error);
    if (r == WB_NOT_CONNECTED || r == WB_IN_DOUBT)
        w->storage_broken = 1;
    return r;
}

static int begin_transport(wb_worker *w, wb_error *error)
{
    int r = WB_OK;
    if (wb_has_transport_transaction(w->pipeline))
        r = w->pipeline->transport_ops->begin(w->transport, error);
    if (r == WB_NOT_CONNECTED || r == WB_IN_DOUBT)
        w->transport_broken = 1;
    return r;
}

int wb_stage_claim(wb_worker *w, wb_error *error)
{
    size_t open = wb_batch_collect_open(w), marks = w->mark_count;
    int r = begin_transport(w, error);

    if (r != WB_OK || !w->storage)
        return r;
    if (w->pipeline->mode == WB_MODE_TRANSACTION_SCOPE) /* what is moved may have to be stored */
        return join(w, error);
    if (!open)
        return WB_OK;
    if (w->pipeline->outbox)
        wb_batch_prepare_claims(w, open);
    if ((r = wb_misbehave_before_claim(w, error)) != WB_OK)
        return r;
    wb_crash_point("before_claim");
    if ((r = begin(w, error)) != WB_OK)
        return r;
    if (marks)
        wb_crash_point("after_mark");
    if ((r = wb_positions_confirm(w, error)) != WB_OK || (r = ask_apart(w, error)) != WB_OK)
        return r;
    apply_claims(w);
    wb_positions_keep_behind_duplicates(w);
    wb_crash_point("after_claim");
    return WB_OK;
}
