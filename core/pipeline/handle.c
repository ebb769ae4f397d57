/* SPDX-License-Identifier: Apache-2.0
 *
 * Stage 3: handlers run one after the other on the shared storage session; what they send is
 * collected. When the batch's time is used up, the rest is kept for the next batch.
 */
#include "config.h"

#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/pipeline/batch.h"
#include "core/pipeline/context.h"
#include "core/pipeline/distrust.h"
#include "core/pipeline/follow.h"
#include "core/pipeline/observe.h"
#include "core/pipeline/stages.h"
#include "core/pipeline/suspect.h"

/* A message with several handlers has each called for it alone: they run in their order, with
 * nobody's in between. */
static int can_join(const wb_item *item, const wb_handler_entry *handler)
{
    return item->handler_count == 1 && item->handlers[0] == handler;
}

/* Messages with one key keep their order: none goes ahead of one that another handler gets. */
static int passes_its_key(const wb_worker *w, size_t first, size_t at)
{
    for (size_t i = first + 1; i < at; i++) {
        const wb_item *before = w->batch[i];
        if (wb_item_is_open(before) && !can_join(before, wb_item_handler(w->batch[at])) &&
            wb_item_has_key_of(before, w->batch[at]))
            return 1;
    }
    return 0;
}

/* The messages for one batch handler go in one call, at the place of the first. */
static size_t collect_group(wb_worker *w, size_t first, wb_item **group)
{
    const wb_handler_entry *handler = wb_item_handler(w->batch[first]);
    size_t count = 0;
    group[count++] = w->batch[first];
    if (!handler || !handler->batch || !can_join(w->batch[first], handler))
        return count;
    for (size_t i = first + 1; i < w->batch_size; i++) {
        if (!wb_item_is_open(w->batch[i]))
            continue;
        if (can_join(w->batch[i], handler) && !passes_its_key(w, first, i))
            group[count++] = w->batch[i];
        else if (w->pipeline->positions && !wb_bug("position_group"))
            break; /* what is kept must be behind all that is handled */
    }
    return count;
}

static int can_check(const wb_worker *w)
{
    return w->storage && WB_HAS(w->pipeline->persistence_ops, wb_persistence_ops, check);
}

/* Nobody may ask a persistence about a transport's connection that is not there. */
static int is_closed(const wb_worker *w)
{
    const wb_pipeline *p = w->pipeline;
    return p->mode == WB_MODE_TRANSACTION_SCOPE && !p->transport_ops->native(w->transport);
}

static int check_transaction(wb_worker *w, size_t place, wb_error *error)
{
    if (!can_check(w))
        return WB_OK;
    if (is_closed(w))
        return wb_error_set(error, WB_REJECT, WB_CAUSE_OTHER, 0, "the handler closed the connection");
    int r = wb_distrust(w, w->pipeline->persistence_ops->check(w->storage, place, error), error);
    error->result = r;
    return r;
}

/* The state of the transaction outranks what the handler says: the server's trouble is no
 * handler's, a neighbour that broke the transaction makes no other message fail, and a handler
 * that ignores a failed statement must not take the whole batch down with it. Only one that ran
 * first can be believed when it says that its message never can be handled. */
static int judge(wb_worker *w, int said, int checked, int is_first, wb_error *error, const wb_error *found)
{
    if (checked == WB_NOT_CONNECTED || checked == WB_IN_DOUBT) {
        w->storage_broken = 1;
        *error = *found;
        return WB_NOT_CONNECTED;
    }
    w->transaction_ended |= checked == WB_REJECT;
    w->handler_said = said != WB_OK && checked == WB_OK && can_check(w);
    int is_believed = (is_first && checked != WB_ABORT) || wb_bug("blame");
    if (checked == WB_OK || (said == WB_REJECT && is_believed && !wb_error_is_servers(found)))
        return said;
    *error = *found;
    return checked;
}

static int run_group(wb_worker *w, wb_item **group, size_t count, int is_first, wb_error *error)
{
    wb_error found = { 0 };
    int64_t started = wb_clock_monotonic();
    wb_crash_point("before_handle");
    w->may_have_ended = 1;
    w->storage_used = 1;
    wb_overtime_begin(&w->overtime, group, count, started);
    int said = wb_call_handler(w, group, count, error);
    int64_t ended = wb_clock_monotonic(), spent = ended - started;
    atomic_store(&w->beat, ended);
    wb_overtime_end(&w->overtime);
    wb_batch_note_cost(w, wb_item_handler(group[0]), spent, count);
    w->handling_spent += spent;
    wb_tally_observe(&w->tally, WB_HISTOGRAM_HANDLER, spent);
    int checked = check_transaction(w, group[0]->place, &found);
    wb_crash_point("after_handle");
    return judge(w, said, checked, is_first, error, &found);
}

/* All handlers of the group, one after the other in one transaction; one that fails ends it. */
static int run_handlers(wb_worker *w, wb_item **group, size_t count, int is_first, wb_error *error)
{
    int r = WB_OK;
    for (size_t i = 0; i < count; i++) {
        group[i]->started = wb_clock_wall();
        group[i]->has_begun = 1;
    }
    wb_observe_started(w->pipeline, group, count);
    while (r == WB_OK && wb_item_handler(group[0])) {
        r = run_group(w, group, count, is_first, error);
        for (size_t i = 0; r == WB_OK && i < count; i++)
            group[i]->handlers_done++;
    }
    return r;
}

static void mark_handled(wb_worker *w, wb_item **group, size_t count)
{
    w->turns++;
    for (size_t i = 0; i < count; i++) {
        wb_item_change(group[i], WB_ITEM_HANDLED);
        group[i]->ended = wb_observe_now(w->pipeline, group[i]->started);
        group[i]->sent = wb_sent_read(&w->sent, group[i]->incoming->headers, group[i]->incoming->header_count);
        wb_follow_handled(w, group[i]);
        group[i]->turn = w->turns;
    }
    w->grouped |= count > 1;
}

static void keep_rest(wb_worker *w, size_t from)
{
    for (size_t i = from; i < w->batch_size; i++)
        if (wb_item_is_open(w->batch[i]))
            wb_item_change(w->batch[i], WB_ITEM_KEPT);
}

/* Its id is free, so nothing of it was committed when a process or a connection died of it. */
static int refuse_dangerous(const wb_worker *w, const wb_item *item, wb_error *error)
{
    char reason[400];
    const wb_pipeline *p = w->pipeline;
    if (item->is_discarded)
        return WB_OK;
    if (wb_suspect_why_given_up(p, item, reason, sizeof reason))
        return wb_error_set(error, WB_REJECT, WB_CAUSE_OTHER, 0, "%s", reason);
    if (wb_recover_is_faulty(&p->recoverability, &item->failure))
        return wb_error_set(error, WB_REJECT, WB_CAUSE_OTHER, 0, "%s", item->failure.reason);
    return WB_OK;
}

int wb_stage_handle(wb_worker *w, wb_item **ret_culprit, wb_error *error)
{
    wb_item *group[w->batch_size];
    int is_first = 1;

    *ret_culprit = NULL;
    for (size_t i = 0; i < w->batch_size; i++) {
        if (!wb_item_is_open(w->batch[i]))
            continue;
        size_t count = collect_group(w, i, group);
        int r = refuse_dangerous(w, w->batch[i], error);
        if (r == WB_OK)
            r = run_handlers(w, group, count, is_first, error);
        if (r != WB_OK) {
            *ret_culprit = count == 1 ? group[0] : NULL;
            return r;
        }
        mark_handled(w, group, count);
        is_first = 0;
        if (w->handling_spent > w->pipeline->batch_time) {
            keep_rest(w, i + 1);
            break;
        }
    }
    return WB_OK;
}
