/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/persistence/sqlite/persistence.h"

static int is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
}

char *wb_sqlite_names_encode(const char *endpoint)
{
    char *encoded = malloc(strlen(endpoint) * 3 + 1);
    char *at = encoded;
    if (!encoded)
        return NULL;
    for (const char *from = endpoint; *from; from++) {
        if (is_plain(*from))
            *at++ = *from;
        else
            at += sprintf(at, "%%%02X", (unsigned)(unsigned char)*from);
    }
    *at = '\0';
    return encoded;
}

char *wb_sqlite_names_format(const char *format, const char *tables)
{
    return sqlite3_mprintf(format, tables, tables, tables, tables, tables, tables, tables, tables);
}
