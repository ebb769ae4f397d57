/* SPDX-License-Identifier: Apache-2.0
 *
 * Stage 4: store the outgoing operations, give back the claims of what was not handled, and
 * commit: one round trip. A connection lost during COMMIT leaves the outcome unknown; the
 * batch then runs again, and its claims say which it was.
 */
#include "config.h"

#include "core/base/crash.h"
#include "core/pipeline/misbehave.h"
#include "core/pipeline/stages.h"

size_t wb_encode_handled(wb_worker *w)
{
    size_t count = 0;
    wb_operations_encode_start(&w->encoded);
    for (size_t i = 0; i < w->batch_size; i++) {
        const wb_item *item = &w->held[i];
        if (item->state == WB_ITEM_HANDLED && item->operations.count)
            count += wb_operations_encode_group(&w->encoded, item->incoming->id,
                                                item->incoming->id_size, &item->operations);
    }
    return count;
}

/* The claims of kept messages move to the front of the claim array. */
static size_t collect_released(wb_worker *w)
{
    size_t count = 0;
    for (size_t i = 0; i < w->claim_count; i++)
        if (w->claimed[i]->state == WB_ITEM_KEPT)
            w->claims[count++] = w->claims[i];
    return count;
}

static int leave_joined(wb_worker *w)
{
    return w->pipeline->persistence_ops->join(w->storage, NULL, &w->error);
}

static int commit(wb_worker *w, size_t *ret_culprit)
{
    wb_commit commit = { .struct_size = sizeof commit, .batch = w->batch_number, .failed_item = WB_NOBODY };
    if (w->pipeline->outbox) {
        if ((w->stored = wb_encode_handled(w) > 0)) {
            commit.operations = w->encoded.data;
            commit.operations_size = w->encoded.size;
        }
        commit.released = w->claims;
        commit.released_count = collect_released(w);
    }
    wb_misbehave_before_commit(w);
    wb_crash_point("before_commit");
    int r = w->pipeline->persistence_ops->commit(w->storage, &commit, &w->error);
    w->in_transaction = 0;
    if (r == WB_OK)
        wb_crash_point("after_commit");
    else if (r == WB_NOT_CONNECTED || r == WB_IN_DOUBT)
        w->storage_broken = 1;
    else if (!w->grouped)
        *ret_culprit = commit.failed_item;
    return r;
}

int wb_stage_commit(wb_worker *w, size_t *ret_culprit)
{
    *ret_culprit = WB_NOBODY;
    if (w->pipeline->mode == WB_MODE_TRANSACTION_SCOPE && w->storage)
        return leave_joined(w);
    return w->in_transaction ? commit(w, ret_culprit) : WB_OK;
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
    w->in_transaction = 0;
    if (p->mode == WB_MODE_TRANSACTION_SCOPE && w->storage)
        (void)p->persistence_ops->join(w->storage, NULL, &ignored);
    if (wb_has_transport_transaction(w) && !w->transport_broken &&
        p->transport_ops->rollback(w->transport, &ignored) != WB_OK)
        w->transport_broken = 1;
    return w->storage_broken || w->transport_broken ? WB_NOT_CONNECTED : WB_OK;
}
