/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "conformance/kit.h"

#include <stdlib.h>
#include <string.h>

#include "core/plugin/capability.h"

static void skip_what_is_not_declared(wb_kit *kit)
{
    uint64_t lacking = kit->current->needs & ~kit->plugin->capabilities;
    char names[200];
    if (lacking)
        wb_kit_skip(kit, "%s does not declare %s", kit->plugin->name,
                    wb_capabilities_text(lacking, ", ", names, sizeof names));
}

static void run_cleanups(wb_kit *kit)
{
    while (kit->cleanup_count) {
        kit->cleanup_count--;
        kit->cleanups[kit->cleanup_count].function(kit->cleanups[kit->cleanup_count].argument);
    }
}

static void print_verdict(wb_kit *kit)
{
    const char *verdict = kit->is_failed ? "not ok" : "ok";
    (void)fprintf(kit->out, "%s %zu - %s", verdict, kit->number, kit->current->name);
    if (kit->skip_reason[0] && !kit->is_failed)
        (void)fprintf(kit->out, " # SKIP %s", kit->skip_reason);
    (void)fputc('\n', kit->out);
    (void)fflush(kit->out);
}

static void run_case(wb_kit *kit, const wb_kit_case *one)
{
    kit->current = one;
    kit->number++;
    kit->is_failed = 0;
    kit->skip_reason[0] = '\0';
    skip_what_is_not_declared(kit);
    if (!kit->skip_reason[0])
        one->run(kit);
    run_cleanups(kit);
    kit->failed += kit->is_failed != 0;
    kit->skipped += kit->skip_reason[0] && !kit->is_failed;
    print_verdict(kit);
}

static int is_wanted(const wb_kit *kit, const wb_kit_case *one)
{
    return !kit->options->only || strstr(one->name, kit->options->only);
}

size_t wb_kit_run(wb_kit *kit, const wb_kit_case *cases, size_t count)
{
    size_t wanted = 0;
    for (size_t i = 0; i < count; i++)
        wanted += is_wanted(kit, &cases[i]) != 0;
    if (wanted == 0) { /* a name that was mistyped may not look like success */
        (void)fprintf(kit->out, "Bail out! no case has \"%s\" in its name\n",
                      kit->options->only ? kit->options->only : "");
        return 1;
    }
    (void)fprintf(kit->out, "1..%zu\n", wanted);
    pthread_mutex_init(&kit->lock, NULL);
    for (size_t i = 0; i < count; i++)
        if (is_wanted(kit, &cases[i]))
            run_case(kit, &cases[i]);
    pthread_mutex_destroy(&kit->lock);
    (void)fprintf(kit->out, "# %s %s: %zu cases, %zu failed, %zu skipped\n", kit->plugin->name,
                  kit->plugin->version, kit->number, kit->failed, kit->skipped);
    return kit->failed;
}

int wb_kit_check(wb_kit *kit, int condition, const char *format, ...)
{
    va_list arguments;
    if (condition)
        return condition;
    pthread_mutex_lock(&kit->lock);
    kit->is_failed = 1;
    (void)fputs("# ", kit->out);
    va_start(arguments, format);
    (void)vfprintf(kit->out, format, arguments);
    va_end(arguments);
    (void)fputc('\n', kit->out);
    pthread_mutex_unlock(&kit->lock);
    return condition;
}

void wb_kit_skip(wb_kit *kit, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(kit->skip_reason, sizeof kit->skip_reason, format, arguments);
    va_end(arguments);
}

int wb_kit_lacks(wb_kit *kit, int is_there, const char *function)
{
    if (!is_there)
        wb_kit_skip(kit, "%s has no %s()", kit->plugin->name, function);
    return !is_there;
}

int wb_kit_is_servers_fault(int result, const wb_error *error)
{
    return result == WB_NOT_CONNECTED || result == WB_IN_DOUBT ||
           (result == WB_RETRY && error->cause == WB_CAUSE_SERVER);
}

void wb_kit_defer(wb_kit *kit, void (*function)(void *), void *argument)
{
    if (kit->cleanup_count == WB_KIT_CLEANUPS) /* a mistake in the kit itself */
        abort();
    kit->cleanups[kit->cleanup_count].function = function;
    kit->cleanups[kit->cleanup_count++].argument = argument;
}
