/* SPDX-License-Identifier: Apache-2.0
 *
 * Stage 5: hand the operations to the transport, all of a batch in one window of
 * confirmations. What cannot be dispatched is the failure of its own message alone.
 */
#include "config.h"

#include <stdio.h>

#include "core/base/crash.h"
#include "core/pipeline/distrust.h"
#include "core/pipeline/marks.h"
#include "core/pipeline/move.h"
#include "core/pipeline/stages.h"
#include "core/pipeline/unconfirmed.h"
#include "core/pipeline/verdict.h"

static void fill_window(wb_worker *w)
{
    wb_window_clear(&w->window, &w->arena);
    for (size_t i = 0; i < w->batch_size; i++) {
        wb_item *item = w->batch[i];
        if (item->state == WB_ITEM_READY && item->verdict == WB_VERDICT_FAILED)
            wb_move_prepare(w, item);
        if (item->state == WB_ITEM_MOVING || item->state == WB_ITEM_COMMITTED)
            wb_window_add_list(&w->window, &item->operations);
    }
}

/* The pending row shrinks to what is not confirmed; usually nothing. @return whether anything
 * is. */
static size_t encode_remains(wb_worker *w)
{
    size_t count = 0;
    wb_operations_encode_start(&w->encoded);
    for (size_t i = 0; i < w->batch_size; i++)
        if (w->batch[i]->state == WB_ITEM_COMMITTED)
            count += wb_operations_encode_group(&w->encoded, w->batch[i]->id, w->batch[i]->id_size,
                                                &w->batch[i]->operations);
    return count;
}

static void mark_remains(wb_worker *w)
{
    if (!w->stored)
        return;
    if (encode_remains(w)) {
        wb_marks_add(w, (wb_mark){ w->batch_number, w->encoded.data, w->encoded.size });
    } else {
        wb_marks_add(w, (wb_mark){ w->batch_number, NULL, 0 });
        wb_underway_is_out(&w->pipeline->underway, w);
    }
}

/* Whatever killed the connection was sent for one of these: each is handled by itself when it
 * comes again, so that those that did not are acknowledged before those that may. */
static void suspect_causes(const wb_worker *w)
{
    for (size_t i = 0; i < w->batch_size; i++)
        if (w->batch[i]->operations.count)
            wb_suspicions_add(w->pipeline->suspicions, w->batch[i]->id, w->batch[i]->id_size);
}

static int is_out(const wb_item *item)
{
    for (const wb_operation_node *node = item->operations.first; node; node = node->next)
        if (node->operation.result != WB_OK)
            return 0;
    return 1;
}

/* Mode none promises at most once: what was handled does not run again when the database is back,
 * though what it sends could not be stored. It goes to the error queue, and somebody is told. */
static void end_handled(wb_worker *w, const wb_error *error)
{
    char reason[1200];
    if (w->pipeline->mode != WB_MODE_NONE || wb_bug("delay_runs_again"))
        return;
    (void)snprintf(reason, sizeof reason,
                   "it was handled, and what it sends may not be sent, or not all of it: the store of delayed messages failed: %s",
                   error->text);
    for (size_t i = 0; i < w->batch_size; i++) {
        wb_item *item = w->batch[i];
        if (item->state == WB_ITEM_COMMITTED && is_out(item))
            wb_item_change(item, WB_ITEM_SETTLED);
        else if (item->state == WB_ITEM_COMMITTED)
            wb_verdict_condemn(w, item, WB_FAILURE_DISPATCH, reason);
    }
}

static int send(wb_worker *w, wb_error *error)
{
    size_t before = w->outlet.confirmed;
    wb_crash_point("before_dispatch");
    int r = wb_window_send(&w->window, &w->outlet, error);
    if (r == WB_OK || r == WB_IN_DOUBT) {
        wb_crash_point("after_dispatch");
        return r;
    }
    if (w->outlet.storage_failed) {
        end_handled(w, error);
        return wb_distrust_store(w, r, error);
    }
    w->transport_broken = 1;
    if (w->outlet.confirmed > before)
        mark_remains(w);
    if ((r == WB_NOT_CONNECTED || r == WB_FATAL) && !w->pipeline->stop)
        suspect_causes(w);
    return r;
}

static void conclude_handled(wb_worker *w, wb_item *item)
{
    const wb_operation *refused = wb_find_refused(&item->operations);
    if (refused) {
        wb_verdict_was_refused(w, item, refused);
        return;
    }
    atomic_fetch_add(&w->pipeline->arrivals, item->operations.count > 0);
    wb_item_change(item, WB_ITEM_SETTLED);
}

static void conclude(wb_worker *w, const wb_error *error)
{
    for (size_t i = 0; i < w->batch_size; i++) {
        wb_item *item = w->batch[i];
        if (wb_unconfirmed_find(&item->operations))
            wb_unconfirmed_set_aside(w, item, error);
        else if (item->state == WB_ITEM_COMMITTED)
            conclude_handled(w, item);
        else if (item->state == WB_ITEM_MOVING)
            wb_move_conclude(w, item);
    }
    /* copies of an id are the first's duplicates, now that it is done */
    for (size_t i = 0; i < w->batch_size; i++)
        if (w->batch[i]->state == WB_ITEM_COPY && w->batch[i]->leader->state == WB_ITEM_SETTLED &&
            w->batch[i]->verdict == WB_VERDICT_OPEN)
            wb_item_change(w->batch[i], WB_ITEM_SETTLED);
}

int wb_stage_dispatch(wb_worker *w, wb_error *error)
{
    fill_window(w);
    int r = w->window.count ? send(w, error) : WB_OK;
    const int is_lost = r != WB_OK && r != WB_IN_DOUBT;
    if (!is_lost)
        mark_remains(w);
    wb_underway_give_up(&w->pipeline->underway, w); /* unless it is out */
    if (is_lost)
        return r;
    conclude(w, error);
    return WB_OK;
}
