/* SPDX-License-Identifier: Apache-2.0
 *
 * Stage 2: one round trip makes the marks of the batch before, opens the transaction and
 * claims all ids of this batch. The claim is the check: a unique key, never a SELECT.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/crash.h"
#include "core/base/log.h"
#include "core/pipeline/stages.h"

static int compare_ids(const wb_item *a, const wb_item *b)
{
    size_t common = a->incoming->id_size < b->incoming->id_size ? a->incoming->id_size
                                                                : b->incoming->id_size;
    int order = memcmp(a->incoming->id, b->incoming->id, common);
    if (order)
        return order;
    return (a->incoming->id_size > b->incoming->id_size) - (a->incoming->id_size < b->incoming->id_size);
}

/* Ascending ids, so that two batches which share ids never deadlock; among equal ids the
 * order of receipt. */
static int compare_items(const void *a, const void *b)
{
    const wb_item *x = *(wb_item *const *)a, *y = *(wb_item *const *)b;
    int order = compare_ids(x, y);
    return order ? order : (x > y) - (x < y);
}

static size_t collect_ready(wb_worker *w)
{
    size_t count = 0;
    for (size_t i = 0; i < w->batch_size; i++)
        if (w->held[i].state == WB_ITEM_READY)
            w->claimed[count++] = &w->held[i];
    return count;
}

/* The same id twice in one batch is one message and one duplicate. */
static void prepare_claims(wb_worker *w, size_t ready)
{
    size_t count = 0;
    qsort(w->claimed, ready, sizeof *w->claimed, compare_items);
    for (size_t i = 0; i < ready; i++) {
        wb_item *item = w->claimed[i];
        if (count && compare_ids(w->claimed[count - 1], item) == 0) {
            item->state = WB_ITEM_FOLLOWER;
            item->leader = w->claimed[count - 1];
            continue;
        }
        w->claimed[count] = item;
        w->claims[count++] = (wb_claim){ item->incoming->id, item->incoming->id_size, 0 };
    }
    w->claim_count = count;
}

static void apply_claims(wb_worker *w)
{
    for (size_t i = 0; i < w->claim_count; i++) {
        wb_item *item = w->claimed[i];
        if (!w->claims[i].duplicate_of || wb_bug("skip_dedup"))
            continue;
        item->state = WB_ITEM_DUPLICATE;
        item->duplicate_of = w->claims[i].duplicate_of;
        wb_log_event(WB_LOG_DEBUG, "duplicate: handled before", { "endpoint", w->pipeline->endpoint },
                     { "message_id", item->incoming->id });
    }
}

static int begin(wb_worker *w)
{
    wb_begin begin = {
        .struct_size = sizeof begin,
        .marks = w->marks,
        .mark_count = w->mark_count,
        .batch = w->batch_number,
        .claims = w->claims,
        .claim_count = w->claim_count,
    };
    int r = w->pipeline->persistence_ops->begin(w->storage, &begin, &w->error);
    if (r == WB_NOT_CONNECTED || r == WB_IN_DOUBT)
        w->storage_broken = 1;
    w->in_transaction = r == WB_OK;
    return r;
}

static int join(wb_worker *w)
{
    const wb_pipeline *p = w->pipeline;
    return p->persistence_ops->join(w->storage, p->transport_ops->native(w->transport), &w->error);
}

static int begin_transport(wb_worker *w)
{
    int r = WB_OK;
    if (wb_has_transport_transaction(w))
        r = w->pipeline->transport_ops->begin(w->transport, &w->error);
    if (r == WB_NOT_CONNECTED)
        w->transport_broken = 1;
    return r;
}

int wb_stage_claim(wb_worker *w)
{
    size_t ready = collect_ready(w);
    int r = begin_transport(w);

    if (r != WB_OK || !w->storage || !ready)
        return r;
    if (w->pipeline->mode == WB_MODE_TRANSACTION_SCOPE)
        return join(w);
    if (w->pipeline->outbox)
        prepare_claims(w, ready);
    if ((r = begin(w)) != WB_OK)
        return r;
    apply_claims(w);
    wb_crash_point("after_claim");
    if ((r = wb_settle_marked(w)) != WB_OK)
        return r;
    return wb_suspect_give_up(w);
}
