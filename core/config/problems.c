/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/config/problems.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/base/printable.h"

/* Longest line: room for two paths and a list of remedies. */
#define TEXT_MAX 8192

static size_t put_place(char *text, size_t size, wb_conf_origin at)
{
    int used = 0;
    if (at.file && at.line)
        used = snprintf(text, size, "%s:%d: ", at.file, at.line);
    else if (at.file)
        used = snprintf(text, size, "%s: ", at.file);
    return used < 0 ? 0 : (size_t)used < size ? (size_t)used : size - 1;
}

void wb_problems_add(wb_problems *problems, int level, wb_conf_origin at, const char *format, ...)
{
    char text[TEXT_MAX], printable[TEXT_MAX];
    size_t used = put_place(text, sizeof text, at);
    va_list arguments;

    if (level == WB_LOG_WARNING)
        used += (size_t)snprintf(text + used, sizeof text - used, "warning: ");
    if (used >= sizeof text)
        used = sizeof text - 1;
    va_start(arguments, format);
    (void)vsnprintf(text + used, sizeof text - used, format, arguments);
    va_end(arguments);
    (void)wb_printable_copy(text, strlen(text), printable, sizeof printable);

    if (problems->count == problems->capacity) {
        const size_t capacity = problems->capacity ? problems->capacity * 2 : 16;
        problems->items = wb_realloc(problems->items, capacity * sizeof *problems->items);
        problems->capacity = capacity;
    }
    char *copy = wb_strdup(printable); /* before it is counted */
    problems->items[problems->count++] = (wb_problem){ level, copy };
    problems->error_count += level == WB_LOG_ERROR;
}

void wb_problems_print(const wb_problems *problems, FILE *stream)
{
    for (size_t i = 0; i < problems->count; i++)
        (void)fprintf(stream, "%s\n", problems->items[i].text);
}

void wb_problems_free(wb_problems *problems)
{
    for (size_t i = 0; i < problems->count; i++)
        free(problems->items[i].text);
    free(problems->items);
    memset(problems, 0, sizeof *problems);
}
