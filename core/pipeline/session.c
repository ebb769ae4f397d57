/* SPDX-License-Identifier: Apache-2.0
 *
 * Control messages of transactional sessions, in batches of their own: has the session committed?
 * Nobody waits for one that is open, and nothing is claimed of it. If it has, it is a duplicate
 * like any other, and what it left pending is dispatched (resume.c); who committed it mostly does
 * that by himself at this moment, and is given a while for it. If it has not, the message is given a
 * while, too, before it is sent to this endpoint again, later each time. When the session's time is over its id is
 * closed by a record without operations, and its commit, should it come, fails on that.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/base/log.h"
#include "core/message/ids.h"
#include "core/pipeline/batch.h"
#include "core/pipeline/close_id.h"
#include "core/pipeline/distrust.h"
#include "core/pipeline/stages.h"

/* A commit follows its control message by some milliseconds, and its dispatch the commit: a message
 * that is looked at so often in hand, after pauses that double, need not be sent again. */
#define PAUSE_FIRST (10 * WB_MILLISECOND)
#define LOOKS_FOR_COMMIT 3
#define LOOKS_FOR_DISPATCH 7 /* more than a second: then the row is no young one (resume.c) */
/* Where nobody delays the message waits in hand. */
#define PAUSE_LONGEST (1 * WB_SECOND)

static int believe(wb_worker *w, int result, wb_error *error)
{
    int r = wb_distrust(w, result, error);
    w->storage_broken |= r == WB_NOT_CONNECTED || r == WB_IN_DOUBT;
    return r;
}

/* ---- a while -------------------------------------------------------------------------- */

/* @return 0: it was looked at often enough, or too many wait in hand. */
static int is_set_aside(wb_worker *w, wb_item *item, unsigned looks)
{
    if (item->pauses >= looks || wb_batch_count_controls_aside(w) >= WB_CONTROLS_ASIDE_MAX)
        return 0;
    wb_item_pause(item, wb_clock_monotonic() + (PAUSE_FIRST << item->pauses));
    return 1;
}

static int note_row(void *argument, const wb_pending *pending)
{
    wb_worker *w = argument;
    for (size_t i = 0; i < w->claim_count; i++)
        if (w->claims[i].duplicate_of == pending->batch)
            w->claimed[i]->duplicate_of = pending->batch;
    return WB_OK;
}

/* Of those that committed: whose row is gone has nothing left to do. */
static int look_for_rows(wb_worker *w, wb_error *error)
{
    uint64_t batches[w->claim_count + 1];
    size_t count = 0;
    for (size_t i = 0; i < w->claim_count; i++)
        if (w->claims[i].duplicate_of && !wb_batch_number_is_closed(w->claims[i].duplicate_of))
            batches[count++] = w->claims[i].duplicate_of;
    return count ? believe(w, w->pipeline->persistence_ops->pending(w->storage, batches, count, note_row, w, error), error)
                 : WB_OK;
}

/* Its work is done: it is acknowledged, and nothing leaves because of it. */
static void dismiss(wb_item *item)
{
    wb_item_change(item, WB_ITEM_DUPLICATE); /* of nothing */
    wb_item_change(item, WB_ITEM_SETTLED);
}

/* ---- the time is over ------------------------------------------------------------------- */

static int end_session(wb_worker *w, wb_item *item, const wb_claim *claim, wb_error *error)
{
    uint64_t owner = wb_batch_number_closed(wb_pipeline_now(w->pipeline), 0);
    wb_crash_point("before_session_closed");
    int r = wb_bug("session_not_closed") ? WB_OK : believe(w, wb_close_id(w->pipeline, w->storage, claim->id, claim->id_size, &owner, error), error);
    if (r != WB_OK)
        return r;
    wb_crash_point("after_session_closed");
    if (!wb_batch_number_is_closed(owner)) { /* it committed a moment ago */
        item->duplicate_of = owner;
        wb_item_change(item, WB_ITEM_DUPLICATE);
        return WB_OK;
    }
    wb_log_event(WB_LOG_WARNING, "a session was not committed in time: its id is closed, and its commit will fail",
                 { "endpoint", w->pipeline->endpoint }, { "session_id", item->message.id });
    dismiss(item);
    return WB_OK;
}

/* ---- later ------------------------------------------------------------------------------ */

static void log_delay(const wb_worker *w, const wb_item *item, const wb_session_control *next)
{
    char attempt[12], milliseconds[24];
    (void)snprintf(attempt, sizeof attempt, "%" PRIu32, item->control.attempt);
    (void)snprintf(milliseconds, sizeof milliseconds, "%" PRId64, next->increment / WB_MILLISECOND);
    wb_log_event(WB_LOG_DEBUG, "a session has not committed yet: its control message comes again",
                 { "endpoint", w->pipeline->endpoint }, { "session_id", item->message.id },
                 { "attempt", attempt }, { "delay_ms", milliseconds });
}

static void send_again(wb_worker *w, wb_item *item, const wb_session_control *next)
{
    const wb_pipeline *p = w->pipeline;
    log_delay(w, item, next);
    wb_item_change(item, WB_ITEM_MOVING);
    memset(&item->operations, 0, sizeof item->operations);
    wb_operation *operation = wb_session_control_again(p->origin.endpoint.value, item->incoming, next, &w->arena,
                                                       &item->operations);
    operation->deliver_at = wb_pipeline_now(p) + next->increment;
}

/* Where too many do, one is given up: the sweeper sends what its session committed, if it did. */
static void wait_in_hand(wb_worker *w, wb_item *item, const wb_session_control *next)
{
    int64_t pause = next->increment < PAUSE_LONGEST ? next->increment : PAUSE_LONGEST;
    item->control.remaining -= pause;
    if (wb_batch_count_controls_aside(w) < WB_CONTROLS_ASIDE_MAX) {
        wb_item_pause(item, wb_clock_monotonic() + pause);
        return;
    }
    dismiss(item);
}

static void come_again(wb_worker *w, wb_item *item, const wb_session_control *next)
{
    if (w->pipeline->origin.delays == WB_DELAYS_BY_NOBODY)
        wait_in_hand(w, item, next);
    else
        send_again(w, item, next);
}

/* ---- what the records say ----------------------------------------------------------------- */

/* Whoever committed it is sending it now, mostly: who would do it, too, while many wait would make more wait. */
static void conclude_committed(wb_worker *w, wb_item *item, uint64_t owner)
{
    wb_session_control next;
    int is_pending = item->duplicate_of != 0 && !wb_bug("control_believes");
    item->duplicate_of = 0;
    if (is_pending && is_set_aside(w, item, LOOKS_FOR_DISPATCH))
        return;
    if (is_pending && item->pauses < LOOKS_FOR_DISPATCH && wb_session_control_next(&item->control, &next)) {
        come_again(w, item, &next);
        return;
    }
    item->duplicate_of = owner;
    wb_item_change(item, WB_ITEM_DUPLICATE);
    if (!is_pending)
        wb_item_change(item, WB_ITEM_SETTLED);
}

static int conclude_open(wb_worker *w, wb_item *item, const wb_claim *claim, wb_error *error)
{
    wb_session_control next;
    if (is_set_aside(w, item, LOOKS_FOR_COMMIT))
        return WB_OK;
    if (!wb_session_control_next(&item->control, &next))
        return end_session(w, item, claim, error);
    come_again(w, item, &next);
    return WB_OK;
}

/* Whatever closed the id did it for this session, too: one that its commit does not replace. So copies of what was
 * looked after write nothing. */
static int is_shut_out(const wb_item *item, uint64_t owner)
{
    return wb_batch_number_is_closed(owner) && (owner != item->control.replaces || wb_bug("closed_for_all"));
}

static int conclude(wb_worker *w, wb_item *item, const wb_claim *claim, wb_error *error)
{
    const uint64_t owner = claim->duplicate_of;
    if (is_shut_out(item, owner))
        dismiss(item);
    else if (owner && !wb_batch_number_is_closed(owner))
        conclude_committed(w, item, owner);
    else
        return conclude_open(w, item, claim, error);
    return WB_OK;
}

/* One key may be several sessions': what was concluded for one that replaces another record is not for this one. */
static void part_copies(wb_worker *w)
{
    for (size_t i = 0; i < w->batch_size; i++) {
        wb_item *item = w->batch[i];
        if (item->state == WB_ITEM_COPY && item->control.replaces != item->leader->control.replaces)
            wb_item_rerun(item);
    }
}

int wb_stage_sessions(wb_worker *w, wb_error *error)
{
    wb_batch_prepare_claims(w, wb_batch_collect_open(w));
    int r = believe(w, w->pipeline->persistence_ops->find(w->storage, w->claims, w->claim_count, error), error);
    if (r == WB_OK)
        r = look_for_rows(w, error);
    part_copies(w);
    for (size_t i = 0; i < w->claim_count && r == WB_OK; i++)
        r = conclude(w, w->claimed[i], &w->claims[i], error);
    return r;
}
