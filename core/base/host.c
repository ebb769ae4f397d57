/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/base/host.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/base/log.h"

#define FIELDS_MAX 16
#define EXPIRED_EVERY (60 * WB_SECOND)

static WB_PRINTF(6, 7) int host_fail(const wb_host *host, wb_error *error, int result, int cause,
                                     int64_t native_code, const char *format, ...)
{
    va_list arguments;
    (void)host;
    va_start(arguments, format);
    wb_error_set_v(error, result, cause, native_code, format, arguments);
    va_end(arguments);
    return result;
}

static void host_log(const wb_host *host, int level, const char *text, const wb_field *fields,
                     size_t count)
{
    const wb_host_instance *self = (const wb_host_instance *)host;
    wb_field all[FIELDS_MAX] = { { "endpoint", self->endpoint_name },
                                 { "plugin", self->plugin_name } };
    size_t used = 2;
    for (size_t i = 0; i < count && used < FIELDS_MAX; i++)
        all[used++] = fields[i];
    wb_log_write(level, text, all, used);
}

static void host_crash_point(const char *name)
{
    wb_crash_point(name);
}

static void say_expired(wb_host_instance *self)
{
    char count[24];
    uint64_t so_far = atomic_load(&self->expired);
    atomic_store(&self->expired_said, so_far);
    (void)snprintf(count, sizeof count, "%" PRIu64, so_far);
    wb_field fields[] = { { "count", count } };
    host_log(&self->host, WB_LOG_INFO, "messages expired before they were received, and are dropped", fields, 1);
}

/* One line a minute says how many there were, not one for each. */
static void host_expired(const wb_host *host, size_t count)
{
    wb_host_instance *self = (wb_host_instance *)(uintptr_t)host;
    int64_t now = wb_clock_monotonic(), due = atomic_load(&self->expired_due);
    (void)atomic_fetch_add(&self->expired, count);
    if (now >= due && atomic_compare_exchange_strong(&self->expired_due, &due, now + EXPIRED_EVERY))
        say_expired(self);
}

static void (*progress_watch)(uint64_t done, uint64_t total);

void wb_host_watch_progress(void (*watch)(uint64_t done, uint64_t total))
{
    progress_watch = watch;
}

static void host_progress(const wb_host *host, uint64_t done, uint64_t total)
{
    (void)host;
    if (progress_watch)
        progress_watch(done, total);
}

void wb_host_init(wb_host_instance *instance, const char *endpoint_name, const char *plugin_name)
{
    instance->host = (wb_host){
        .struct_size = sizeof(wb_host),
        .fail = host_fail,
        .log = host_log,
        .now = wb_clock_monotonic,
        .crash_point = host_crash_point,
        .expired = host_expired,
        .progress = host_progress,
    };
    instance->endpoint_name = endpoint_name;
    instance->plugin_name = plugin_name;
    atomic_init(&instance->expired, 0);
    atomic_init(&instance->expired_said, 0);
    atomic_init(&instance->expired_due, 0);
}

void wb_host_end(wb_host_instance *instance)
{
    if (atomic_load(&instance->expired) != atomic_load(&instance->expired_said))
        say_expired(instance);
}
