/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/sql/prefix.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define HASH_DIGITS 16
/* What is kept of a name that cannot be kept whole: room for "$" and the hash. */
#define KEPT_MAX (WB_SQL_PREFIX_MAX - 1 - HASH_DIGITS)

uint64_t wb_sql_hash(uint64_t state, const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        state = (state ^ *c) * UINT64_C(0x100000001b3);
    return state;
}

static int is_kept(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

static char nearest(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (char)(c - 'A' + 'a');
    return is_kept(c) ? c : '_';
}

static int is_kept_whole(const char *name)
{
    size_t size = strlen(name);
    if (size == 0 || size > WB_SQL_PREFIX_MAX)
        return 0;
    for (size_t i = 0; i < size; i++)
        if (!is_kept(name[i]))
            return 0;
    return 1;
}

void wb_sql_prefix(const char *endpoint, char ret_prefix[WB_SQL_PREFIX_MAX + 1])
{
    size_t kept = 0;
    if (is_kept_whole(endpoint)) {
        (void)snprintf(ret_prefix, WB_SQL_PREFIX_MAX + 1, "%s", endpoint);
        return;
    }
    for (; endpoint[kept] && kept < KEPT_MAX; kept++)
        ret_prefix[kept] = nearest(endpoint[kept]);
    (void)snprintf(ret_prefix + kept, WB_SQL_PREFIX_MAX + 1 - kept, "$%016" PRIx64,
                   wb_sql_hash(WB_SQL_HASH_START, endpoint));
}
