/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/pipeline/misbehave.h"

#ifdef WB_TEST_HOOKS

#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/pipeline/apart.h"
#include "core/pipeline/marks.h"
#include "core/pipeline/stages.h"

static void dispatch_too_early(wb_worker *w)
{
    wb_error ignored;
    const wb_transport_ops *ops = w->pipeline->transport_ops;
    for (size_t i = 0; i < w->batch_size; i++)
        for (wb_operation_node *node = w->batch[i]->operations.first; node; node = node->next) {
            wb_operation *one = &node->operation;
            (void)ops->send(w->transport, &one, 1, wb_clock_monotonic() + WB_DISPATCH_TIMEOUT,
                            &ignored);
        }
}

static void acknowledge_too_early(wb_worker *w)
{
    wb_error ignored;
    for (size_t i = 0; i < w->batch_size; i++)
        wb_marks_add_message(w, w->batch[i]->incoming);
    (void)wb_stage_acknowledge(w, &ignored);
    /* a transport that keeps acknowledgements for later makes them now */
    (void)w->pipeline->transport_ops->give_back(w->transport, NULL, 0, &ignored);
}

void wb_misbehave_before_commit(wb_worker *w)
{
    if (wb_bug("dispatch_before_commit"))
        dispatch_too_early(w);
    if (wb_bug("ack_before_commit"))
        acknowledge_too_early(w);
}

static void mark_too_early(wb_worker *w)
{
    wb_mark mark = { w->batch_number, NULL, 0 };
    wb_error ignored;
    if (w->stored)
        (void)w->pipeline->persistence_ops->mark(w->storage, &mark, 1, &ignored);
}

/* The record goes with the row: what is left is an id in the store. */
static void remember_too_early(wb_worker *w)
{
    wb_error ignored;
    for (size_t i = 0; i < w->batch_size; i++)
        if (w->batch[i]->state == WB_ITEM_COMMITTED)
            wb_apart_add(w, w->batch[i]);
    mark_too_early(w);
    (void)wb_apart_settle(w, &ignored);
}

void wb_misbehave_after_commit(wb_worker *w)
{
    if (wb_bug("mark_before_confirm"))
        mark_too_early(w);
    if (wb_bug("remembered_before_dispatch"))
        remember_too_early(w);
}

int wb_misbehave_before_claim(wb_worker *w, wb_error *error)
{
    return wb_bug("asked_before_claimed") ? wb_apart_ask(w, error) : WB_OK;
}

/* Which batch it was the claims have forgotten meanwhile: any will do. */
int wb_misbehave_after_claim(wb_worker *w)
{
    for (size_t i = 0; i < w->claim_count; i++)
        if (w->claimed[i]->is_passed && !w->claims[i].duplicate_of)
            w->claims[i].duplicate_of = 1;
    return WB_OK;
}

#endif
