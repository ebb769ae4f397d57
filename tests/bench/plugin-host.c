/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/bench/plugin-host.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/common.h"

/* ---- the host ------------------------------------------------------------- */

static int host_fail(const wb_host *host, wb_error *error, int result, int cause,
                     int64_t native_code, const char *format, ...) WB_PRINTF(6, 7);
static int host_fail(const wb_host *host, wb_error *error, int result, int cause,
                     int64_t native_code, const char *format, ...)
{
    va_list arguments;
    (void)host, (void)cause, (void)native_code;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    return result;
}

static void host_log(const wb_host *host, int level, const char *text, const wb_field *fields,
                     size_t count)
{
    (void)host, (void)fields, (void)count;
    if (level <= WB_LOG_WARNING)
        fprintf(stderr, "%s: %s\n", program_invocation_short_name, text);
}

static void host_crash_point(const char *name)
{
    (void)name;
}

const wb_host bench_host = { .struct_size = sizeof bench_host,
                             .fail = host_fail,
                             .log = host_log,
                             .now = bench_now,
                             .crash_point = host_crash_point };

/* ---- options -------------------------------------------------------------- */

static int64_t scale(const char *unit)
{
    static const struct {
        const char *name;
        int64_t factor;
    } units[] = { { "", 1 },
                  { "ns", 1 },
                  { "us", 1000 },
                  { "ms", 1000000 },
                  { "s", 1000000000 },
                  { "min", INT64_C(60000000000) },
                  { "m", INT64_C(60000000000) },
                  { "h", INT64_C(3600000000000) },
                  { "d", INT64_C(86400000000000) },
                  { "B", 1 },
                  { "KiB", 1024 },
                  { "MiB", 1048576 },
                  { "GiB", 1073741824 } };
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(unit, units[i].name) == 0)
            return units[i].factor;
    bench_die("unknown unit \"%s\"", unit);
}

static int64_t parse_amount(const char *text)
{
    char *unit = NULL;
    int64_t amount = strtoll(text, &unit, 10);
    return amount * scale(unit + strspn(unit, " "));
}

static int32_t parse_choice(const wb_option *option, const char *text)
{
    for (int32_t i = 0; option->choices[i]; i++)
        if (strcmp(option->choices[i], text) == 0)
            return i;
    bench_die("%s: \"%s\" is no choice", option->name, text);
}

static void set_option(const wb_option *option, char *config, const char *text)
{
    void *field = config + option->offset;
    if ((option->flags & WB_OPTION_SECRET) && strncmp(text, "env:", 4) == 0)
        text = bench_setting(text + 4, "");
    if (option->type == WB_OPTION_STRING || option->type == WB_OPTION_PATH) /* those that are handed over here are absolute */
        memcpy(field, &text, sizeof text);
    else if (option->type == WB_OPTION_BOOLEAN)
        memcpy(field, &(int32_t){ strcmp(text, "true") == 0 }, sizeof(int32_t));
    else if (option->type == WB_OPTION_CHOICE)
        memcpy(field, &(int32_t){ parse_choice(option, text) }, sizeof(int32_t));
    else if (option->type == WB_OPTION_INTEGER || option->type == WB_OPTION_DURATION
             || option->type == WB_OPTION_SIZE)
        memcpy(field, &(int64_t){ parse_amount(text) }, sizeof(int64_t));
}

static const wb_option *option_at(const wb_plugin *plugin, size_t i)
{
    return (const wb_option *)((const char *)plugin->options + i * plugin->option_stride);
}

void *bench_plugin_config(const wb_plugin *plugin, char *settings)
{
    char *config = calloc(1, plugin->config_size + 1);
    if (!config)
        bench_die("out of memory");
    for (size_t i = 0; i < plugin->option_count; i++)
        if (option_at(plugin, i)->default_text)
            set_option(option_at(plugin, i), config, option_at(plugin, i)->default_text);
    for (char *pair = strtok(settings, ","); pair; pair = strtok(NULL, ",")) {
        char *value = strchr(pair, '=');
        size_t i = 0;
        if (!value)
            bench_die("\"%s\" is not OPTION=VALUE", pair);
        *value++ = '\0';
        while (i < plugin->option_count && strcmp(option_at(plugin, i)->name, pair) != 0)
            i++;
        if (i == plugin->option_count)
            bench_die("the plugin has no option \"%s\"", pair);
        set_option(option_at(plugin, i), config, value);
    }
    return config;
}

const wb_plugin *bench_load_plugin(const char *path)
{
    const wb_plugin *(*entry)(void);
    char symbol[128];
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library)
        bench_die("%s", dlerror());
    snprintf(symbol, sizeof symbol, "%.*s_LTX_wb_plugin", (int)strcspn(name, "."), name);
    void *found = dlsym(library, symbol);
    if (!found)
        bench_die("%s", dlerror());
    memcpy(&entry, &found, sizeof entry);
    return entry();
}
