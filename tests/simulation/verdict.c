/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/simulation/verdict.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/simulation/scheduler.h"

static char *verdict;
static int is_telling;
static unsigned long log_lines;

/* The linker puts ours in place of the core's (--wrap). */
void __real_wb_log_write(int level, const char *text, const wb_field *fields, size_t count);
void __wrap_wb_log_write(int level, const char *text, const wb_field *fields, size_t count);

void __wrap_wb_log_write(int level, const char *text, const wb_field *fields, size_t count)
{
    log_lines += level < WB_LOG_DEBUG;
    if (is_telling)
        __real_wb_log_write(level, text, fields, count);
}

unsigned long sim_log_lines(void)
{
    return log_lines;
}

void sim_verdict_start(char *slot, int tells)
{
    verdict = slot;
    is_telling = tells;
}

static void tell(const char *format, va_list arguments) WB_PRINTF(1, 0);
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
