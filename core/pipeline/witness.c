/* SPDX-License-Identifier: Apache-2.0
 *
 * A connection to the database was lost while one message was handled, alone. Whether that was
 * the message's doing or the server's is known when somebody else's commit succeeds: another
 * message's, or else one made here that leaves nothing behind.
 */
#include "config.h"

#include "core/message/operations.h"
#include "core/pipeline/distrust.h"
#include "core/pipeline/pace.h"
#include "core/pipeline/stages.h"
#include "core/pipeline/verdict.h"

/* A row without operations, and gone again: a process that dies in between leaves nothing to do. */
static int write_row(wb_worker *w, wb_error *error)
{
    const wb_pipeline *p = w->pipeline;
    uint64_t number = wb_pipeline_batch_number(p);
    wb_mark mark = { number, NULL, 0 };
    wb_operations_encode_start(&w->encoded);
    int r = wb_pipeline_store_row(p, w->storage, number, w->encoded.data, w->encoded.size, error);
    return r == WB_OK ? p->persistence_ops->mark(w->storage, &mark, 1, error) : r;
}

static int commit_nothing(wb_worker *w, wb_error *error)
{
    const wb_persistence_ops *ops = w->pipeline->persistence_ops;
    wb_begin begin = { .struct_size = sizeof begin };
    wb_commit commit = { .struct_size = sizeof commit, .failed_item = SIZE_MAX };
    int r = ops->begin(w->storage, &begin, error);
    return r == WB_OK ? ops->commit(w->storage, &commit, error) : r;
}

/* What a commit may need, and nothing else: a delayed message store whose table is not there. */
static int ask_store(wb_worker *w, wb_error *error)
{
    int64_t due, now;
    return w->pipeline->persistence_ops->delayed->next(w->storage, &due, &now, error);
}

static int probe(wb_worker *w, wb_error *error)
{
    const wb_pipeline *p = w->pipeline;
    if (p->mode == WB_MODE_TRANSACTION_SCOPE)
        return WB_OK; /* the database's commit is the transport's */
    int r = p->outbox ? write_row(w, error) : commit_nothing(w, error);
    return r == WB_OK && p->stores_with_commit ? ask_store(w, error) : r;
}

int wb_stage_witness(wb_worker *w, wb_error *error)
{
    wb_item *item = w->batch[0];
    if (!item->is_doubted || item->verdict != WB_VERDICT_OPEN)
        return WB_OK;
    int r = wb_verdict_is_proved(w, item) ? WB_OK : wb_distrust(w, probe(w, error), error);
    if (r == WB_NOT_CONNECTED || r == WB_IN_DOUBT) {
        w->storage_broken = 1;
        error->result = r;
        wb_pace_complain(w, "the database was lost again", error);
        return WB_NOT_CONNECTED;
    }
    if (r == WB_OK)
        wb_verdict_count_loss(item);
    else
        wb_verdict_wait(w, item);
    return r == WB_REJECT ? WB_RETRY : r; /* what is refused is ours, not the message */
}
