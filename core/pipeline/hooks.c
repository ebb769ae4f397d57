/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/pipeline/hooks.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/arena.h"
#include "core/base/log.h"
#include "core/base/thread.h"
#include "core/pipeline/call.h"

/* One call, and all that its context can tell. */
typedef struct {
    wb_call call; /* first: what wb_call_of() finds is ours */
    wb_hook hook;
    const wb_endpoint_config *config;
    void *module_data;
    void *worker_data;
    /* What is called, one of them or none. */
    wb_check_fn check;
    wb_open_fn open;
    wb_close_fn close;
    void **ret_data; /* for open */
    void *data;      /* for close */
    int result;
} hook_call;

static hook_call *call_of(wb_context *ctx, const char *function)
{
    return (hook_call *)wb_call_of(ctx, function);
}

/* ---- what a hook's context does ----------------------------------------------------------- */

static int hook_outgoing(wb_context *ctx, int kind, const wb_outgoing *outgoing, size_t size)
{
    const hook_call *call = call_of(ctx, wb_call_name(kind));
    (void)outgoing, (void)size;
    return !call ? WB_REJECT
                 : wb_error_set(call->call.error, WB_REJECT, WB_CAUSE_OTHER, 0,
                                "a hook cannot send: there is no message and no transaction");
}

static const void *hook_storage(wb_context *ctx, const char *name, void **ret_session, size_t *ret_item)
{
    (void)call_of(ctx, name), (void)ret_session, (void)ret_item;
    return NULL;
}

static int fail(wb_context *ctx, const char *function, int result, const char *reason)
{
    const hook_call *call = call_of(ctx, function);
    return call ? wb_error_set(call->call.error, result, WB_CAUSE_OTHER, 0, "%s", reason) : WB_REJECT;
}

static int hook_failure(wb_context *ctx, int result, const char *reason)
{
    return fail(ctx, "wb_fail", result, reason);
}

static int hook_give_up(wb_context *ctx, const char *queue, const char *reason)
{
    return fail(ctx, queue ? "wb_move_to" : "wb_discard", WB_REJECT, reason);
}

static int hook_retry_after(wb_context *ctx, int64_t delay, const char *reason)
{
    (void)delay;
    return fail(ctx, "wb_retry_after", WB_RETRY, reason);
}

static void hook_log(wb_context *ctx, int level, const char *text)
{
    const hook_call *call = call_of(ctx, "wb_log");
    if (call)
        wb_log_event(level, text, { "endpoint", call->config->name });
}

static const char *hook_endpoint_name(wb_context *ctx)
{
    const hook_call *call = call_of(ctx, "wb_endpoint_name");
    return call ? call->config->name : "";
}

static const wb_setting_entry *hook_settings(wb_context *ctx, size_t *ret_count)
{
    const hook_call *call = call_of(ctx, "wb_setting");
    *ret_count = call ? call->config->setting_count : 0;
    return call ? call->config->settings : NULL;
}

static void *hook_data(wb_context *ctx, int whose)
{
    const hook_call *call = call_of(ctx, whose == WB_DATA_WORKER ? "wb_worker_data" : "wb_module_data");
    return !call                      ? NULL
           : whose == WB_DATA_MODULE ? call->module_data
           : whose == WB_DATA_WORKER ? call->worker_data
                                     : NULL;
}

static const wb_handler_api hook_api = {
    .struct_size = sizeof(wb_handler_api),
    .outgoing = hook_outgoing,
    .storage = hook_storage,
    .failure = hook_failure,
    .log = hook_log,
    .endpoint_name = hook_endpoint_name,
    .give_up = hook_give_up,
    .retry_after = hook_retry_after,
    .settings = hook_settings,
    .data = hook_data,
};

/* ---- calls -------------------------------------------------------------------------------- */

/* What a hook returned counts; what it said last is the reason. */
static int judge(int result, const char *hook, wb_error *error)
{
    if (result == WB_OK)
        return WB_OK;
    if (!error->text[0])
        (void)snprintf(error->text, sizeof error->text, "its hook %s returned %d", hook, result);
    error->result = result == WB_NOT_CONNECTED || result == WB_RETRY ? result : WB_FATAL;
    error->cause = result == WB_NOT_CONNECTED ? WB_CAUSE_UNREACHABLE
                   : result == WB_RETRY       ? WB_CAUSE_SERVER
                                              : WB_CAUSE_CONFIG;
    return error->result;
}

static void call_function(void *argument)
{
    hook_call *h = argument;
    if (h->check)
        h->result = h->check(h->call.context);
    if (h->open)
        h->result = h->open(h->call.context, h->ret_data);
    if (h->close)
        h->close(h->call.context, h->data);
}

/* As a handler is called; and what it changed of the thread is put back. */
static int call_hook(const wb_hooks *hooks, const wb_loaded_module *module, const wb_kept *kept, hook_call *h,
                     wb_error *error)
{
    wb_thread_own own;
    int cancellation;
    if (!h->check && !h->open && !h->close)
        return WB_OK;
    wb_error_clear(error);
    h->config = hooks->config;
    h->hook.module = module->path;
    h->hook.endpoint = hooks->config->name;
    h->hook.contexts = kept->contexts;
    h->call.hook = &h->hook;
    h->call.error = error;
    wb_thread_remember(&own);
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancellation); /* as on workers: it would end its caller */
    wb_call_begin(&h->call, &hook_api, h->hook.name);
    wb_call_guard(call_function, h);
    wb_call_end(&h->call);
    wb_thread_put_back(&own);
    (void)pthread_setcancelstate(cancellation, NULL);
    return judge(h->result, h->hook.name, error);
}

static int check(const wb_hooks *hooks, const wb_loaded_module *module, wb_error *error)
{
    hook_call call = { .hook.name = "check", .check = module->check };
    return call_hook(hooks, module, &hooks->kept, &call, error);
}

static int open_one(const wb_hooks *hooks, const wb_loaded_module *module, void **ret_data, wb_error *error)
{
    hook_call call = { .hook.name = "open", .open = module->open, .ret_data = ret_data };
    *ret_data = NULL;
    return call_hook(hooks, module, &hooks->kept, &call, error);
}

static void close_one(const wb_hooks *hooks, const wb_loaded_module *module, void *data)
{
    wb_error ignored;
    hook_call call = { .hook.name = "close", .close = module->close, .data = data, .module_data = data };
    (void)call_hook(hooks, module, &hooks->kept, &call, &ignored);
}

static int open_for_worker(const wb_hooks *hooks, wb_kept *worker, size_t at, wb_error *error)
{
    const wb_loaded_module *module = &hooks->handlers->modules[at];
    hook_call call = { .hook.name = "worker_open", .open = module->worker_open, .ret_data = &worker->data[at],
                       .module_data = wb_kept_data(&hooks->kept, at) };
    worker->data[at] = NULL;
    return call_hook(hooks, module, worker, &call, error);
}

static void close_for_worker(const wb_hooks *hooks, const wb_kept *worker, size_t at)
{
    wb_error ignored;
    const wb_loaded_module *module = &hooks->handlers->modules[at];
    hook_call call = { .hook.name = "worker_close", .close = module->worker_close, .data = worker->data[at],
                       .module_data = wb_kept_data(&hooks->kept, at), .worker_data = worker->data[at] };
    (void)call_hook(hooks, module, worker, &call, &ignored);
}

/* ---- an endpoint -------------------------------------------------------------------------- */

void wb_hooks_init(wb_hooks *hooks, const wb_endpoint_config *config, const wb_handler_set *handlers)
{
    *hooks = (wb_hooks){ .config = config, .handlers = handlers };
    wb_kept_init(&hooks->kept, handlers, handlers && handlers->module_count ? wb_contexts_take(config->name) : NULL);
}

void wb_hooks_free(wb_hooks *hooks)
{
    wb_contexts_give_back(hooks->kept.contexts);
    wb_kept_free(&hooks->kept);
}

#define SETTINGS_SIZE 48

/* Of its settings nobody but the module knows which one is wrong. */
static const char *say_settings(const wb_endpoint_config *config, char text[SETTINGS_SIZE])
{
    const wb_conf_origin settings = WB_CONFIG_ORIGIN(config, setting_map);
    text[0] = '\0';
    if (settings.is_set)
        (void)snprintf(text, SETTINGS_SIZE, " (its settings are in line %d)", settings.line);
    return text;
}

static int say_where(const wb_endpoint_config *config, const wb_loaded_module *module, wb_error *error)
{
    const wb_error why = *error;
    char settings[SETTINGS_SIZE];
    return wb_error_set(error, why.result, why.cause, why.native_code, "%s:%d: handler module \"%.300s\": %.500s%s",
                        module->at.file, module->at.line, module->path, why.text, say_settings(config, settings));
}

int wb_hooks_check(const wb_hooks *hooks, wb_problems *problems, wb_error *error)
{
    const wb_endpoint_config *config = hooks->config;
    char settings[SETTINGS_SIZE];
    wb_error why;
    wb_error_clear(error);
    for (size_t i = 0; i < hooks->handlers->module_count; i++) {
        const wb_loaded_module *module = &hooks->handlers->modules[i];
        if (check(hooks, module, &why) == WB_OK)
            continue;
        wb_problems_add(problems, WB_LOG_ERROR, module->at, "endpoint \"%s\": handler module \"%s\": %s%s", config->name,
                        module->path, why.text, say_settings(config, settings));
        if (error->result == WB_OK)
            *error = why;
    }
    return error->result;
}

int wb_hooks_approve(const wb_hooks *hooks, wb_error *error)
{
    for (size_t i = 0; i < hooks->handlers->module_count; i++)
        if (check(hooks, &hooks->handlers->modules[i], error) != WB_OK)
            return say_where(hooks->config, &hooks->handlers->modules[i], error);
    return WB_OK;
}

int wb_hooks_open(wb_hooks *hooks, wb_error *error)
{
    if (hooks->is_open || !hooks->handlers)
        return WB_OK;
    hooks->is_open = 1;
    for (size_t i = 0; i < hooks->handlers->module_count; i++) {
        const wb_loaded_module *module = &hooks->handlers->modules[i];
        if (open_one(hooks, module, &hooks->kept.data[i], error) != WB_OK) {
            wb_hooks_close(hooks);
            return say_where(hooks->config, module, error);
        }
        hooks->kept.open_count++;
    }
    return WB_OK;
}

void wb_hooks_close(wb_hooks *hooks)
{
    while (hooks->kept.open_count) {
        const size_t at = --hooks->kept.open_count;
        close_one(hooks, &hooks->handlers->modules[at], hooks->kept.data[at]);
    }
    hooks->is_open = 0;
}

/* ---- a worker ----------------------------------------------------------------------------- */

void wb_kept_init(wb_kept *worker, const wb_handler_set *handlers, wb_contexts *contexts)
{
    *worker = (wb_kept){ .contexts = contexts };
    if (handlers && handlers->module_count)
        worker->data = wb_alloc_zero(handlers->module_count, sizeof *worker->data);
}

void wb_kept_free(wb_kept *worker)
{
    free(worker->data);
    worker->data = NULL;
}

int wb_hooks_worker_open(const wb_hooks *hooks, wb_kept *worker, wb_error *error)
{
    for (size_t i = 0; hooks->handlers && i < hooks->handlers->module_count; i++) {
        if (open_for_worker(hooks, worker, i, error) != WB_OK) {
            const wb_error why = *error;
            wb_hooks_worker_close(hooks, worker);
            return wb_error_set(error, WB_FATAL, why.cause, 0, "handler module \"%.300s\" does not open for a worker: %.600s",
                                hooks->handlers->modules[i].path, why.text);
        }
        worker->open_count++;
    }
    return WB_OK;
}

void wb_hooks_worker_close(const wb_hooks *hooks, wb_kept *worker)
{
    while (worker->open_count)
        close_for_worker(hooks, worker, --worker->open_count);
}

void *wb_kept_data(const wb_kept *kept, size_t module_at)
{
    return module_at < kept->open_count ? kept->data[module_at] : NULL;
}

const wb_setting_entry *wb_hooks_settings(const wb_hooks *hooks, size_t *ret_count)
{
    *ret_count = hooks->config ? hooks->config->setting_count : 0;
    return hooks->config ? hooks->config->settings : NULL;
}
