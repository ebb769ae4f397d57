/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plugins/persistence/mysql/mysql-dialect.h"
#include "plugins/persistence/mysql/mysql-memory.h"

/* Readable where it can be: an administrator may run the text of schema() by hand. */
static void put_literal(wb_sql_buffer *text, const char *value)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_.-$ ";
    if (value[strspn(value, plain)]) {
        mys_buffer_put_string(text, value, strlen(value));
        return;
    }
    wb_sql_buffer_put(text, "'", 1);
    wb_sql_buffer_put_text(text, value);
    wb_sql_buffer_put(text, "'", 1);
}

const wb_sql_quoting mys_quoting = { '`', "database", put_literal };

void mys_lock_name(const wb_sql_names *names, const char *purpose, const char *prefix,
                    char ret_name[MYS_LOCK_NAME_SIZE])
{
    uint64_t state = wb_sql_hash(WB_SQL_HASH_START, names->container);
    state = wb_sql_hash(state, "/");
    state = wb_sql_hash(state, prefix);
    (void)snprintf(ret_name, MYS_LOCK_NAME_SIZE, "waybill %s %016" PRIx64, purpose, state);
}
