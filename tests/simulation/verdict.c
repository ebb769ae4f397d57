/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/simulation/verdict.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/simulation/scheduler.h"

static char *verdict;
static int is_telling;

void sim_verdict_start(char *slot, int tells)
{
    verdict = slot;
    is_telling = tells;
}

static void tell(const char *format, va_list arguments)
{
    printf("# %10.4fs %-14s ", (double)sim_now() / 1e9, sim_thread_name());
    (void)vprintf(format, arguments);
    printf("\n");
    (void)fflush(stdout);
}

void sim_violation(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(verdict, SIM_VERDICT_SIZE, format, arguments);
    va_end(arguments);
    sim_tell("VIOLATION: %s", verdict);
    (void)fflush(stdout);
    _exit(1);
}

void sim_tell(const char *format, ...)
{
    va_list arguments;
    if (!is_telling)
        return;
    va_start(arguments, format);
    tell(format, arguments);
    va_end(arguments);
}
