/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/endpoint/transfer.h"

#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/base/log.h"
#include "core/message/incoming.h"
#include "core/plugin/instance.h"

#define BATCH 100
#define LOOK WB_SECOND               /* how long the next message is waited for */
#define SEND_WINDOW (30 * WB_SECOND)
#define PATIENCE (90 * WB_SECOND)    /* with what is there, and does not come */

/* A message, and what is sent of it: itself, or a copy for the error queue. */
typedef struct letter {
    const wb_incoming *message;
    wb_operation *operation;
    wb_failure failure; /* its kind is NULL while it goes as it is */
    unsigned trim;
} letter;

typedef struct transfer {
    const wb_pipeline *from;
    const wb_pipeline *to;
    wb_transport_session *receiver;
    wb_outlet outlet;
    wb_window window;
    wb_arena arena;
    wb_transferred *done;
    wb_error *error;
} transfer;

/* ---- what is sent ------------------------------------------------------------------------------ */

static wb_operation *make_same(transfer *t, const wb_incoming *from)
{
    wb_operation_list list = { 0 };
    wb_operation *operation = wb_operation_append(&list, &t->arena);
    operation->kind = WB_OPERATION_SEND;
    operation->flags = WB_OPERATION_MANDATORY;
    operation->destination = t->to->endpoint;
    operation->id = from->id ? from->id : "";
    operation->id_size = from->id ? from->id_size : 0;
    operation->headers = from->headers;
    operation->header_count = from->header_count;
    operation->body = from->body;
    operation->body_size = from->body_size;
    operation->key = from->key;
    operation->key_size = from->key_size;
    return operation;
}

/* A retry of it goes to the new queue. */
static wb_operation *make_copy(transfer *t, const letter *one)
{
    wb_operation_list list = { 0 };
    const wb_failed_message failed = { .incoming = one->message, .failure = &one->failure, .trim = one->trim };
    return wb_recover_error_operation(&t->to->recoverability, &t->to->origin, &failed, &t->arena, &list);
}

static void condemn(transfer *t, letter *one, const char *kind, const char *reason)
{
    one->failure = (wb_failure){ .kind = kind, .reason = wb_arena_copy(&t->arena, reason, strlen(reason)), .attempts = 1 };
    one->operation = make_copy(t, one);
}

static void address(transfer *t, letter *one, const wb_incoming *message)
{
    *one = (letter){ .message = message };
    if (message->problem)
        condemn(t, one, WB_FAILURE_UNREADABLE, message->problem);
    else
        one->operation = make_same(t, message);
}

/* ---- what is refused ---------------------------------------------------------------------------- */

static int is_ours_to_mend(const letter *one)
{
    const int32_t cause = one->operation->cause;
    return cause != WB_CAUSE_UNROUTABLE && cause != WB_CAUSE_SERVER && cause != WB_CAUSE_REFUSED &&
           one->trim < WB_TRIM_MAX;
}

static int fail(const transfer *t, const letter *one)
{
    const wb_incoming *message = one->message;
    const int is_servers = one->operation->cause == WB_CAUSE_SERVER;
    char reason[1200];
    wb_describe_refusal(one->operation, reason, sizeof reason);
    return wb_error_set(t->error, is_servers ? WB_RETRY : WB_FATAL, one->operation->cause, 0,
                        "message \"%.*s\" cannot leave queue \"%s\": %s",
                        (int)(message->id ? message->id_size : 0), message->id ? message->id : "", t->from->endpoint, reason);
}

/* For good: then the error queue takes it, or less of it. */
static int turn(transfer *t, letter *one)
{
    char reason[1200];
    if (!is_ours_to_mend(one))
        return fail(t, one);
    wb_describe_refusal(one->operation, reason, sizeof reason);
    if (!one->failure.kind) {
        condemn(t, one, WB_FAILURE_DISPATCH, reason);
    } else {
        one->trim++;
        one->operation = make_copy(t, one);
    }
    return WB_OK;
}

static int turn_refused(transfer *t, letter *letters, size_t count)
{
    int r = WB_OK;
    for (size_t i = 0; i < count && r == WB_OK; i++)
        if (letters[i].operation->result == WB_REJECT)
            r = turn(t, &letters[i]);
    return r;
}

/* ---- a batch -------------------------------------------------------------------------------------- */

static void fill_window(transfer *t, const letter *letters, size_t count)
{
    wb_window_clear(&t->window, &t->arena);
    for (size_t i = 0; i < count; i++)
        if (letters[i].operation->result != WB_OK)
            wb_window_add(&t->window, letters[i].operation);
}

static int send_all(transfer *t, letter *letters, size_t count)
{
    int r = WB_OK;
    for (fill_window(t, letters, count); r == WB_OK && t->window.count; fill_window(t, letters, count)) {
        t->outlet.until = wb_clock_monotonic() + SEND_WINDOW;
        r = wb_window_send(&t->window, &t->outlet, t->error);
        if (r == WB_OK)
            r = turn_refused(t, letters, count);
    }
    return r;
}

static void note(const transfer *t, const letter *letters, size_t count)
{
    char type[WB_TYPE_SIZE];
    for (size_t i = 0; i < count; i++) {
        const letter *one = &letters[i];
        t->done->moved += !one->failure.kind;
        t->done->failed += one->failure.kind != NULL;
        if (one->failure.kind)
            wb_log_event(WB_LOG_ERROR, "message moved to the error queue", { "endpoint", t->to->endpoint },
                         { "message_id", one->message->id },
                         { "type", wb_headers_type(one->message->headers, one->message->header_count, type) },
                         { "error_queue", one->operation->destination }, { "kind", one->failure.kind },
                         { "trimmed", one->trim ? "yes" : NULL }, { "reason", one->failure.reason });
    }
}

static int move_some(transfer *t, size_t *ret_count)
{
    const wb_transport_ops *ops = t->from->transport_ops;
    const wb_incoming *messages[BATCH];
    letter letters[BATCH];
    *ret_count = 0;
    int r = ops->receive(t->receiver, wb_clock_monotonic() + LOOK, messages, BATCH, ret_count, t->error);
    if (r != WB_OK || !*ret_count)
        return r;
    for (size_t i = 0; i < *ret_count; i++)
        address(t, &letters[i], messages[i]);
    r = send_all(t, letters, *ret_count);
    wb_crash_point("rename_sent");
    if (r == WB_OK)
        note(t, letters, *ret_count);
    if (r == WB_OK)
        r = ops->acknowledge(t->receiver, messages, *ret_count, t->error);
    wb_crash_point("rename_acknowledged");
    wb_arena_reset(&t->arena);
    return r;
}

/* Until the broker, too, says that nothing waits: a consumer may take a while to be given the first message. */
static int move_all(transfer *t)
{
    int64_t until = wb_clock_monotonic() + PATIENCE;
    size_t count = 0;
    int r = WB_OK;
    while (r == WB_OK) {
        wb_transport_depth depth = { .struct_size = sizeof depth };
        r = move_some(t, &count);
        if (r == WB_OK && count)
            until = wb_clock_monotonic() + PATIENCE;
        else if (r == WB_OK)
            r = t->from->transport_ops->depth(t->from->transport, &depth, t->error);
        if (r != WB_OK || (!count && !depth.messages))
            break;
        if (wb_clock_monotonic() > until)
            r = wb_error_set(t->error, WB_RETRY, WB_CAUSE_SERVER, 0, "what waits in queue \"%s\" does not come",
                             t->from->endpoint);
    }
    return r;
}

int wb_transfer_run(wb_endpoint *from, wb_endpoint *to, wb_transferred *transferred, wb_error *error)
{
    wb_pipeline *p = wb_endpoint_pipeline(to);
    transfer t = { .from = wb_endpoint_pipeline(from), .to = p, .done = transferred, .error = error };
    t.outlet = (wb_outlet){ .pipeline = p, .is_apart = 1 };
    wb_arena_init(&t.arena, 4096);
    int r = wb_transport_open(t.from->transport_ops, t.from->transport, WB_SESSION_RECEIVE, BATCH, &t.receiver, error);
    if (r == WB_OK)
        r = wb_endpoint_open_sender(to, &t.outlet.session, error);
    if (r == WB_OK)
        r = move_all(&t);
    if (t.outlet.session)
        p->transport_ops->close(t.outlet.session);
    if (t.receiver)
        t.from->transport_ops->close(t.receiver);
    wb_window_free(&t.window);
    wb_arena_free(&t.arena);
    return r;
}
