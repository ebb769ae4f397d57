/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-names.h"

#include <string.h>

/* How many bytes the character takes; 0: it is none. Neither longer forms than needed nor
 * surrogates nor anything beyond U+10FFFF. The string ends with a NUL byte, which is
 * never a continuation. */
static size_t character_size(const unsigned char *at)
{
    static const unsigned smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t size = at[0] < 0x80 ? 1 : at[0] < 0xc0 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
    unsigned value = at[0] & (0xffu >> (size + 1));
    if (size < 2)
        return size;
    for (size_t i = 1; i < size; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        value = value << 6 | (at[i] & 0x3f);
    }
    if (at[0] > 0xf4 || value < smallest[size] || value > 0x10ffff ||
        (value >= 0xd800 && value <= 0xdfff))
        return 0;
    return size;
}

const char *wb_amqp_name_problem(const char *name)
{
    const unsigned char *at = (const unsigned char *)name;
    size_t length = strlen(name);
    if (length == 0 || length > WB_AMQP_SHORT_MAX)
        return "1 to 255 bytes";
    while (*at) {
        size_t size = character_size(at);
        if (size == 0)
            return "it is no valid UTF-8";
        if (*at < 0x20 || *at == 0x7f)
            return "it holds a control character";
        at += size;
    }
    return NULL;
}
