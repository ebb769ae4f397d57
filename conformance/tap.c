/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "conformance/tap.h"

#include <string.h>

/* Bytes of a character of UTF-8 that is well-formed and no control. @return 0: it is none. */
static size_t character(const unsigned char *at)
{
    static const unsigned least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    const size_t size = *at < 0x80 ? 1 : *at >> 5 == 6 ? 2 : *at >> 4 == 14 ? 3 : *at >> 3 == 30 ? 4 : 0;
    if (size <= 1)
        return size && *at >= 0x20 && *at != 0x7f;
    unsigned code = *at & (0xffu >> (size + 1));
    for (size_t i = 1; i < size; i++) {
        if (at[i] >> 6 != 2)
            return 0;
        code = code << 6 | (at[i] & 0x3f);
    }
    const int is_good = code >= least[size] && code >= 0xa0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
    return is_good ? size : 0;
}

/* `special` stand behind a backslash. */
static void put(FILE *out, const char *text, size_t size, const char *special)
{
    for (size_t i = 0; i < size;) {
        const size_t step = character((const unsigned char *)text + i);
        if (!step) {
            (void)fprintf(out, "\\x%02x", (unsigned char)text[i++]);
            continue;
        }
        if (strchr(special, text[i]))
            (void)fputc('\\', out);
        (void)fwrite(text + i, 1, step, out);
        i += step;
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
