/* SPDX-License-Identifier: Apache-2.0
 *
 * Stages 6 and 7: mark dispatched, then acknowledge. The order never changes: dispatch before
 * mark, mark before acknowledge. Marks usually ride in the round trip that claims the next
 * batch (claim.c); they go alone when there is none. Before a handler that may end the process all of it
 * is done, for good: what was moved to the error queue, and comes again, would be moved again.
 */
#include "config.h"

#include "core/base/crash.h"
#include "core/pipeline/apart.h"
#include "core/pipeline/distrust.h"
#include "core/pipeline/marks.h"
#include "core/pipeline/pace.h"
#include "core/pipeline/stages.h"

int wb_stage_acknowledge(wb_worker *w, wb_error *error)
{
    if (!w->settled_count)
        return WB_OK;
    wb_crash_point("before_acknowledge");
    int r = w->pipeline->transport_ops->acknowledge(w->transport, w->settled, w->settled_count, error);
    w->settled_count = 0;
    if (r != WB_OK) {
        w->transport_broken = 1;
        return r;
    }
    w->is_loose = 1;
    wb_crash_point("after_acknowledge");
    return WB_OK;
}

int wb_stage_settle(wb_worker *w, wb_error *error)
{
    if (w->mark_count) {
        wb_crash_point("before_mark");
        int r = w->pipeline->persistence_ops->mark(w->storage, w->marks, w->mark_count, error);
        r = wb_distrust(w, r, error);
        if (r == WB_NOT_CONNECTED || r == WB_IN_DOUBT)
            w->storage_broken = 1;
        if (r != WB_OK)
            return r;
        wb_crash_point("after_mark");
        wb_marks_clear(w);
        wb_underway_marked(&w->pipeline->underway, w);
    }
    int r = wb_stage_acknowledge(w, error);
    return r == WB_OK ? wb_apart_settle(w, error) : r;
}

/* A transport may tell its broker later, or not wait for it: whoever ends the process takes that along. */
static int confirm(wb_worker *w, wb_error *error)
{
    const wb_incoming *none = NULL;
    if (!w->is_loose || wb_bug("acknowledged_loosely"))
        return WB_OK;
    int r = w->pipeline->transport_ops->acknowledge(w->transport, &none, 0, error);
    wb_pace_judge_transport(w, r);
    w->is_loose = r != WB_OK;
    return r;
}

/* Before that it is what keeps the attempts, should the message come again. */
static int forget_record(wb_worker *w, wb_error *error)
{
    if (!w->record)
        return WB_OK;
    wb_marks_add(w, (wb_mark){ w->record, NULL, 0 });
    w->record = 0;
    return wb_stage_settle(w, error);
}

int wb_stage_settle_for_good(wb_worker *w, wb_error *error)
{
    int r = wb_stage_settle(w, error);
    if (r == WB_OK)
        r = confirm(w, error);
    return r == WB_OK ? forget_record(w, error) : r;
}
