/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/pipeline/defer.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/base/memory.h"
#include "core/message/session_control.h"
#include "core/recover/retry_copy.h"

/* Between two tries of a store that cannot now. */
#define PAUSE_FIRST (100 * WB_MILLISECOND)
#define PAUSE_LONGEST (5 * WB_SECOND)

/* What of a window is stored, side by side with its operations. */
typedef struct {
    wb_operation **operations;
    wb_delayed *messages;
    size_t count;
    wb_arena *arena;
    wb_buffer bytes; /* of one row */
} deferred;

static void refuse(wb_operation *operation, int cause, const char *reason, wb_arena *arena)
{
    operation->result = WB_REJECT;
    operation->cause = cause;
    operation->reason = wb_arena_copy(arena, reason, strlen(reason));
}

/* What tells apart those of one id: the number of a delayed retry, or of a session's control message. */
static uint32_t retries_of(const wb_operation *operation)
{
    wb_session_control control;
    return wb_session_control_read(operation->headers, operation->header_count, &control) > 0
               ? wb_session_control_key(&control)
               : wb_recover_retries(operation->headers, operation->header_count);
}

/* As a row of the outbox, but that it is due is a column of its own. */
wb_delayed wb_defer_row(const wb_operation *operation, wb_arena *arena, wb_buffer *bytes)
{
    wb_operation_node node = { *operation, NULL };
    const wb_operation_list list = { &node, &node, 1 };
    node.operation.deliver_at = 0;
    wb_operations_encode_start(bytes);
    (void)wb_operations_encode_group(bytes, operation->id, operation->id_size, &list);
    return (wb_delayed){
        .struct_size = sizeof(wb_delayed),
        .destination = operation->destination,
        .destination_size = strlen(operation->destination),
        .id = operation->id,
        .id_size = operation->id_size,
        .retries = wb_bug("key_without_retries") ? 0 : retries_of(operation),
        .due = operation->deliver_at,
        .operation = wb_arena_copy(arena, (const char *)bytes->data, bytes->size),
        .operation_size = bytes->size,
    };
}

static int is_open(const wb_operation *operation)
{
    return operation->result != WB_OK && operation->result != WB_REJECT;
}

size_t wb_defer_take(wb_operation_list *list, int64_t now, wb_arena *arena, wb_buffer *scratch, wb_delayed *rows)
{
    size_t count = 0;
    for (wb_operation_node *node = list->first; node; node = node->next) {
        wb_operation *operation = &node->operation;
        if (operation->deliver_at <= now || !is_open(operation))
            continue;
        rows[count++] = wb_defer_row(operation, arena, scratch);
        operation->result = WB_OK;
    }
    return count;
}

/* Who delays may be another by now than when the operation was asked for. */
static void sort_out(const wb_window *window, const wb_pipeline *p, deferred *d)
{
    int64_t now = 0;
    for (size_t i = 0; i < window->count; i++) {
        wb_operation *operation = window->operations[i];
        if (!operation->deliver_at || !is_open(operation))
            continue;
        now = now ? now : wb_pipeline_due_now(p);
        if (operation->deliver_at <= now || wb_bug("early_delay")) {
            operation->deliver_at = 0;
        } else if (p->origin.delays == WB_DELAYS_BY_STORE) {
            d->messages[d->count] = wb_defer_row(operation, d->arena, &d->bytes);
            d->operations[d->count++] = operation;
        } else if (p->origin.delays == WB_DELAYS_BY_NOBODY) {
            refuse(operation, WB_CAUSE_OTHER, "nobody delays messages here any more: set delayed_delivery, "
                                              "or another transaction_mode", d->arena);
        }
    }
}

static int store(const wb_pipeline *p, wb_outlet *outlet, const wb_delayed *messages, size_t count,
                 wb_error *error)
{
    int r = p->persistence_ops->delayed->store(outlet->storage, messages, count, error);
    error->result = r;
    return wb_bug("store_believed") ? WB_OK : r;
}

static void note_stored(wb_pipeline *p, const deferred *d, size_t from, size_t count)
{
    for (size_t i = from; i < from + count; i++) {
        d->operations[i]->result = WB_OK;
        if (!wb_bug("poller_not_woken"))
            wb_alarm_tell(&p->alarm, d->messages[i].due);
    }
}

/* One of them is too large: whichever, the others are stored. */
static int store_one_by_one(wb_outlet *outlet, const deferred *d, wb_error *error)
{
    wb_pipeline *p = outlet->pipeline;
    for (size_t i = 0; i < d->count; i++) {
        int r = store(p, outlet, &d->messages[i], 1, error);
        if (r == WB_REJECT)
            refuse(d->operations[i], error->cause, error->text, d->arena);
        else if (r != WB_OK)
            return r;
        else
            note_stored(p, d, i, 1);
    }
    return WB_OK;
}

static int store_all(wb_outlet *outlet, const deferred *d, wb_error *error)
{
    int r = store(outlet->pipeline, outlet, d->messages, d->count, error);
    if (r == WB_REJECT)
        return store_one_by_one(outlet, d, error);
    if (r == WB_OK)
        note_stored(outlet->pipeline, d, 0, d->count);
    return r;
}

static int may_wait(const wb_outlet *outlet, int result)
{
    const wb_pipeline *p = outlet->pipeline;
    return (result == WB_RETRY || result == WB_ABORT) && !p->stop && p->mode != WB_MODE_TRANSACTION_SCOPE &&
           !(outlet->until && wb_clock_monotonic() >= outlet->until);
}

static int store_patiently(wb_outlet *outlet, const deferred *d, wb_error *error)
{
    wb_pipeline *p = outlet->pipeline;
    int64_t pause = PAUSE_FIRST;
    int r;
    while ((r = store_all(outlet, d, error)) != WB_OK) {
        wb_breaker_failed(&p->store_breaker, p, error);
        if (!may_wait(outlet, r))
            return r;
        if (outlet->beat)
            atomic_store(outlet->beat, wb_clock_monotonic());
        wb_clock_pause(pause, &p->stop);
        pause = pause * 2 < PAUSE_LONGEST ? pause * 2 : PAUSE_LONGEST;
    }
    wb_breaker_succeeded(&p->store_breaker, p);
    return WB_OK;
}

static int has_delayed(const wb_window *window)
{
    for (size_t i = 0; i < window->count; i++)
        if (window->operations[i]->deliver_at)
            return 1;
    return 0;
}

static void release(void *all)
{
    deferred *d = all;
    free(d->operations);
    free(d->messages);
    wb_buffer_free(&d->bytes);
}

int wb_defer(wb_window *window, wb_outlet *outlet, wb_error *error)
{
    outlet->storage_failed = 0;
    if (!has_delayed(window))
        return WB_OK;
    deferred d = { .arena = window->arena };
    wb_memory_held held;
    wb_memory_hold(&held, release, &d);
    d.operations = wb_alloc(window->count * sizeof *d.operations);
    d.messages = wb_alloc(window->count * sizeof *d.messages);
    sort_out(window, outlet->pipeline, &d);
    wb_crash_point("before_store_delayed");
    if (wb_bug("unstored_delay"))
        note_stored(outlet->pipeline, &d, 0, d.count);
    int r = d.count && !wb_bug("unstored_delay") ? store_patiently(outlet, &d, error) : WB_OK;
    if (d.count && r == WB_OK)
        wb_crash_point("after_store_delayed");
    outlet->storage_failed = r != WB_OK;
    if (r == WB_IN_DOUBT) /* storing again is harmless */
        r = error->result = WB_NOT_CONNECTED;
    wb_memory_let_go(&held);
    release(&d);
    return r;
}
