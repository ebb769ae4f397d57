/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/loopback.h"

#include <string.h>

static int is(const char *name, size_t size, const char *wanted)
{
    return size == strlen(wanted) && memcmp(name, wanted, size) == 0;
}

/* "127.example.org" is a name like any other. */
static int is_127(const char *name, size_t size)
{
    if (size <= 4 || memcmp(name, "127.", 4) != 0)
        return 0;
    for (size_t i = 4; i < size; i++)
        if (!strchr("0123456789.", name[i]) || !name[i])
            return 0;
    return 1;
}

int wb_common_is_loopback(const char *name, size_t size)
{
    return is(name, size, "localhost") || is(name, size, "::1") || is(name, size, "[::1]") ||
           is_127(name, size);
}
