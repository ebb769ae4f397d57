/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include "plugins/persistence/pgsql/pgsql-dialect.h"

/* Means the same whatever standard_conforming_strings says. */
static void put_literal(wb_sql_buffer *text, const char *value)
{
    const int escaped = strchr(value, '\\') != NULL;
    wb_sql_buffer_put_text(text, escaped ? " E'" : "'");
    for (const char *c = value; *c; c++) {
        if (*c == '\'' || *c == '\\')
            wb_sql_buffer_put(text, c, 1);
        wb_sql_buffer_put(text, c, 1);
    }
    wb_sql_buffer_put(text, "'", 1);
}

const wb_sql_quoting pgsql_quoting = { '"', "schema", put_literal };

int64_t pgsql_lock_key(const wb_sql_names *names, const char *purpose, const char *prefix)
{
    uint64_t state = wb_sql_hash(WB_SQL_HASH_START, "waybill ");
    state = wb_sql_hash(state, purpose);
    state = wb_sql_hash(state, "/");
    state = wb_sql_hash(state, names->container);
    state = wb_sql_hash(state, "/");
    state = wb_sql_hash(state, prefix);
    return (int64_t)state;
}
