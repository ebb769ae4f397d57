/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/base/host.h"

#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/base/log.h"

#define FIELDS_MAX 16

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

void wb_host_init(wb_host_instance *instance, const char *endpoint_name, const char *plugin_name)
{
    instance->host = (wb_host){
        .struct_size = sizeof(wb_host),
        .fail = host_fail,
        .log = host_log,
        .now = wb_clock_monotonic,
        .crash_point = host_crash_point,
    };
    instance->endpoint_name = endpoint_name;
    instance->plugin_name = plugin_name;
}
