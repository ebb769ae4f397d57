/* SPDX-License-Identifier: Apache-2.0
 *
 * What a handler sees: the context behind include/waybill/handler.h.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/base/log.h"
#include "core/message/text.h"
#include "core/pipeline/call.h"
#include "core/pipeline/context.h"
#include "core/plugin/instance.h"

static wb_item *item_of_cause(const wb_call *call, const wb_message *cause)
{
    if (!cause)
        return call->count == 1 ? call->items[0] : NULL;
    for (size_t i = 0; i < call->count; i++)
        if (&call->items[i]->message == cause)
            return call->items[i];
    return NULL;
}

/* Immediate sends must not become part of a transport transaction. */
static int open_immediate(wb_call *call, wb_outlet **ret_outlet)
{
    wb_worker *w = call->worker;
    wb_pipeline *p = w->pipeline;
    *ret_outlet = &w->outlet;
    if (!wb_has_transport_transaction(p))
        return WB_OK;
    *ret_outlet = &w->immediate;
    if (w->immediate.session)
        return WB_OK;
    w->immediate = (wb_outlet){ .pipeline = p, .beat = &w->beat, .is_apart = 1 };
    int r = wb_transport_open(p->transport_ops, p->transport, WB_SESSION_SEND, 0, &w->immediate.session, call->error);
    call->error->result = r;
    return r;
}

/* The session that receives takes all in hand along; one beside it is opened again for the next
 * attempt, and what became of this one is the server's trouble until others are sent. */
static void note_loss(wb_call *call, wb_outlet *outlet)
{
    call->broken |= !outlet->is_apart;
    if (!outlet->is_apart)
        return;
    call->trouble = WB_CAUSE_SERVER;
    outlet->pipeline->transport_ops->close(outlet->session);
    outlet->session = NULL;
}

static int send_immediately(wb_call *call, wb_operation *operation)
{
    wb_window window = { &operation, 1, 1, &call->worker->arena };
    wb_outlet *outlet;

    if (open_immediate(call, &outlet) != WB_OK) {
        call->trouble = WB_CAUSE_SERVER; /* no message has a say in that */
        return WB_RETRY;
    }
    int r = wb_window_send(&window, outlet, call->error);
    if (r == WB_OK && operation->result == WB_REJECT)
        return wb_error_set(call->error, WB_REJECT, operation->cause, 0, "cannot send to \"%s\": %s",
                            operation->destination, operation->reason ? operation->reason : "refused");
    if (r == WB_IN_DOUBT) /* not confirmed, and the session lives */
        call->trouble = WB_CAUSE_SENDING;
    if (r == WB_NOT_CONNECTED || r == WB_FATAL)
        note_loss(call, outlet);
    return r == WB_OK ? WB_OK : WB_RETRY;
}

static int context_outgoing(wb_context *ctx, int kind, const wb_outgoing *outgoing, size_t size)
{
    wb_call *call = wb_call_of(ctx, wb_call_name(kind));
    if (!call)
        return WB_REJECT;
    wb_worker *w = call->worker;
    if (wb_outgoing_check_size(size, call->error) != WB_OK)
        return WB_REJECT;
    wb_item *item = item_of_cause(call, outgoing->cause);
    wb_operation_list alone = { 0 };

    if (!item)
        return wb_error_set(call->error, WB_REJECT, WB_CAUSE_OTHER, 0,
                            "a batch handler must say which message causes an outgoing one: set .cause");
    int immediate = (outgoing->flags & WB_IMMEDIATE) != 0;
    uint32_t *ordinal = immediate && !wb_bug("immediate_id") ? &item->asked_immediate : &item->asked;
    int r = wb_outgoing_add(&w->pipeline->origin, kind, outgoing, size, &item->message, *ordinal,
                            &w->arena, immediate ? &alone : &item->operations, call->error);
    if (r != WB_OK)
        return r;
    (*ordinal)++;
    return immediate ? send_immediately(call, &alone.first->operation) : WB_OK;
}

static const void *context_storage(wb_context *ctx, const char *name, void **ret_session,
                                   size_t *ret_item)
{
    const wb_call *call = wb_call_of(ctx, name);
    wb_worker *w = call ? call->worker : NULL;
    if (!w || !w->storage)
        return NULL;
    *ret_session = w->storage;
    *ret_item = call->items[0]->place;
    return w->pipeline->persistence_ops->interface(w->storage, name);
}

int64_t wb_context_now(wb_context *ctx)
{
    const wb_call *call = wb_call_of(ctx, "wb_context_now");
    return call && call->worker ? wb_pipeline_now(call->worker->pipeline) : wb_clock_wall();
}

static int context_fail(wb_context *ctx, int result, const char *reason)
{
    const wb_call *call = wb_call_of(ctx, "wb_fail");
    if (!call)
        return WB_REJECT;
    call->worker->wish.kind = WB_WISH_NOTHING; /* what is said last counts */
    return wb_error_set(call->error, result, WB_CAUSE_OTHER, 0, "%s", reason);
}

static int context_give_up(wb_context *ctx, const char *queue, const char *reason)
{
    const wb_call *call = wb_call_of(ctx, queue ? "wb_move_to" : "wb_discard");
    if (!call)
        return WB_REJECT;
    wb_wish *wish = &call->worker->wish;
    size_t size = queue ? strlen(queue) : 0;
    wish->kind = queue ? WB_WISH_MOVE : WB_WISH_DISCARD;
    if (queue && (!size || size >= sizeof wish->queue || !wb_text_is_plain(queue, size))) {
        wish->kind = WB_WISH_NOTHING;
        return wb_error_set(call->error, WB_REJECT, WB_CAUSE_OTHER, 0,
                            "%s (it was to go to a queue whose name is no text of 1 to 255 bytes)", reason);
    }
    memcpy(wish->queue, queue ? queue : "", size + 1);
    return wb_error_set(call->error, WB_REJECT, WB_CAUSE_OTHER, 0, "%s", reason);
}

static int context_retry_after(wb_context *ctx, int64_t delay, const char *reason)
{
    const wb_call *call = wb_call_of(ctx, "wb_retry_after");
    if (!call)
        return WB_REJECT;
    wb_wish *wish = &call->worker->wish;
    int is_right = delay > 0 && delay <= WB_OUTGOING_DELAY_MAX;
    wish->kind = is_right ? WB_WISH_RETRY_AFTER : WB_WISH_NOTHING;
    wish->delay = delay;
    return wb_error_set(call->error, WB_RETRY, WB_CAUSE_OTHER, 0, "%s%s", reason,
                        is_right ? "" : " (it was to be retried after no time, or more than 3650 days)");
}

/* A wish is that of a handler which returned what it was told to. */
static int is_wished(const wb_wish *wish, int result)
{
    return result == (wish->kind == WB_WISH_RETRY_AFTER ? WB_RETRY : WB_REJECT);
}

static void context_log(wb_context *ctx, int level, const char *text)
{
    const wb_call *call = wb_call_of(ctx, "wb_log");
    if (!call)
        return;
    wb_log_event(level, text, { "endpoint", call->worker->pipeline->endpoint },
                 { "message_id", call->count == 1 ? call->items[0]->message.id : NULL },
                 { "type", call->items[0]->message.type });
}

static const char *context_endpoint_name(wb_context *ctx)
{
    const wb_call *call = wb_call_of(ctx, "wb_endpoint_name");
    return call ? call->worker->pipeline->endpoint : "";
}

static const wb_setting_entry *context_settings(wb_context *ctx, size_t *ret_count)
{
    const wb_call *call = wb_call_of(ctx, "wb_setting");
    *ret_count = 0;
    return call ? wb_hooks_settings(&call->worker->pipeline->hooks, ret_count) : NULL;
}

static void *context_data(wb_context *ctx, int whose)
{
    const wb_call *call = wb_call_of(ctx, whose == WB_DATA_WORKER ? "wb_worker_data" : "wb_module_data");
    if (!call)
        return NULL;
    const wb_worker *w = call->worker;
    const size_t module_at = wb_item_handler(call->items[0])->module_at;
    return whose == WB_DATA_MODULE   ? wb_kept_data(&w->pipeline->hooks.kept, module_at)
           : whose == WB_DATA_WORKER ? wb_kept_data(&w->kept, module_at)
                                     : NULL;
}

static const wb_handler_api handler_api = {
    .struct_size = sizeof(wb_handler_api),
    .outgoing = context_outgoing,
    .storage = context_storage,
    .failure = context_fail,
    .log = context_log,
    .endpoint_name = context_endpoint_name,
    .give_up = context_give_up,
    .retry_after = context_retry_after,
    .settings = context_settings,
    .data = context_data,
};

typedef struct guarded {
    const wb_call *call;
    const wb_handler_entry *handler;
    int result;
} guarded;

static void call_function(void *argument)
{
    guarded *g = argument;
    const wb_call *call = g->call;
    const wb_message *messages[call->count];
    for (size_t i = 0; i < call->count; i++)
        messages[i] = &call->items[i]->message;
    g->result = g->handler->one ? g->handler->one(call->context, messages[0])
                                : g->handler->batch(call->context, messages, call->count);
}

int wb_call_handler(wb_worker *w, wb_item *const *items, size_t count, wb_error *error)
{
    const wb_handler_entry *handler = wb_item_handler(items[0]);
    wb_call call = { .worker = w, .items = items, .count = count, .error = error };
    guarded g = { &call, handler, WB_RETRY };

    for (size_t i = 0; i < count; i++)
        items[i]->message.type = wb_item_type_for(items[i], handler);
    wb_error_clear(error);
    w->wish.kind = WB_WISH_NOTHING;
    wb_call_begin(&call, &handler_api, handler->type);
    wb_call_guard(call_function, &g);
    wb_call_end(&call);
    int r = g.result;
    if (!is_wished(&w->wish, r))
        w->wish.kind = WB_WISH_NOTHING;
    if (call.broken) {
        w->transport_broken = 1;
        error->result = WB_NOT_CONNECTED;
        return WB_NOT_CONNECTED;
    }
    if (r == WB_OK)
        return WB_OK;
    if (!error->text[0])
        (void)snprintf(error->text, sizeof error->text, "the handler of %s returned %d", handler->type, r);
    /* what it was told of a server is no trouble of that server's yet: check() knows */
    error->result = r == WB_REJECT ? WB_REJECT : WB_RETRY;
    error->cause = call.trouble ? call.trouble : WB_CAUSE_OTHER;
    return error->result;
}
