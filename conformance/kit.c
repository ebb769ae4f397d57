/* SPDX-License-Identifier: Apache-2.0
 *
 * What cases call.
 */
#include "config.h"

#include "conformance/kit.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sysexits.h>
#include <unistd.h>

#include "conformance/report.h"

static int contains_one(const char *name, const char *const *texts)
{
    while (texts && *texts && !strstr(name, *texts))
        texts++;
    return texts && *texts;
}

static int is_wanted(const wb_kit_options *options, const wb_kit_case *one)
{
    return (!options->only || contains_one(one->name, options->only)) && !contains_one(one->name, options->except);
}

size_t wb_kit_next_wanted(const wb_kit *kit, const wb_kit_book *book, size_t place)
{
    while (place < book->count && !is_wanted(kit->options, &book->cases[place]))
        place++;
    return place;
}

void wb_kit_end_with(pid_t parent)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* it was gone before */
        _exit(EX_SOFTWARE);
}

WB_PRINTF(2, 0)
static void note(wb_kit *kit, const char *format, va_list arguments)
{
    char text[WB_REPORT_TEXT];
    (void)vsnprintf(text, sizeof text, format, arguments);
    wb_report_send(kit->reporting, WB_REPORT_NOTE, 0, 0, text);
}

int wb_kit_check(wb_kit *kit, int condition, const char *format, ...)
{
    va_list arguments;
    if (condition)
        return condition;
    pthread_mutex_lock(&kit->lock);
    kit->is_failed = 1;
    va_start(arguments, format);
    note(kit, format, arguments);
    va_end(arguments);
    pthread_mutex_unlock(&kit->lock);
    return condition;
}

void wb_kit_note(wb_kit *kit, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    note(kit, format, arguments);
    va_end(arguments);
}

void wb_kit_abandon(wb_kit *kit, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    note(kit, format, arguments);
    va_end(arguments);
    wb_report_send(kit->reporting, WB_REPORT_FAILED, 0, 1, NULL);
    _exit(EX_SOFTWARE);
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
