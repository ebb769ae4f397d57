/* SPDX-License-Identifier: Apache-2.0
 *
 * Stage 3: handlers run one after the other on the shared storage session; what they send is
 * collected. When the batch's time is used up, the rest is kept for the next batch.
 */
#include "config.h"

#include <string.h>

#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/pipeline/stages.h"

/* Messages with one key keep their order: none goes ahead of one that another handler gets. */
static int passes_its_key(const wb_worker *w, size_t first, size_t at)
{
    const wb_item *item = &w->held[at];
    for (size_t i = first + 1; item->message.key_size && i < at; i++) {
        const wb_item *before = &w->held[i];
        if (before->state == WB_ITEM_READY && before->handler != item->handler &&
            before->message.key_size == item->message.key_size &&
            memcmp(before->message.key, item->message.key, item->message.key_size) == 0)
            return 1;
    }
    return 0;
}

/* The messages for one batch handler go in one call, at the place of the first. */
static size_t collect_group(wb_worker *w, size_t first, wb_item **group)
{
    const wb_handler_entry *handler = w->held[first].handler;
    size_t count = 0;
    group[count++] = &w->held[first];
    if (!handler->batch)
        return count;
    for (size_t i = first + 1; i < w->batch_size; i++)
        if (w->held[i].state == WB_ITEM_READY && w->held[i].handler == handler &&
            !passes_its_key(w, first, i))
            group[count++] = &w->held[i];
    return count;
}

static int check_transaction(wb_worker *w, size_t item)
{
    const wb_persistence_ops *ops = w->pipeline->persistence_ops;
    if (!w->storage || !WB_HAS(ops, wb_persistence_ops, check))
        return WB_OK;
    return ops->check(w->storage, item, &w->error);
}

/* The state of the transaction outranks what the handler says: a handler that ignores a
 * failed statement must not take the whole batch down with it. */
static int run_group(wb_worker *w, wb_item **group, size_t count)
{
    wb_crash_point("before_handle");
    int r = wb_context_call(w, group, count);
    wb_error handlers_own = w->error;
    int checked = check_transaction(w, (size_t)(group[0] - w->held));
    wb_crash_point("after_handle");
    if (checked == WB_NOT_CONNECTED || checked == WB_IN_DOUBT) {
        w->storage_broken = 1;
        return WB_NOT_CONNECTED;
    }
    w->transaction_ended |= checked == WB_REJECT;
    if (r == WB_REJECT || checked == WB_OK) {
        w->error = handlers_own;
        return r;
    }
    return checked;
}

static void mark_handled(wb_item **group, size_t count)
{
    for (size_t i = 0; i < count; i++)
        group[i]->state = WB_ITEM_HANDLED;
}

static void keep_rest(wb_worker *w, size_t from)
{
    for (size_t i = from; i < w->batch_size; i++)
        if (w->held[i].state == WB_ITEM_READY)
            w->held[i].state = WB_ITEM_KEPT;
}

/* Its claim was free, so nothing of it was committed when the connection broke. */
static int refuse_breaking(wb_worker *w, const wb_item *item)
{
    if (!wb_recover_is_breaking(&w->pipeline->recoverability, &item->failure))
        return WB_OK;
    return wb_error_set(&w->error, WB_REJECT, WB_CAUSE_OTHER, 0,
                        "the connection to the database was lost %u times while it was handled: %s",
                        item->failure.losses, item->failure.reason);
}

int wb_stage_handle(wb_worker *w, size_t *ret_culprit)
{
    wb_item *group[w->batch_size];

    *ret_culprit = WB_NOBODY;
    w->handling_started = wb_clock_monotonic();
    w->handling_spent = 0;
    for (size_t i = 0; i < w->batch_size; i++) {
        if (w->held[i].state != WB_ITEM_READY)
            continue;
        size_t count = collect_group(w, i, group);
        int r = refuse_breaking(w, &w->held[i]);
        if (r == WB_OK)
            r = run_group(w, group, count);
        if (r != WB_OK) {
            *ret_culprit = count == 1 ? i : WB_NOBODY;
            return r;
        }
        mark_handled(group, count);
        w->grouped |= count > 1;
        w->handling_spent = wb_clock_monotonic() - w->handling_started;
        if (w->handling_spent > w->pipeline->batch_time) {
            keep_rest(w, i + 1);
            break;
        }
    }
    return WB_OK;
}
