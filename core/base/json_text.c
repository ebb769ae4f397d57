/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/base/json_text.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/base/printable.h"

json_t *wb_json_text(const char *text)
{
    if (!text)
        return NULL;
    const size_t room = WB_UTF8_LONGER * strlen(text) + 1;
    char *mended = wb_alloc(room);
    json_t *value = json_stringn(mended, wb_utf8_copy(text, mended, room));
    free(mended);
    return value;
}
