/* SPDX-License-Identifier: Apache-2.0
 *
 * Stages 6 and 7: mark dispatched, then acknowledge. The order never changes: dispatch before
 * mark, mark before acknowledge. Marks usually ride in the round trip that claims the next
 * batch (claim.c); they go alone when there is none.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/crash.h"
#include "core/pipeline/stages.h"

void wb_settle_add_mark(wb_worker *w, uint64_t batch, const void *remaining, size_t size)
{
    wb_mark mark = { batch, NULL, size };
    if (w->mark_count == w->mark_max) {
        w->mark_max = w->mark_max ? w->mark_max * 2 : 16;
        w->marks = wb_realloc(w->marks, w->mark_max * sizeof *w->marks);
    }
    if (remaining) {
        void *copy = wb_alloc(size);
        memcpy(copy, remaining, size);
        mark.remaining = copy;
    }
    w->marks[w->mark_count++] = mark;
}

void wb_settle_add_message(wb_worker *w, const wb_incoming *incoming)
{
    if (w->settled_count == w->settled_max) {
        w->settled_max = w->settled_max ? w->settled_max * 2 : 256;
        w->settled = wb_realloc(w->settled, w->settled_max * sizeof *w->settled);
    }
    w->settled[w->settled_count++] = incoming;
}

static int acknowledge(wb_worker *w)
{
    if (!w->settled_count)
        return WB_OK;
    wb_crash_point("before_acknowledge");
    int r = w->pipeline->transport_ops->acknowledge(w->transport, w->settled, w->settled_count, &w->error);
    w->settled_count = 0;
    if (r != WB_OK)
        w->transport_broken = 1;
    else
        wb_crash_point("after_acknowledge");
    return r;
}

int wb_settle_marked(wb_worker *w)
{
    for (size_t i = 0; i < w->mark_count; i++)
        free((void *)(uintptr_t)w->marks[i].remaining);
    if (w->mark_count)
        wb_crash_point("after_mark");
    w->mark_count = 0;
    return acknowledge(w);
}

int wb_stage_settle(wb_worker *w)
{
    if (w->mark_count) {
        wb_crash_point("before_mark");
        int r = w->pipeline->persistence_ops->mark(w->storage, w->marks, w->mark_count, &w->error);
        if (r == WB_NOT_CONNECTED || r == WB_IN_DOUBT)
            w->storage_broken = 1;
        if (r != WB_OK)
            return r;
    }
    return wb_settle_marked(w);
}
