/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/malloc/faults.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <unistd.h>

#define OWN_NAME "tests/malloc/faults.c"

static atomic_ulong asked;
static unsigned long wanted;
static int and_all_that_follow;
static const char *within = "";

void __sanitizer_print_stack_trace(void) __attribute__((weak));
__attribute__((visibility("default"))) int wb_malloc_fails(const char *file, int line);

/* As files are named when they are compiled, this one too: what stands before is where the source is. */
static const char *name_of(const char *file)
{
    const size_t prefix = sizeof __FILE__ - sizeof OWN_NAME;
    return strlen(file) > prefix ? file + prefix : file;
}

static int begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static int is_tried(const char *name)
{
    return (begins(name, "core/") || begins(name, "plugins/")) && begins(name, within);
}

/* @return 0 where it cannot be written down. */
static int add_line(const char *path, const char *text)
{
    const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    const ssize_t size = (ssize_t)strlen(text);
    const int is_written = file >= 0 && write(file, text, (size_t)size) == size;
    if (file >= 0)
        (void)close(file);
    return is_written;
}

/* Standard error may be somewhere else by now, or closed. */
static void report(const char *name, int line, unsigned long number)
{
    char text[300];
    const char *path = getenv("WAYBILL_MALLOC_REPORT");
    (void)snprintf(text, sizeof text, "allocation %lu fails: %.200s:%d\n", number, name, line);
    if (!path || !add_line(path, text))
        (void)write(STDERR_FILENO, text, strlen(text));
    if (__sanitizer_print_stack_trace)
        __sanitizer_print_stack_trace();
}

int wb_malloc_fails(const char *file, int line)
{
    const char *name = name_of(file);
    if (!is_tried(name))
        return 0;
    const unsigned long number = atomic_fetch_add(&asked, 1) + 1;
    if (!wanted || number < wanted || (number > wanted && !and_all_that_follow))
        return 0;
    if (number == wanted)
        report(name, line, number);
    errno = ENOMEM;
    return 1;
}

static void note_count(void)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%lu\n", atomic_load(&asked));
    if (!add_line(getenv("WAYBILL_MALLOC_COUNT"), text))
        abort();
}

__attribute__((constructor)) static void prepare(void)
{
    const char *number = getenv("WAYBILL_MALLOC"), *prefix = getenv("WAYBILL_MALLOC_IN");
    char *end = NULL;
    if (number) {
        wanted = strtoul(number, &end, 10);
        and_all_that_follow = *end == '+';
    }
    if (prefix)
        within = prefix;
    if (getenv("WAYBILL_MALLOC_COUNT"))
        (void)atexit(note_count);
}
