/* SPDX-License-Identifier: Apache-2.0
 *
 * A handler module with hooks, built as MODULE "one" and "two"; the second also takes what no other
 * handler does. Each call is a line in the file WB_TRACE: "MODULE HOOK ENDPOINT", of a handler
 * "MODULE handle ENDPOINT ID TYPE". What is not as waybill/handler.h promises is a line with WRONG.
 *
 * Settings: limit is a number, or check refuses; refuse_open and refuse_worker name a module that
 * then refuses to open; refuse_until names a file that ends that; misdo is "MODULE HOOK DEED", what that hook
 * does wrong; with change = "yes" all hooks change what is their thread's.
 */
#include "config.h"

#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <waybill/handler.h>
#include <waybill/sqlite.h>

#ifndef MODULE_TAKES_OTHERS
#define MODULE_TAKES_OTHERS 0
#endif

typedef struct {
    char name[16];
    pthread_t thread;
} kept;

static __attribute__((format(printf, 1, 2))) void trace(const char *format, ...)
{
    char line[800];
    const char *path = getenv("WB_TRACE");
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    int file = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (file < 0)
        return;
    if (write(file, line, (size_t)size) < 0)
        abort();
    close(file);
}

static void tell(wb_context *ctx, const char *hook)
{
    trace(MODULE " %s %s\n", hook, wb_endpoint_name(ctx));
}

static int is_child; /* where nothing is promised but its end */

static void expect(int holds, const char *what)
{
    if (!holds && !is_child)
        trace("WRONG " MODULE " %s\n", what);
}

/* Whether it is what this module kept, on the thread on which it did. */
static void expect_kept(const kept *data, const char *name, int is_same_thread)
{
    expect(data && strcmp(data->name, name) == 0, name);
    expect(data && !pthread_equal(data->thread, pthread_self()) == !is_same_thread, "thread");
}

static kept *keep(const char *name)
{
    kept *data = calloc(1, sizeof *data);
    if (!data)
        abort();
    (void)snprintf(data->name, sizeof data->name, "%s", name);
    data->thread = pthread_self();
    return data;
}

static int is_set(wb_context *ctx, const char *name, const char *value)
{
    const char *setting = wb_setting(ctx, name);
    return setting && strcmp(setting, value) == 0;
}

/* Whether the setting names this module, and the file that ends that is not there. */
static int is_refused(wb_context *ctx, const char *setting)
{
    const char *until = wb_setting(ctx, "refuse_until");
    return is_set(ctx, setting, MODULE) && !(until && access(until, F_OK) == 0);
}

/* Nothing of a message or a transaction is there. */
static void expect_no_message(wb_context *ctx)
{
    expect(!wb_sqlite(ctx), "storage in a hook");
    expect(wb_send(ctx, &(wb_outgoing){ .type = "T", .destination = "sink" }) == WB_REJECT, "send in a hook");
}

/* ---- what a hook does wrong ----------------------------------------------------------------- */

static sem_t is_late;
static pthread_t late_thread;
static int has_late_thread;

static void *use_late(void *context)
{
    (void)sem_wait(&is_late);
    wb_log(context, WB_LOG_INFO, "a line in a stranger's name");
    trace(MODULE " late %d \"%s\"\n", wb_fail(context, WB_OK, "nothing"), wb_endpoint_name(context));
    return NULL;
}

static void keep_context(wb_context *ctx)
{
    has_late_thread = sem_init(&is_late, 0, 0) == 0 && pthread_create(&late_thread, NULL, use_late, ctx) == 0;
}

/* Long after that hook has returned. */
static void release_late_thread(void)
{
    if (!has_late_thread)
        return;
    has_late_thread = 0;
    (void)sem_post(&is_late);
    (void)pthread_join(late_thread, NULL);
}

/* Returns in the child, too. */
static void become_two(void)
{
    int status = 0;
    pid_t child = fork();
    is_child = child == 0;
    if (is_child)
        (void)alarm(60); /* whatever it does then */
    else if (waitpid(child, &status, 0) == child)
        trace(MODULE " child %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

static void misdo(wb_context *ctx, const char *hook)
{
    char who[64];
    const char *deed = wb_setting(ctx, "misdo");
    int size = snprintf(who, sizeof who, MODULE " %s ", hook);
    if (!deed || strncmp(deed, who, (size_t)size) != 0)
        return;
    deed += size;
    if (strcmp(deed, "exit") == 0)
        exit(0);
    if (strcmp(deed, "leave") == 0)
        pthread_exit(NULL);
    if (strcmp(deed, "cancel") == 0) {
        pthread_cancel(pthread_self());
        pthread_testcancel();
    }
    if (strcmp(deed, "fork") == 0)
        become_two();
    if (strcmp(deed, "keep") == 0)
        keep_context(ctx);
}

static void change_thread(wb_context *ctx)
{
    sigset_t signals;
    if (!is_set(ctx, "change", "yes"))
        return;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    (void)pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
    (void)uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
}

/* Whatever a hook changed: where modules open and handle SIGTERM is blocked, and the locale is the process's. */
static void expect_thread(void)
{
    sigset_t blocked;
    (void)pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    expect(sigismember(&blocked, SIGTERM) == 1, "signals of the thread");
    expect(uselocale((locale_t)0) == LC_GLOBAL_LOCALE, "locale of the thread");
}

static void begin(wb_context *ctx, const char *hook)
{
    if (strcmp(hook, "check") != 0 && strcmp(hook, "close") != 0) /* which start no threads */
        expect_thread();
    change_thread(ctx);
    tell(ctx, hook);
    misdo(ctx, hook);
}

/* ---- hooks ---------------------------------------------------------------------------------- */

static int check(wb_context *ctx)
{
    size_t count = 0;
    const wb_setting_entry *settings = wb_settings(ctx, &count);
    const char *limit = wb_setting(ctx, "limit");
    begin(ctx, "check");
    expect(count == 0 || settings, "settings");
    expect(!wb_setting(ctx, "absent") && !wb_module_data(ctx) && !wb_worker_data(ctx), "check");
    if (limit && !atoi(limit))
        return wb_fail(ctx, WB_FATAL, "the setting \"limit\" = \"%s\" is no number", limit);
    return WB_OK;
}

static int open_module(wb_context *ctx, void **ret_data)
{
    begin(ctx, "open");
    expect(!*ret_data && !wb_module_data(ctx), "open");
    expect_no_message(ctx);
    wb_log(ctx, WB_LOG_INFO, "module " MODULE " opens");
    if (is_refused(ctx, "refuse_open"))
        return wb_fail(ctx, WB_NOT_CONNECTED, "the bank does not answer");
    *ret_data = keep("module");
    return WB_OK;
}

static int open_worker(wb_context *ctx, void **ret_data)
{
    expect_kept(wb_module_data(ctx), "module", 0);
    expect(!*ret_data && !wb_worker_data(ctx), "worker_open");
    expect_no_message(ctx);
    if (is_refused(ctx, "refuse_worker")) {
        tell(ctx, "worker_refused");
        return wb_fail(ctx, WB_RETRY, "not yet");
    }
    begin(ctx, "worker_open");
    *ret_data = keep("worker");
    return WB_OK;
}

static void close_worker(wb_context *ctx, void *data)
{
    begin(ctx, "worker_close");
    expect_kept(wb_module_data(ctx), "module", 0);
    expect(wb_worker_data(ctx) == data, "worker_close");
    expect_kept(data, "worker", 1);
    free(data);
}

static void close_module(wb_context *ctx, void *data)
{
    begin(ctx, "close");
    expect(wb_module_data(ctx) == data && !wb_worker_data(ctx), "close");
    expect_kept(data, "module", 1);
    free(data);
}

static void note(wb_context *ctx, const wb_message *message)
{
    expect_thread();
    release_late_thread();
    trace(MODULE " handle %s %s %s\n", wb_endpoint_name(ctx), message->id, message->type);
    expect_kept(wb_module_data(ctx), "module", 0);
    expect_kept(wb_worker_data(ctx), "worker", 1);
    expect(message->body && (message->body_size || !*(const char *)message->body), "body");
    expect(!message->key || message->key_size, "key");
}

static int handle(wb_context *ctx, const wb_message *message)
{
    note(ctx, message);
    return WB_OK;
}

#if MODULE_TAKES_OTHERS
static int handle_others(wb_context *ctx, const wb_message *const *messages, size_t count)
{
    for (size_t i = 0; i < count; i++)
        note(ctx, messages[i]);
    return WB_OK;
}
#define OTHERS , WB_BATCH_HANDLER("*", handle_others)
#else
#define OTHERS
#endif

WB_MODULE(WB_HOOKS(.check = check, .open = open_module, .worker_open = open_worker, .worker_close = close_worker,
                   .close = close_module),
          WB_HANDLER("Hooks." MODULE, handle) OTHERS)
