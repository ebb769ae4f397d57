/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/pipeline/misbehave.h"

#ifdef WB_TEST_HOOKS

#include "core/base/clock.h"
#include "core/base/crash.h"
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

void wb_misbehave_after_commit(wb_worker *w)
{
    wb_mark mark = { w->batch_number, NULL, 0 };
    wb_error ignored;
    if (wb_bug("mark_before_confirm") && w->stored)
        (void)w->pipeline->persistence_ops->mark(w->storage, &mark, 1, &ignored);
}

#endif
