/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/pipeline/follow.h"

#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/recover/audit.h"
#include "core/recover/retried.h"

/* Control messages are no messages of a user's: nobody looks for them among what was handled. */
static int is_audited(const wb_worker *w, const wb_item *item)
{
    return w->pipeline->audit_queue && item->handler_count && !wb_bug("no_audit");
}

/* What failed again after it was sent back says still where it wants to hear that it was handled. Who keeps it from the
 * error queue has not handled it: such an answer would come back to that queue, and pass for the next retry's. */
static int may_answer(const wb_worker *w)
{
    return !w->pipeline->failures;
}

void wb_follow_handled(wb_worker *w, wb_item *item)
{
    const wb_pipeline *p = w->pipeline;
    if (item->is_discarded)
        return; /* it was not handled */
    int is_acknowledged = may_answer(w) && wb_recover_acknowledge(&p->origin, item->incoming, item->started, &w->arena,
                                                                  &item->operations);
    if (!is_audited(w, item))
        return;
    const wb_handled_message handled = { item->incoming, item->started, wb_clock_wall(), is_acknowledged };
    (void)wb_recover_audit_operation(p->audit_queue, &p->origin, &handled, &w->arena, &item->operations);
}

int wb_follow_duplicate(wb_worker *w, wb_item *item)
{
    return may_answer(w) && wb_recover_acknowledge_duplicate(item->incoming, wb_clock_wall(), &w->arena, &item->operations);
}
