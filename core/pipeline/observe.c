/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/pipeline/observe.h"

#include "core/base/clock.h"
#include "core/message/header_names.h"
#include "core/message/incoming.h"
#include "core/message/trace.h"

/* So many are told of in one call; more take several. They are on the stack, which may be a small one of somebody's thread. */
#define LOT 16

/* What is told together. */
typedef struct {
    wb_observer *observer;
    wb_observe_fn tell;
    size_t count;
    wb_observation all[LOT];
    const wb_observation *pointers[LOT];
    char types[LOT][WB_TYPE_SIZE]; /* of what was sent */
} lot;

static void flush(lot *l)
{
    if (l->count)
        l->tell(l->observer, l->pointers, l->count);
    l->count = 0;
}

static wb_observation *next(lot *l)
{
    if (l->count == LOT)
        flush(l);
    wb_observation *one = &l->all[l->count];
    l->pointers[l->count++] = one;
    *one = (wb_observation){ .struct_size = sizeof *one };
    return one;
}

static void begin(lot *l, const wb_tracing *tracing, wb_observe_fn tell)
{
    l->observer = tracing->observer;
    l->tell = tell;
    l->count = 0;
}

/* ---- handlings -------------------------------------------------------------------- */

static void read_trace(const wb_pipeline *p, wb_item *item)
{
    const wb_incoming *incoming = item->incoming;
    (void)wb_trace_handle(p->origin.tracing, &p->origin.endpoint, incoming->headers, incoming->header_count, incoming->id,
                          incoming->id_size, &item->trace);
}

/* Of `incoming`, which may be gone, nothing. */
static wb_observation *add_item(lot *l, const wb_item *item)
{
    wb_observation *one = next(l);
    const char *type = wb_item_type(item);
    one->trace = item->trace;
    one->begin = item->started;
    one->end = item->ended;
    one->id = item->message.id;
    one->id_size = item->message.id_size;
    one->type = type && *type ? type : NULL;
    one->attempt = item->failure.attempts + 1;
    one->body_size = item->message.body_size;
    return one;
}

static void tell_items(const wb_pipeline *p, wb_observe_fn tell, wb_item *const *items, size_t count)
{
    lot l;
    begin(&l, p->origin.tracing, tell);
    for (size_t i = 0; i < count; i++)
        if (!items[i]->is_discarded)
            (void)add_item(&l, items[i]);
    flush(&l);
}

void wb_observe_started(const wb_pipeline *p, wb_item *const *items, size_t count)
{
    const wb_tracing *tracing = p->origin.tracing;
    if (!tracing)
        return;
    for (size_t i = 0; i < count; i++) {
        read_trace(p, items[i]);
        items[i]->ended = 0;
    }
    if (wb_item_handler(items[0]) && WB_HAS(tracing->ops, wb_observer_ops, started))
        tell_items(p, tracing->ops->started, items, count);
}

/* A clock that was set back meanwhile would have something end before it began. */
int64_t wb_observe_now(const wb_pipeline *p, int64_t since)
{
    const int64_t now = p->origin.tracing ? wb_clock_wall() : 0;
    return now > since || !now ? now : since;
}

void wb_observe_handled(const wb_pipeline *p, wb_item *const *items, size_t count)
{
    const wb_tracing *tracing = p->origin.tracing;
    if (tracing && WB_HAS(tracing->ops, wb_observer_ops, handled))
        tell_items(p, tracing->ops->handled, items, count);
}

void wb_observe_failed(const wb_pipeline *p, wb_item *item, const char *reason)
{
    const wb_tracing *tracing = p->origin.tracing;
    lot l;
    if (!tracing || !WB_HAS(tracing->ops, wb_observer_ops, failed))
        return;
    begin(&l, tracing, tracing->ops->failed);
    read_trace(p, item); /* it may not have come to its handlers */
    wb_observation *one = add_item(&l, item);
    wb_trace_fail(&one->trace);
    one->end = wb_observe_now(p, item->has_begun ? item->started : 0);
    one->begin = item->has_begun ? item->started : one->end; /* it may have failed before its handlers */
    one->attempt = item->failure.attempts;
    one->reason = reason;
    flush(&l);
}

/* ---- sendings --------------------------------------------------------------------- */

/* A copy for a retry is the message once more, which its sender has told of. */
static int is_told(const wb_pipeline *p, const wb_operation *operation, wb_trace *ret_trace)
{
    return operation->result == WB_OK && wb_trace_sent(&p->origin.endpoint, operation, ret_trace) &&
           !WB_HEADERS_FIND(operation->headers, operation->header_count, WB_HEADER_RETRIES);
}

static void add_operation(lot *l, const wb_operation *operation, const wb_trace *trace, int64_t began, int64_t ended)
{
    wb_observation *one = next(l);
    one->trace = *trace;
    one->begin = began;
    one->end = ended;
    one->id = operation->id;
    one->id_size = operation->id_size;
    one->type = wb_headers_type(operation->headers, operation->header_count, l->types[one - l->all]);
    one->destination = operation->destination;
    one->kind = operation->kind;
    one->body_size = operation->body_size;
}

void wb_observe_sent(const wb_pipeline *p, const wb_window *window, int64_t began)
{
    const wb_tracing *tracing = p->origin.tracing;
    wb_trace trace;
    lot l;
    if (!tracing || !WB_HAS(tracing->ops, wb_observer_ops, sent))
        return;
    const int64_t ended = wb_observe_now(p, began);
    begin(&l, tracing, tracing->ops->sent);
    for (size_t i = 0; i < window->count; i++)
        if (is_told(p, window->operations[i], &trace))
            add_operation(&l, window->operations[i], &trace, began, ended);
    flush(&l);
}
