/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/base/crash.h"

#ifdef WB_TEST_HOOKS

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_long passed;
static _Thread_local const char *scope = "";

static int names_it(const char *setting, const char *name)
{
    size_t start = strlen(scope), size = strlen(name);
    return setting && strncmp(setting, scope, start) == 0 && strncmp(setting + start, name, size) == 0 &&
           (setting[start + size] == ':' || setting[start + size] == '\0');
}

void wb_crash_scope(const char *prefix)
{
    scope = prefix;
}

void wb_crash_point(const char *name)
{
    const char *setting = getenv("WAYBILL_CRASH");
    if (!names_it(setting, name))
        return;
    const char *colon = strchr(setting, ':');
    char *end = NULL;
    long nth = colon ? strtol(colon + 1, &end, 10) : 1;
    if (atomic_fetch_add(&passed, 1) + 1 != nth)
        return;
    if (end && strcmp(end, ":stop") == 0)
        pthread_kill(pthread_self(), SIGSTOP); /* to this thread, so that it stops right here */
    else
        kill(getpid(), SIGKILL);
}

int wb_bug(const char *name)
{
    const char *setting = getenv("WAYBILL_BUG");
    return setting && strcmp(setting, name) == 0;
}

int64_t wb_test_period(int64_t period)
{
    const char *setting = getenv("WAYBILL_PERIOD");
    return setting ? strtoll(setting, NULL, 10) * 1000000 : period;
}

#else
typedef int wb_crash_is_off; /* an empty translation unit is not C */
#endif
