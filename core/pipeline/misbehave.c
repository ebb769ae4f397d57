/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/pipeline/misbehave.h"

#ifdef WB_TEST_HOOKS

#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/pipeline/stages.h"

static void dispatch_too_early(wb_worker *w)
{
    const wb_transport_ops *ops = w->pipeline->transport_ops;
    for (size_t i = 0; i < w->batch_size; i++)
        for (wb_operation_node *node = w->held[i].operations.first; node; node = node->next) {
            wb_operation *one = &node->operation;
            (void)ops->send(w->transport, &one, 1, wb_clock_monotonic() + WB_DISPATCH_TIMEOUT,
                            &w->error);
        }
}

static void acknowledge_too_early(wb_worker *w)
{
    for (size_t i = 0; i < w->batch_size; i++)
        wb_settle_add_message(w, w->held[i].incoming);
    (void)wb_settle_marked(w);
    /* a transport that keeps acknowledgements for later makes them now */
    (void)w->pipeline->transport_ops->give_back(w->transport, NULL, 0, &w->error);
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
    if (wb_bug("mark_before_confirm") && w->stored)
        (void)w->pipeline->persistence_ops->mark(w->storage, &mark, 1, &w->error);
}

#endif
