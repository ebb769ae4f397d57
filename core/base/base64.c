/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/base/base64.h"

#include <stdint.h>
#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void wb_base64_encode(const void *bytes, size_t size, wb_buffer *text)
{
    const unsigned char *at = bytes;
    for (; size; at += size < 3 ? size : 3, size -= size < 3 ? size : 3) {
        const uint32_t three = (uint32_t)at[0] << 16 | (size > 1 ? (uint32_t)at[1] << 8 : 0) | (size > 2 ? at[2] : 0);
        const char four[] = { digits[three >> 18], digits[three >> 12 & 63], size > 1 ? digits[three >> 6 & 63] : '=',
                              size > 2 ? digits[three & 63] : '=' };
        wb_buffer_put(text, four, sizeof four);
    }
}

/* @return how many bytes they are, or 0: they are none. Padding is the text's last alone. */
static size_t decode_four(const char *four, int is_last, unsigned char three[3])
{
    const size_t padding = !is_last || four[3] != '=' ? 0 : four[2] != '=' ? 1 : 2;
    uint32_t bits = 0;
    for (size_t i = 0; i < 4; i++) {
        const char *digit = i < 4 - padding ? memchr(digits, four[i], sizeof digits - 1) : digits;
        if (!digit)
            return 0;
        bits = bits << 6 | (uint32_t)(digit - digits);
    }
    if ((padding == 1 && bits & 0xff) || (padding == 2 && bits & 0xffff))
        return 0; /* another text of the same bytes */
    three[0] = (unsigned char)(bits >> 16);
    three[1] = (unsigned char)(bits >> 8);
    three[2] = (unsigned char)bits;
    return 3 - padding;
}

int wb_base64_decode(const char *text, size_t size, wb_buffer *bytes)
{
    unsigned char three[3];
    if (size % 4)
        return -1;
    for (size_t at = 0; at < size; at += 4) {
        const size_t count = decode_four(text + at, at + 4 == size, three);
        if (!count)
            return -1;
        wb_buffer_put(bytes, three, count);
    }
    return 0;
}
