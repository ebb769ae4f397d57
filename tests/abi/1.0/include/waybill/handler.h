/* SPDX-License-Identifier: Apache-2.0
 *
 * The handler API: what a handler module includes.
 *
 *     #include <waybill/handler.h>
 *
 *     static int place_order(wb_context *ctx, const wb_message *msg)
 *     {
 *         ... business data through the storage session, e.g. <waybill/pgsql.h> ...
 *         return wb_publish(ctx, &(wb_outgoing){ .type = "Sales.OrderPlaced",
 *                                                .body = msg->body,
 *                                                .body_size = msg->body_size });
 *     }
 *     WB_HANDLERS(WB_HANDLER("Sales.PlaceOrder", place_order))
 *
 *     cc -shared -fPIC $(pkg-config --cflags waybill) orders.c -o orders.so
 *
 * A module links nothing of Waybill: every function below calls through a table
 * that the context carries, so a module built today loads into later versions.
 *
 * Threads: an endpoint with concurrency N calls handlers on N threads, each with
 * a context, a transaction and a storage session of its own. A handler keeps
 * nothing of them after it returns, and guards what it shares itself.
 *
 * A handler may be run again for the same message: after a failure, a deadlock, a
 * crash, or because another message of its batch failed. What it does through
 * the storage session and through wb_send(), wb_publish(), wb_reply() was rolled
 * back by then; what it does elsewhere (files, HTTP) was not.
 *
 * A handler must not commit or roll back the storage session's transaction, must
 * not exit, and must not throw or longjmp across its caller.
 */
#ifndef WAYBILL_HANDLER_H
#define WAYBILL_HANDLER_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <waybill/message.h>
#include <waybill/result.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One call of a handler: its transaction and its outgoing operations. Valid
 *  until the handler returns, on the thread that called it. */
typedef struct wb_context wb_context;

/* Kinds of outgoing operation (wb_handler_api.outgoing). */
#define WB_KIND_SEND 1
#define WB_KIND_PUBLISH 2
#define WB_KIND_REPLY 3

/** The table behind the functions below. Size first, append-only.
 *  Change log: 1.0 first version. Appended since: give_up, retry_after. */
typedef struct wb_handler_api {
    size_t struct_size;
    int (*outgoing)(wb_context *ctx, int kind, const wb_outgoing *outgoing, size_t outgoing_size);
    /** A persistence's own interface, by name; *ret_session is its first argument
     *  and *ret_item its second. NULL when the endpoint's persistence is another. */
    const void *(*storage)(wb_context *ctx, const char *interface_name, void **ret_session,
                           size_t *ret_item);
    int (*failure)(wb_context *ctx, int result, const char *reason);
    void (*log)(wb_context *ctx, int level, const char *text);
    const char *(*endpoint_name)(wb_context *ctx);
    /** `queue` NULL: the message is discarded. @return WB_UNRECOVERABLE */
    int (*give_up)(wb_context *ctx, const char *queue, const char *reason);
    /** `delay` in nanoseconds. @return WB_RETRY */
    int (*retry_after)(wb_context *ctx, int64_t delay, const char *reason);
} wb_handler_api;

/* Fixed for ever: a module never makes one, and what else the host keeps in it stays the host's. */
struct wb_context {
    const wb_handler_api *api;
};

/** Handle one message. @return WB_OK; WB_RETRY to be tried again (immediate
 *  retries, then delayed ones, then the error queue); WB_UNRECOVERABLE for the error queue at once.
 *  (A refused send is WB_REJECT, which is the same.) Any other class counts as WB_RETRY, so
 *  `return wb_publish(...)` is right. */
typedef int (*wb_handler_fn)(wb_context *ctx, const wb_message *message);

/** Handle all messages of one type of a batch in one call, for set-based SQL. (One that has
 *  handlers for its other types as well is handed over alone.)
 *  Anything but WB_OK rolls the batch back; its messages are then handled one by
 *  one by the same function with count = 1, and only the failing one fails. */
typedef int (*wb_batch_handler_fn)(wb_context *ctx, const wb_message *const *messages,
                                   size_t count);

/** Send a command to one endpoint's queue. The message leaves after the commit.
 *  @return WB_OK, or WB_REJECT when the operation is malformed or over a limit
 *  (the reason is kept for the error queue). */
static inline int wb_send(wb_context *ctx, const wb_outgoing *outgoing)
{
    return ctx->api->outgoing(ctx, WB_KIND_SEND, outgoing, sizeof *outgoing);
}

/** Publish an event to every endpoint that subscribed to its type. */
static inline int wb_publish(wb_context *ctx, const wb_outgoing *outgoing)
{
    return ctx->api->outgoing(ctx, WB_KIND_PUBLISH, outgoing, sizeof *outgoing);
}

/** Send to the reply address of the message being handled.
 *  @return also WB_REJECT when that message has none. */
static inline int wb_reply(wb_context *ctx, const wb_outgoing *outgoing)
{
    return ctx->api->outgoing(ctx, WB_KIND_REPLY, outgoing, sizeof *outgoing);
}

/** The name of the endpoint this handler runs in. */
static inline const char *wb_endpoint_name(wb_context *ctx)
{
    return ctx->api->endpoint_name(ctx);
}

#if defined(__GNUC__)
#define WB_PRINTF_LIKE(text_at, first) __attribute__((format(printf, text_at, first)))
#define WB_EXPORT __attribute__((visibility("default")))
#else
#define WB_PRINTF_LIKE(text_at, first)
#define WB_EXPORT
#endif

/** Say why a message fails, for the log and the error queue's headers:
 *  `return wb_fail(ctx, WB_UNRECOVERABLE, "no such customer: %s", name);`
 *  The text is cut at 1000 bytes. @return result. */
static inline int wb_fail(wb_context *ctx, int result, const char *format, ...)
    WB_PRINTF_LIKE(3, 4);
static inline int wb_fail(wb_context *ctx, int result, const char *format, ...)
{
    char text[1001];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return ctx->api->failure(ctx, result, text);
}

/** Have the message forgotten: `return wb_discard(ctx, "a newer price is known");`. What the handler
 *  did is rolled back, the message's id is recorded where there is an outbox, it is acknowledged,
 *  and one log line holds the reason. No audit copy, no error queue. As with WB_UNRECOVERABLE the
 *  handler may be asked once more, alone. A host older than this function moves the message to
 *  the error queue. @return WB_UNRECOVERABLE, to be returned. */
static inline int wb_discard(wb_context *ctx, const char *reason)
{
    if (ctx->api->struct_size < offsetof(wb_handler_api, give_up) + sizeof ctx->api->give_up)
        return ctx->api->failure(ctx, WB_UNRECOVERABLE, reason);
    return ctx->api->give_up(ctx, NULL, reason);
}

/** The same as WB_UNRECOVERABLE with a reason, but to an error queue of the handler's choice:
 *  `return wb_move_to(ctx, "orders.review", "the amount is odd");`. The queue must be there (one
 *  that `recoverability.types` names is made by waybill install); if it is not, or the host is older,
 *  the message goes to the ordinary one. @return WB_UNRECOVERABLE, to be returned. */
static inline int wb_move_to(wb_context *ctx, const char *queue, const char *reason)
{
    if (ctx->api->struct_size < offsetof(wb_handler_api, give_up) + sizeof ctx->api->give_up)
        return ctx->api->failure(ctx, WB_UNRECOVERABLE, reason);
    return ctx->api->give_up(ctx, queue, reason);
}

/** Have the message tried again after a time of the handler's choice, and not at once:
 *  `return wb_retry_after(ctx, 10 * WB_MINUTES, "the bank is closed");`. It is a delayed retry like
 *  those of the configuration, but for its delay (more than 0, at most 3650 days; no jitter): it counts as one
 *  of `delayed_retries`, and is made where these are (not on Kafka for a message with a key, unless
 *  `on_failure` is "delay"; nowhere with "block"). When none is left, or none is made, the message goes to the error queue. As with WB_UNRECOVERABLE the handler may be asked once more, alone. On a
 *  host older than this function it is an ordinary WB_RETRY. @return WB_RETRY, to be returned. */
static inline int wb_retry_after(wb_context *ctx, int64_t delay, const char *reason)
{
    if (ctx->api->struct_size < offsetof(wb_handler_api, retry_after) + sizeof ctx->api->retry_after)
        return ctx->api->failure(ctx, WB_RETRY, reason);
    return ctx->api->retry_after(ctx, delay, reason);
}

/** Write a line to the endpoint's log; endpoint and message id are added. */
static inline void wb_log(wb_context *ctx, int level, const char *format, ...)
    WB_PRINTF_LIKE(3, 4);
static inline void wb_log(wb_context *ctx, int level, const char *format, ...)
{
    char text[1001];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    ctx->api->log(ctx, level, text);
}

/** One row of a module's table. Walked by wb_handler_module.handler_stride, append-only. Made by
 *  WB_HANDLER and WB_BATCH_HANDLER. */
typedef struct wb_handler {
    const char *type;
    wb_handler_fn one;
    wb_batch_handler_fn batch;
} wb_handler;

/** What a module exports. Size first, append-only. Made by WB_HANDLERS. */
typedef struct wb_handler_module {
    size_t struct_size;
    uint32_t abi_major;
    uint32_t abi_minor_needed;
    size_t handler_stride;
    size_t handler_count;
    const wb_handler *handlers;
} wb_handler_module;

#define WB_HANDLER_ABI_MAJOR 1u
#define WB_HANDLER_ABI_MINOR 0u

#define WB_HANDLER(type, function) { type, function, NULL }
#define WB_BATCH_HANDLER(type, function) { type, NULL, function }

/** Types are compared by their full names, without assemblies, byte for byte. Define the
 *  module's table; once a module, at file level:
 *  `WB_HANDLERS(WB_HANDLER("A.B", f), WB_BATCH_HANDLER("A.C", g))` */
#ifdef __cplusplus
#define WB_HANDLERS_LINKAGE extern "C"
#else
#define WB_HANDLERS_LINKAGE
#endif
#define WB_HANDLERS(...)                                                                           \
    WB_HANDLERS_LINKAGE WB_EXPORT const wb_handler_module *wb_handlers(void);                      \
    const wb_handler_module *wb_handlers(void)                                                     \
    {                                                                                              \
        static const wb_handler handlers[] = { __VA_ARGS__ };                                      \
        static const wb_handler_module module = { sizeof(wb_handler_module),                       \
                                                  WB_HANDLER_ABI_MAJOR,                            \
                                                  WB_HANDLER_ABI_MINOR,                            \
                                                  sizeof(wb_handler),                              \
                                                  sizeof handlers / sizeof handlers[0],            \
                                                  handlers };                                      \
        return &module;                                                                            \
    }

#ifdef __cplusplus
}
#endif
#endif
