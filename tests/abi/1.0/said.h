/* SPDX-License-Identifier: Apache-2.0
 *
 * What the parts of this directory see and do, as lines of the file that ABI_OUTPUT names.
 *
 * They are users of version 1.0: what is written here stays as it is, so that later hosts can be
 * tried with it. Built with WB_GROWN they stand for those of a later version: then each struct that may
 * grow has one field more, `grown`, which they fill with what must never be followed, and which they
 * look for in what the host hands them.
 */
#ifndef WB_TESTS_ABI_SAID_H
#define WB_TESTS_ABI_SAID_H

#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((format(printf, 1, 2))) static inline void say(const char *format, ...)
{
    char line[1024];
    const char *path = getenv("ABI_OUTPUT");
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(line, sizeof line - 1, format, arguments);
    va_end(arguments);
    if (size < 0 || !path)
        return;
    size = size < (int)sizeof line - 1 ? size : (int)sizeof line - 2;
    line[size++] = '\n';
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, line, (size_t)size) != size)
        abort();
    (void)close(fd);
}

#ifdef WB_GROWN
#define GROWN .grown = (const void *)(size_t)0x5a5a5a5a,
/* Whether a struct of the host's has the field that 1.0 does not know. */
#define SEES(type, from)                                                                           \
    say("sees %s %s", #type,                                                                       \
        (from)->struct_size >= offsetof(type, grown) + sizeof((from)->grown) ? "there" : "absent")
#else
#define GROWN
#define SEES(type, from) say("sees %s unknown", #type)
#endif

#endif
