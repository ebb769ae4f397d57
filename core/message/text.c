/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/message/text.h"

#include "core/base/printable.h"

int wb_text_is_plain(const char *text, size_t size)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + size;
    while (at < end) {
        size_t step = wb_utf8_size(at, (size_t)(end - at), NULL);
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
        size_t step = wb_utf8_size(at, (size_t)(end - at), NULL);
        if (!step)
            *at = '?';
        at += step ? step : 1;
    }
    return text;
}
