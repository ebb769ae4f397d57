/* SPDX-License-Identifier: Apache-2.0
 *
 * Transport transactions (sends_atomic_with_receive, transaction_scope): sends, moves to the
 * error queue and acknowledgements become visible together. They happen before the database's
 * commit, so nothing is settled until the transport has committed too.
 */
#include "config.h"

#include <stdio.h>

#include "core/base/crash.h"
#include "core/pipeline/batch.h"
#include "core/pipeline/distrust.h"
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
        if (item->state == WB_ITEM_MOVING || item->state == WB_ITEM_HANDLED)
            wb_window_add_list(&w->window, &item->operations);
    }
}

/* One refused operation: the transaction is run again without it. */
static int refuse(wb_worker *w, wb_item **ret_culprit, wb_error *error)
{
    for (size_t i = 0; i < w->batch_size; i++) {
        wb_item *item = w->batch[i];
        const wb_operation *refused = wb_find_refused(&item->operations);
        if (!refused)
            continue;
        *ret_culprit = item;
        wb_describe_refusal(refused, error->text, sizeof error->text);
        error->result = WB_RETRY;
        /* a privilege that is missing is somebody else's to grant */
        error->cause = refused->cause == WB_CAUSE_REFUSED ? WB_CAUSE_SERVER : WB_CAUSE_OTHER;
        if (item->state == WB_ITEM_MOVING)
            wb_move_refused(w, item, refused);
        return WB_RETRY;
    }
    return WB_OK;
}

/* Said to be well, and one is left without an outcome: it is not to be committed as if it were sent. */
static int find_unconfirmed(const wb_worker *w, wb_error *error)
{
    for (size_t i = 0; i < w->batch_size; i++) {
        const wb_item *item = w->batch[i];
        const wb_operation *left = item->state == WB_ITEM_HANDLED || item->state == WB_ITEM_MOVING
                                       ? wb_unconfirmed_find(&item->operations)
                                       : NULL;
        if (left)
            return wb_error_set(error, WB_RETRY, WB_CAUSE_SENDING, 0,
                                "the transport confirms nothing of what goes to \"%s\"", left->destination);
    }
    return WB_OK;
}

static int acknowledge(wb_worker *w, wb_error *error)
{
    const wb_incoming *messages[w->batch_size];
    size_t count = 0;
    for (size_t i = 0; i < w->batch_size; i++) {
        wb_item *item = w->batch[i];
        if (item->state != WB_ITEM_HANDLED && item->state != WB_ITEM_MOVING)
            continue;
        wb_item_change(item, WB_ITEM_SENT);
        messages[count++] = item->incoming;
    }
    int r = w->pipeline->transport_ops->acknowledge(w->transport, messages, count, error);
    error->result = r;
    r = wb_distrust_shared(w, r, error);
    if (r != WB_OK && r != WB_RETRY) /* that is undone with the transaction, as a send is */
        w->transport_broken = 1;
    return r;
}

int wb_stage_dispatch_inside(wb_worker *w, wb_item **ret_culprit, wb_error *error)
{
    *ret_culprit = NULL;
    fill_window(w);
    wb_crash_point("before_dispatch");
    int r = wb_window_send(&w->window, &w->outlet, error);
    r = wb_distrust_shared(w, r, error);
    if (w->outlet.storage_failed)
        return wb_distrust_store(w, r, error);
    if (r == WB_NOT_CONNECTED)
        w->transport_broken = 1;
    if (r == WB_RETRY && !wb_error_is_servers(error) && w->batch_size == 1)
        wb_window_refuse(&w->window, error); /* a nack: nobody else's operation is there */
    /* a refusal may have spoilt the transaction, too: then it is known whose fault that is */
    if (r == WB_OK || r == WB_ABORT || r == WB_RETRY) {
        int refused = refuse(w, ret_culprit, error);
        r = refused == WB_OK ? r : refused;
    }
    if (r != WB_OK || (r = find_unconfirmed(w, error)) != WB_OK)
        return r;
    wb_crash_point("after_dispatch");
    return acknowledge(w, error);
}

/* Business data in a database of its own is committed already, and will be again: that was an
 * attempt, unless the server could not for now. In company it is nobody's in particular; they all
 * run alone next time. */
static void count_attempt(wb_worker *w, const wb_error *error)
{
    char reason[1200];
    wb_item *item = w->batch[0];
    if (w->batch_size > 1 || item->state != WB_ITEM_SENT || item->verdict != WB_VERDICT_OPEN)
        return;
    (void)snprintf(reason, sizeof reason, "the transport's transaction was not committed: %s", error->text);
    wb_verdict_attempt_failed(w, item, &(wb_attempt){ WB_FAILURE_DISPATCH, reason, 0, 1, 1, NULL });
}

/* With the commit the transport forgets what was acknowledged. */
static void keep_ids(wb_worker *w)
{
    for (size_t i = 0; i < w->batch_size; i++) {
        wb_message *message = &w->batch[i]->message;
        if (w->batch[i]->state == WB_ITEM_SENT && message->id)
            message->id = wb_arena_copy(&w->arena, message->id, message->id_size);
    }
}

/* `incoming` is gone by now. */
static void settle(wb_worker *w)
{
    wb_batch_tally(w, WB_ITEM_SENT);
    for (size_t i = 0; i < w->batch_size; i++) {
        if (w->batch[i]->state != WB_ITEM_SENT)
            continue;
        if (w->batch[i]->verdict == WB_VERDICT_FAILED)
            wb_move_note_done(w, w->batch[i]);
        wb_item_change(w->batch[i], WB_ITEM_SETTLED);
    }
}

int wb_stage_commit_transport(wb_worker *w, wb_error *error)
{
    wb_crash_point("before_transport_commit");
    keep_ids(w);
    int r = wb_distrust_shared(w, w->pipeline->transport_ops->commit(w->transport, error), error);
    error->result = r;
    if (r == WB_OK) {
        wb_crash_point("after_transport_commit");
        settle(w);
        return WB_OK;
    }
    if (r == WB_NOT_CONNECTED || r == WB_IN_DOUBT)
        w->transport_broken = 1;
    else if (w->storage && w->pipeline->mode == WB_MODE_SENDS_ATOMIC && !wb_error_is_servers(error))
        count_attempt(w, error);
    return r;
}
