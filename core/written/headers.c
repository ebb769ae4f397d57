/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/written/headers.h"

#include <string.h>

typedef struct {
    const char *at;
    const char *end;
    const char *start;
    wb_arena *arena;
    const char *problem; /* NULL: none yet */
} reader;

static int refuse(reader *r, const char *problem)
{
    if (!r->problem)
        r->problem = problem;
    return 0;
}

static void skip_blanks(reader *r)
{
    while (r->at < r->end && strchr(" \t\r\n", *r->at) && *r->at)
        r->at++;
}

/* Whether that is next; it is passed then. */
static int accept(reader *r, char c)
{
    skip_blanks(r);
    if (r->at == r->end || *r->at != c)
        return 0;
    r->at++;
    return 1;
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Four hexadecimal digits. @return -1: they are not there. */
static long read_unit(reader *r)
{
    long unit = 0;
    if (r->end - r->at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int digit = digit_of(*r->at++);
        if (digit < 0)
            return -1;
        unit = unit * 16 + digit;
    }
    return unit;
}

/* Behind "\u"; a character beyond the first 65,536 is two of them. */
static long read_code(reader *r)
{
    long high = read_unit(r), low;
    if (high < 0xd800 || high > 0xdfff)
        return high;
    if (high > 0xdbff || r->end - r->at < 6 || r->at[0] != '\\' || r->at[1] != 'u')
        return -1;
    r->at += 2;
    low = read_unit(r);
    return low >= 0xdc00 && low <= 0xdfff ? 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00) : -1;
}

static char *put_utf8(char *to, long code)
{
    static const unsigned char lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    int size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (int i = size - 1; i > 0; i--, code >>= 6)
        to[i] = (char)(0x80 | (code & 0x3f));
    to[0] = (char)(code | lead[size > 1 ? size : 0]);
    return to + size;
}

/* Behind a backslash. @return the end of what was written, or NULL. */
static char *read_escape(reader *r, char *to)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    const char *name = r->at < r->end && *r->at ? strchr(names, *r->at) : NULL;
    if (name) {
        r->at++;
        *to = values[name - names];
        return to + 1;
    }
    if (r->at == r->end || *r->at++ != 'u')
        return NULL;
    long code = read_code(r);
    return code > 0 ? put_utf8(to, code) : NULL; /* a NUL would end a text for many a reader */
}

/* The bytes up to the end of a string: an escape is never shorter than what it stands for. */
static size_t measure(const reader *r)
{
    const char *p = r->at;
    while (p < r->end && *p != '"')
        p += *p == '\\' && p + 1 < r->end ? 2 : 1;
    return (size_t)(p - r->at);
}

static int read_string(reader *r, const char **ret_value, size_t *ret_size)
{
    if (!accept(r, '"'))
        return refuse(r, "a string is expected");
    char *value = wb_arena_alloc(r->arena, measure(r) + 1), *to = value;
    while (r->at < r->end && *r->at != '"') {
        unsigned char c = (unsigned char)*r->at++;
        if (c < 0x20)
            return refuse(r, "a string holds a control character that is not escaped");
        if (c != '\\')
            *to++ = (char)c;
        else if (!(to = read_escape(r, to)))
            return refuse(r, "an escape means nothing, or NUL");
    }
    if (r->at == r->end)
        return refuse(r, "a string does not end");
    r->at++;
    *to = '\0';
    *ret_value = value;
    *ret_size = (size_t)(to - value);
    return 1;
}

static int is_known(const wb_header *headers, size_t count, const wb_header *header)
{
    for (size_t i = 0; i < count; i++)
        if (headers[i].name_size == header->name_size &&
            memcmp(headers[i].name, header->name, header->name_size) == 0)
            return 1;
    return 0;
}

static int read_member(reader *r, wb_header *headers, size_t *count)
{
    wb_header header = { 0 };
    if (!read_string(r, &header.name, &header.name_size))
        return 0;
    if (!accept(r, ':'))
        return refuse(r, "a colon is expected");
    skip_blanks(r);
    if (r->at == r->end || *r->at != '"')
        return refuse(r, "a header's value is no string");
    if (!read_string(r, &header.value, &header.value_size))
        return 0;
    if (is_known(headers, *count, &header))
        return refuse(r, "a header comes twice");
    if (*count == WB_WRITTEN_HEADERS_MAX)
        return refuse(r, "there are more than 256");
    headers[(*count)++] = header;
    return 1;
}

static int read_object(reader *r, wb_header *headers, size_t *count)
{
    if (!accept(r, '{'))
        return refuse(r, "they are no JSON object");
    if (!accept(r, '}')) {
        do
            if (!read_member(r, headers, count))
                return 0;
        while (accept(r, ','));
        if (!accept(r, '}'))
            return refuse(r, "a comma or the end of the object is expected");
    }
    skip_blanks(r);
    return r->at == r->end ? 1 : refuse(r, "something follows the object");
}

int wb_written_headers_parse(const char *text, size_t size, wb_arena *arena, wb_header *headers,
                             size_t *ret_count, wb_error *error)
{
    reader r = { .at = text, .end = text ? text + size : NULL, .start = text, .arena = arena };
    *ret_count = 0;
    if (!text || read_object(&r, headers, ret_count))
        return WB_OK;
    return wb_error_set(error, WB_REJECT, WB_CAUSE_OTHER, 0, "its headers cannot be read: %s (at byte %zu)",
                        r.problem, (size_t)(r.at - r.start) + 1);
}
