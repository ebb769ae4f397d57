/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/base/printable.h"

#include <string.h>

size_t wb_utf8_size(const unsigned char *at, size_t left, uint32_t *ret_code)
{
    static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t size = at[0] < 0x80 ? 1 : at[0] < 0xc2 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : at[0] < 0xf5 ? 4 : 0;
    if (!size || size > left)
        return 0;
    uint32_t code = size == 1 ? at[0] : at[0] & (0xffu >> (size + 1));
    for (size_t i = 1; i < size; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (at[i] & 0x3f);
    }
    if (code < smallest[size] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return 0;
    if (ret_code)
        *ret_code = code;
    return size;
}

size_t wb_utf8_copy(const char *text, char *to, size_t room)
{
    static const char unknown[] = "\xef\xbf\xbd";
    size_t used = 0;
    for (size_t left = strlen(text); left;) {
        const size_t step = wb_utf8_size((const unsigned char *)text, left, NULL), size = step ? step : sizeof unknown - 1;
        if (used + size >= room)
            break;
        memcpy(to + used, step ? text : unknown, size);
        used += size;
        text += step ? step : 1;
        left -= step ? step : 1;
    }
    to[used] = '\0';
    return used;
}

static int is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code == 0x2028 || code == 0x2029;
}

/* Marks, embeddings, overrides and isolates (Unicode Standard Annex 9). */
static int sets_direction(uint32_t code)
{
    return code == 0x061c || code == 0x200e || code == 0x200f || (code >= 0x202a && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069);
}

size_t wb_printable_next(const char *text, size_t size, char ret_piece[WB_PRINTABLE_SIZE])
{
    const unsigned char *at = (const unsigned char *)text;
    uint32_t code = 0;
    if (!size)
        return 0;
    const size_t step = wb_utf8_size(at, size, &code);
    if (*at == '\n')
        (void)snprintf(ret_piece, WB_PRINTABLE_SIZE, "\\n");
    else if (!step || (step == 1 && is_control(code)))
        (void)snprintf(ret_piece, WB_PRINTABLE_SIZE, "\\x%02x", *at);
    else if (is_control(code) || sets_direction(code))
        (void)snprintf(ret_piece, WB_PRINTABLE_SIZE, "\\u%04x", (unsigned)code);
    else {
        memcpy(ret_piece, text, step);
        ret_piece[step] = '\0';
    }
    return step ? step : 1;
}

int wb_printable_is(const char *text, size_t size)
{
    char piece[WB_PRINTABLE_SIZE];
    size_t step;
    for (; (step = wb_printable_next(text, size, piece)) != 0; text += step, size -= step)
        if (strncmp(piece, text, step) != 0)
            return 0;
    return 1;
}

size_t wb_printable_copy(const char *text, size_t size, char *to, size_t room)
{
    char piece[WB_PRINTABLE_SIZE];
    size_t used = 0, step;
    for (; (step = wb_printable_next(text, size, piece)) != 0; text += step, size -= step) {
        size_t length = strlen(piece);
        if (used + length >= room)
            break;
        memcpy(to + used, piece, length);
        used += length;
    }
    to[used] = '\0';
    return used;
}

void wb_printable_print(FILE *stream, const char *text, size_t size)
{
    char piece[WB_PRINTABLE_SIZE];
    size_t step;
    for (; (step = wb_printable_next(text, size, piece)) != 0; text += step, size -= step)
        (void)fputs(piece, stream);
}
