/* SPDX-License-Identifier: Apache-2.0
 *
 * Stage 5: hand the operations to the transport, all of a batch in one window of
 * confirmations. What cannot be dispatched is the failure of its own message alone.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/base/log.h"
#include "core/pipeline/stages.h"

/* Between two tries of a window the broker refused for now (nack, connection blocked). */
#define REFUSED_PAUSE (100 * WB_MILLISECOND)
/* Between two tries to move a message to an error queue that refuses it. */
#define ERROR_QUEUE_PAUSE (1 * WB_SECOND)

int wb_has_transport_transaction(const wb_worker *w)
{
    return w->pipeline->mode >= WB_MODE_SENDS_ATOMIC;
}

void wb_window_add(wb_worker *w, wb_operation *operation)
{
    if (w->window_count == w->window_max) {
        w->window_max = w->window_max ? w->window_max * 2 : 128;
        w->window = wb_realloc(w->window, w->window_max * sizeof *w->window);
    }
    if (wb_bug("not_mandatory"))
        operation->flags &= ~WB_OPERATION_MANDATORY;
    w->window[w->window_count++] = operation;
}

/* Leave in the window what is neither sent nor refused for good. */
static void keep_unknown(wb_worker *w)
{
    size_t count = 0;
    for (size_t i = 0; i < w->window_count; i++)
        if (w->window[i]->result != WB_OK && w->window[i]->result != WB_REJECT)
            w->window[count++] = w->window[i];
    w->window_count = count;
}

/* A refusal's reason belongs to the session until its next call. */
static void keep_reasons(wb_worker *w)
{
    for (size_t i = 0; i < w->window_count; i++) {
        wb_operation *operation = w->window[i];
        if (operation->result == WB_REJECT && operation->reason)
            operation->reason = wb_arena_copy(&w->arena, operation->reason, strlen(operation->reason));
    }
}

int wb_dispatch_window(wb_worker *w)
{
    const wb_pipeline *p = w->pipeline;
    while (w->window_count) {
        int r = p->transport_ops->send(w->transport, w->window, w->window_count,
                                       wb_clock_monotonic() + WB_DISPATCH_TIMEOUT, &w->error);
        keep_reasons(w);
        if (r == WB_OK)
            return WB_OK;
        if (r == WB_RETRY && wb_has_transport_transaction(w))
            return WB_ABORT; /* a transaction is run again from its start, never in the middle */
        if (r != WB_RETRY || p->stop) {
            w->transport_broken = 1;
            return r == WB_FATAL ? WB_FATAL : WB_NOT_CONNECTED;
        }
        keep_unknown(w);
        wb_clock_pause(REFUSED_PAUSE, &p->stop);
    }
    return WB_OK;
}

static void add_error_operation(wb_worker *w, wb_item *item)
{
    const wb_pipeline *p = w->pipeline;
    memset(&item->operations, 0, sizeof item->operations);
    wb_window_add(w, wb_recover_error_operation(&p->recoverability, &p->origin, item->incoming,
                                                &item->failure, item->message.type, &w->arena,
                                                &item->operations));
}

static void fill_window(wb_worker *w)
{
    w->window_count = 0;
    for (size_t i = 0; i < w->batch_size; i++) {
        wb_item *item = &w->held[i];
        if (item->state == WB_ITEM_FAILED)
            add_error_operation(w, item);
        else if (item->state == WB_ITEM_HANDLED)
            for (wb_operation_node *node = item->operations.first; node; node = node->next)
                wb_window_add(w, &node->operation);
    }
}

static const wb_operation *find_refused(const wb_operation_list *list)
{
    for (const wb_operation_node *node = list->first; node; node = node->next)
        if (node->operation.result == WB_REJECT)
            return &node->operation;
    return NULL;
}

static void describe_refusal(const wb_operation *operation, char *text, size_t size)
{
    (void)snprintf(text, size, "could not dispatch to \"%s\": %s", operation->destination,
                   operation->reason ? operation->reason : "refused by the transport");
}

/* Copies of a message that are in hand beside it go where it went. */
static void absorb_copies(wb_worker *w, const wb_item *moved)
{
    const wb_incoming *a = moved->incoming;
    for (size_t i = 0; w->pipeline->outbox && a->id && i < w->held_count; i++) {
        const wb_incoming *b = w->held[i].incoming;
        if (&w->held[i] != moved && w->held[i].state != WB_ITEM_DONE && b->id &&
            b->id_size == a->id_size && memcmp(a->id, b->id, a->id_size) == 0)
            w->held[i].absorbed = 1;
    }
}

static void conclude_failed(wb_worker *w, wb_item *item)
{
    const wb_pipeline *p = w->pipeline;
    char attempts[12], reason[1200];
    const wb_operation *refused = find_refused(&item->operations);

    (void)snprintf(attempts, sizeof attempts, "%u", item->failure.attempts);
    if (refused) {
        describe_refusal(refused, reason, sizeof reason);
        wb_log_event(WB_LOG_ERROR, "message stays in hand: it cannot be moved to the error queue",
                     { "endpoint", p->endpoint }, { "message_id", item->incoming->id },
                     { "error_queue", p->recoverability.error_queue }, { "reason", reason });
        wb_clock_pause(ERROR_QUEUE_PAUSE, &p->stop);
        return;
    }
    wb_log_event(WB_LOG_ERROR, "message moved to the error queue", { "endpoint", p->endpoint },
                 { "message_id", item->incoming->id }, { "type", item->message.type },
                 { "error_queue", p->recoverability.error_queue }, { "kind", item->failure.kind },
                 { "attempts", attempts }, { "reason", item->failure.reason });
    item->state = WB_ITEM_DONE;
    absorb_copies(w, item);
}

static void conclude_handled(wb_worker *w, wb_item *item)
{
    char reason[1200];
    const wb_operation *refused = find_refused(&item->operations);
    if (!refused) {
        item->state = WB_ITEM_DONE;
        return;
    }
    describe_refusal(refused, reason, sizeof reason);
    if (w->stored && wb_operations_encode_group(&w->encoded, item->incoming->id,
                                                item->incoming->id_size, &item->operations) == 0)
        return;
    wb_item_fail(w, item, WB_FAILURE_DISPATCH, reason, 1);
}

/* The pending row shrinks to what could not be dispatched; usually nothing. */
static void conclude(wb_worker *w)
{
    wb_operations_encode_start(&w->encoded);
    size_t empty = w->encoded.size;
    for (size_t i = 0; i < w->batch_size; i++) {
        wb_item *item = &w->held[i];
        if (item->state == WB_ITEM_HANDLED)
            conclude_handled(w, item);
        else if (item->state == WB_ITEM_FAILED && item->operations.count)
            conclude_failed(w, item);
    }
    if (w->stored && w->encoded.size > empty)
        wb_settle_add_mark(w, w->batch_number, w->encoded.data, w->encoded.size);
    else if (w->stored)
        wb_settle_add_mark(w, w->batch_number, NULL, 0);
}

int wb_stage_dispatch(wb_worker *w)
{
    fill_window(w);
    if (w->window_count) {
        wb_crash_point("before_dispatch");
        int r = wb_dispatch_window(w);
        if (r != WB_OK)
            return r;
        wb_crash_point("after_dispatch");
    }
    conclude(w);
    return WB_OK;
}

static size_t find_culprit(const wb_worker *w)
{
    for (size_t i = 0; i < w->batch_size; i++)
        if (w->held[i].state == WB_ITEM_HANDLED && find_refused(&w->held[i].operations))
            return i;
    return WB_NOBODY;
}

static int acknowledge_inside(wb_worker *w)
{
    const wb_incoming *messages[w->batch_size];
    size_t count = 0;
    for (size_t i = 0; i < w->batch_size; i++)
        if (w->held[i].state == WB_ITEM_DONE)
            messages[count++] = w->held[i].incoming;
    return w->pipeline->transport_ops->acknowledge(w->transport, messages, count, &w->error);
}

int wb_stage_dispatch_inside(wb_worker *w, size_t *ret_culprit)
{
    fill_window(w);
    wb_crash_point("before_dispatch");
    int r = wb_dispatch_window(w);
    *ret_culprit = find_culprit(w);
    if (r == WB_OK && *ret_culprit != WB_NOBODY) {
        const wb_operation *refused = find_refused(&w->held[*ret_culprit].operations);
        describe_refusal(refused, w->error.text, sizeof w->error.text);
        return WB_RETRY;
    }
    if (r != WB_OK)
        return r;
    conclude(w);
    wb_crash_point("after_dispatch");
    r = acknowledge_inside(w);
    if (r != WB_OK)
        w->transport_broken = 1;
    return r;
}
