/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "conformance/tap.h"

#include <string.h>

#include "core/base/printable.h"

/* `special` stand behind a backslash. */
static void put(FILE *out, const char *text, size_t size, const char *special)
{
    char piece[WB_PRINTABLE_SIZE];
    size_t step;
    for (; (step = wb_printable_next(text, size, piece)) != 0; text += step, size -= step) {
        if (strchr(special, *text))
            (void)fputc('\\', out);
        (void)fputs(piece, out);
    }
}

static void put_line(FILE *out, const char *before, const char *text)
{
    (void)fputs(before, out);
    put(out, text, strlen(text), "");
    (void)fputc('\n', out);
    (void)fflush(out);
}

void wb_tap_plan(FILE *out, size_t count)
{
    (void)fprintf(out, "1..%zu\n", count);
    (void)fflush(out);
}

void wb_tap_case(FILE *out, int is_ok, size_t number, const char *name, const char *skip)
{
    (void)fprintf(out, "%s %zu - ", is_ok ? "ok" : "not ok", number);
    put(out, name, strlen(name), "#\\");
    put_line(out, skip ? " # SKIP " : "", skip ? skip : "");
}

void wb_tap_note(FILE *out, const char *text)
{
    for (const char *end; *text; text = end + (*end == '\n')) {
        end = strchrnul(text, '\n');
        (void)fputs("# ", out);
        put(out, text, (size_t)(end - text), "");
        (void)fputc('\n', out);
    }
    (void)fflush(out);
}

void wb_tap_bail_out(FILE *out, const char *text)
{
    put_line(out, "Bail out! ", text);
}
