/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/message/given.h"

#include <string.h>

int wb_given_bytes(const char *what, const void *bytes, size_t *size, wb_error *error)
{
    if (!bytes && *size)
        return wb_error_set(error, WB_REJECT, WB_CAUSE_OTHER, 0, "%s has a size and is NULL", what);
    if (*size == WB_TEXT)
        *size = strlen(bytes);
    return WB_OK;
}

int wb_given_name(const char *what, const char *name, size_t *size, wb_error *error)
{
    if (wb_given_bytes(what, name, size, error) != WB_OK)
        return WB_REJECT;
    if (name && !*size)
        return wb_error_set(error, WB_REJECT, WB_CAUSE_OTHER, 0,
                            "%s is empty: its size is 0 (WB_TEXT stands for \"up to the NUL byte\")", what);
    return WB_OK;
}

int wb_given_is_beyond(const void *given, size_t size, size_t known)
{
    const unsigned char *bytes = given;
    for (size_t i = known; i < size; i++)
        if (bytes[i])
            return 1;
    return 0;
}
