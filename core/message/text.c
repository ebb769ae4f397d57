/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/message/text.h"

#include <stdint.h>

/* @return the size of the character that starts here, or 0 if there is none. */
static size_t character_size(const unsigned char *at, size_t left)
{
    static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t size = at[0] < 0x80 ? 1 : at[0] < 0xc2 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : at[0] < 0xf5 ? 4 : 0;
    if (size < 2 || size > left)
        return size > left ? 0 : size;
    uint32_t code = at[0] & (0xffu >> (size + 1));
    for (size_t i = 1; i < size; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (at[i] & 0x3f);
    }
    if (code < smallest[size] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return 0;
    return size;
}

int wb_text_is_plain(const char *text, size_t size)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + size;
    while (at < end) {
        size_t step = character_size(at, (size_t)(end - at));
        if (!step || at[0] < 0x20 || at[0] == 0x7f)
            return 0;
        at += step;
    }
    return 1;
}

char *wb_text_mend(char *text, size_t size)
{
    unsigned char *at = (unsigned char *)text, *end = at + size;
    while (at < end) {
        size_t step = character_size(at, (size_t)(end - at));
        if (!step)
            *at = '?';
        at += step ? step : 1;
    }
    return text;
}
