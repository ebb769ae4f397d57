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
 * Sizes of what is handed over are explained in waybill/message.h: WB_TEXT stands for
 * "up to the NUL byte", and 0 for "empty".
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
 * not exit, and must not throw or longjmp across its caller. What becomes of one that
 * does this, or something else that is wrong, is a table in waybill-handler(7).
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
 *  until the handler returns, on the thread that called it, and not in a child of fork(). Used
 *  later or elsewhere it is refused: the call does nothing and answers WB_REJECT, NULL (no storage
 *  session) or "" (wb_endpoint_name()), and a line in the log names it. The memory stays: a
 *  context is another call's after 1,000 further ones of its thread at the earliest. (Hooks get one, too; it is described there.) */
typedef struct wb_context wb_context;

/** One `name = "value";` of the group `settings` of an endpoint: both are texts. Fixed for ever. */
typedef struct wb_setting_entry {
    const char *name;
    const char *value;
} wb_setting_entry;

/* Kinds of outgoing operation (wb_handler_api.outgoing). */
#define WB_KIND_SEND 1
#define WB_KIND_PUBLISH 2
#define WB_KIND_REPLY 3

/* Whose data (wb_handler_api.data). */
#define WB_DATA_MODULE 1
#define WB_DATA_WORKER 2

/** The table behind the functions below. Size first, append-only.
 *  Change log: 1.0 first version. */
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
    /** NULL where there are none. */
    const wb_setting_entry *(*settings)(wb_context *ctx, size_t *ret_count);
    /** What the calling module's hook left: WB_DATA_x. */
    void *(*data)(wb_context *ctx, int whose);
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
 *  @return WB_OK, or WB_REJECT when the operation is malformed, asks for what this host does
 *  not know, or is over a limit (the reason is kept for the error queue). */
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

/** All settings of the endpoint, in the order of the file: `settings = { rate = "5"; };`. Those that
 *  were written as "env:NAME" or "file:PATH" are what that named. Valid until the module is closed. */
static inline const wb_setting_entry *wb_settings(wb_context *ctx, size_t *ret_count)
{
    return ctx->api->settings(ctx, ret_count);
}

/** One of them, a text, or NULL: it is not set. */
static inline const char *wb_setting(wb_context *ctx, const char *name)
{
    size_t count = 0;
    const wb_setting_entry *settings = wb_settings(ctx, &count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(settings[i].name, name) == 0)
            return settings[i].value;
    return NULL;
}

/** What this module's hook `open` left for the endpoint; NULL: nothing, or in a program's session. */
static inline void *wb_module_data(wb_context *ctx)
{
    return ctx->api->data(ctx, WB_DATA_MODULE);
}

/** What its hook `worker_open` left for the worker whose thread this is; NULL likewise. */
static inline void *wb_worker_data(wb_context *ctx)
{
    return ctx->api->data(ctx, WB_DATA_WORKER);
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
 *  handler may be asked once more, alone. @return WB_UNRECOVERABLE, to be returned. */
static inline int wb_discard(wb_context *ctx, const char *reason)
{
    return ctx->api->give_up(ctx, NULL, reason);
}

/** The same as WB_UNRECOVERABLE with a reason, but to an error queue of the handler's choice:
 *  `return wb_move_to(ctx, "orders.review", "the amount is odd");`. The queue must be there (one
 *  that `recoverability.types` names is made by waybill install); if it is not, the message goes to the ordinary one. @return WB_UNRECOVERABLE, to be returned. */
static inline int wb_move_to(wb_context *ctx, const char *queue, const char *reason)
{
    return ctx->api->give_up(ctx, queue, reason);
}

/** Have the message tried again after a time of the handler's choice, and not at once:
 *  `return wb_retry_after(ctx, 10 * WB_MINUTES, "the bank is closed");`. It is a delayed retry like
 *  those of the configuration, but for its delay (more than 0, at most 3650 days; no jitter): it counts as one
 *  of `delayed_retries`, and is made where these are (not on Kafka for a message with a key, unless
 *  `on_failure` is "delay"; nowhere with "block"). When none is left, or none is made, the message goes to the error queue. Stay below
 *  `outbox.retention` (7 days): who is handled while another copy of it waits for longer (a producer's, or the broker's after a crash) is
 *  known no more when that comes, and handled twice. As with WB_UNRECOVERABLE the handler may be asked once more, alone.
 *  @return WB_RETRY, to be returned. */
static inline int wb_retry_after(wb_context *ctx, int64_t delay, const char *reason)
{
    return ctx->api->retry_after(ctx, delay, reason);
}

/** Write a line to the endpoint's log; endpoint, type and message id are added (of several messages no id). */
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

/** One row of a module's table. Made by WB_HANDLER and WB_BATCH_HANDLER. Walked by
 *  wb_handler_module.handler_stride, append-only: a host reads of a row what both know, what a
 *  shorter row lacks counts as 0, and what a longer one has beyond is passed over. Change log: 1.0
 *  first version. */
typedef struct wb_handler {
    const char *type;
    wb_handler_fn one;
    wb_batch_handler_fn batch;
} wb_handler;

/* ---- hooks -------------------------------------------------------------------------------
 *
 * What a module does beside handling messages, all of it optional: have its settings checked, open
 * what it keeps for the endpoint (a pool, a cache) or for a worker (a connection to a third party),
 * and close that.
 *
 *     static int open_orders(wb_context *ctx, void **ret_data)
 *     {
 *         const char *url = wb_setting(ctx, "bank_url");
 *         if (!url)
 *             return wb_fail(ctx, WB_FATAL, "the setting \"bank_url\" is missing");
 *         *ret_data = bank_open(url);
 *         return *ret_data ? WB_OK : wb_fail(ctx, WB_NOT_CONNECTED, "the bank does not answer");
 *     }
 *     static void close_orders(wb_context *ctx, void *data)
 *     {
 *         (void)ctx;
 *         bank_close(data);
 *     }
 *     WB_MODULE(WB_HOOKS(.open = open_orders, .close = close_orders),
 *               WB_HANDLER("Sales.PlaceOrder", place_order))
 *
 * and in place_order() wb_module_data(ctx) is what open_orders() left.
 *
 *   check          main thread; by `waybill check`; by `waybill run` for all endpoints before any of them
 *                  asks a server; by wb_endpoint_run() before it does; by any verb where the file has errors
 *   open           main thread; once an endpoint, when its broker and its database were seen to be
 *                  ready, before any endpoint of the process handles a message (one that waits for its
 *                  servers, `start = "wait"`: when these are there). Nothing else of the process starts,
 *                  or is looked after, while it runs
 *     worker_open  the worker's thread, before it connects; for each of `concurrency` workers
 *       handlers
 *     worker_close the same thread, after its last message; its connections are still open if they were
 *   close          main thread, after the last worker_close
 *
 * In libwaybill the main thread is the one that calls wb_endpoint_run().
 *
 * Pairs. A close belongs to each open that returned WB_OK, and to no other. Modules are opened in
 * the order in which the file names them and closed in the reverse order, also when one of them
 * refuses: then those before it are closed. A worker that ends and is started again (an endpoint
 * that gave up) is closed and opened anew, on another thread, while the module stays open. Nothing is
 * closed where the process ends at once: a crash, a kill, a stop that takes longer than
 * `shutdown_timeout`. worker_close has what is left of that time, close a second at least.
 *
 * Failures. Any result but WB_OK refuses; wb_fail() says why.
 *   check, open   end the start, with the line of the file that names the module. Exit code of
 *                 `waybill run`: 69 for WB_NOT_CONNECTED, 75 for WB_RETRY, else 78. But with
 *                 `start = "wait"` WB_NOT_CONNECTED and WB_RETRY of open are waited for as a server
 *                 that is not there: all its modules are opened again after a pause of 1 s to 30 s. Once it
 *                 has waited, another result must stay for 10 s to be believed
 *   worker_open   the worker gives up: the endpoint goes on with the others, and it is started again,
 *                 as `on_endpoint_failure` says
 *
 * The context is the hook's until it returns. It is for wb_fail(), wb_log(), wb_endpoint_name(),
 * wb_settings(), wb_setting(); in worker hooks and close for wb_module_data(), too, and in worker_close
 * for wb_worker_data(). There is no message and no transaction: wb_send(), wb_publish() and wb_reply()
 * are WB_REJECT, wb_pgsql() and its like NULL.
 *
 * A hook is under the rules of a handler: it must not exit, and must not throw or longjmp across its caller. What it does
 * wrong is met in the same way (the table in waybill-handler(7)): one that ends its thread or the process is named and takes the
 * process along with 70, a child of fork() that returns from it ends there, its context is refused later and elsewhere, and
 * signals that it blocks or unblocks and uselocale() are put back when it returns.
 *
 * A module that several endpoints of a file name is loaded once and opened for each. Threads that a
 * hook starts take no signals, do not use a context, and end in close. */

/** Are the settings right? No network, nothing is changed or kept. */
typedef int (*wb_check_fn)(wb_context *ctx);
/** Open; *ret_data (NULL before) is kept for wb_module_data() or wb_worker_data(), and for the close. */
typedef int (*wb_open_fn)(wb_context *ctx, void **ret_data);
typedef void (*wb_close_fn)(wb_context *ctx, void *data);

/** What a module exports. Made by WB_HANDLERS or WB_MODULE. Size first, append-only; that of 1.0 is the
 *  shortest that is taken. Change log: 1.0 first version. */
typedef struct wb_handler_module {
    size_t struct_size;
    uint32_t abi_major;
    uint32_t abi_minor_needed;
    size_t handler_stride; /* sizeof(wb_handler), where the module was built */
    size_t handler_count;
    const wb_handler *handlers;
    /* Hooks, or NULL. */
    wb_check_fn check;
    wb_open_fn open;
    wb_open_fn worker_open;
    wb_close_fn worker_close;
    wb_close_fn close;
} wb_handler_module;

#define WB_HANDLER_ABI_MAJOR 1u
#define WB_HANDLER_ABI_MINOR 0u

/** `type` is compared with the names of a message's types without assemblies, byte for byte. An
 *  endpoint has one handler for a type.
 *
 *  "*" stands for all others: its handler gets each message none of whose types has a handler, and
 *  each that names no type. Once, whatever types it names; wb_message.type tells the first. Nothing
 *  is subscribed to for it: it sees what comes into the queue. Control messages of the platform it does not get. */
#define WB_HANDLER(type, function) { type, function, NULL }
#define WB_BATCH_HANDLER(type, function) { type, NULL, function }

#ifdef __cplusplus
#define WB_HANDLERS_LINKAGE extern "C"
#else
#define WB_HANDLERS_LINKAGE
#endif

/** Hooks for WB_MODULE, by name: `WB_HOOKS(.open = f, .close = g)`. In C++ all five in their order,
 *  NULL for those there are not: check, open, worker_open, worker_close, close. */
#define WB_HOOKS(...) __VA_ARGS__

/** Define the module's table, which has one handler at least, and its hooks; once a module, at file level:
 *  `WB_MODULE(WB_HOOKS(.open = f), WB_HANDLER("A.B", g), WB_BATCH_HANDLER("A.C", h))` */
#define WB_MODULE(hooks, ...)                                                                      \
    WB_HANDLERS_LINKAGE WB_EXPORT const wb_handler_module *wb_handlers(void);                      \
    const wb_handler_module *wb_handlers(void)                                                     \
    {                                                                                              \
        static const wb_handler handlers[] = { __VA_ARGS__ };                                      \
        static const wb_handler_module module = { sizeof(wb_handler_module),                       \
                                                  WB_HANDLER_ABI_MAJOR,                            \
                                                  WB_HANDLER_ABI_MINOR,                            \
                                                  sizeof(wb_handler),                              \
                                                  sizeof handlers / sizeof handlers[0],            \
                                                  handlers,                                        \
                                                  hooks };                                         \
        return &module;                                                                            \
    }

/** The same without hooks:
 *  `WB_HANDLERS(WB_HANDLER("A.B", f), WB_BATCH_HANDLER("A.C", g))` */
#define WB_HANDLERS(...) WB_MODULE(WB_NO_HOOKS, __VA_ARGS__)
#define WB_NO_HOOKS NULL, NULL, NULL, NULL, NULL

#ifdef __cplusplus
}
#endif
#endif
