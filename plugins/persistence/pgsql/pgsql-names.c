/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/pgsql/pgsql-names.h"

#include <string.h>

void pgsql_names_init(pgsql_names *names, const char *endpoint, const char *schema)
{
    names->endpoint = endpoint;
    names->schema = schema;
    wb_sql_prefix(endpoint, names->prefix);
}

static void put_text(pgsql_buffer *text, const char *part)
{
    pgsql_buffer_put(text, part, strlen(part));
}

/* Put a text between two quotes, doubling those inside. */
static void put_quoted(pgsql_buffer *text, char quote, const char *first, const char *second)
{
    const char *parts[] = { first, second };
    pgsql_buffer_put(text, &quote, 1);
    for (size_t i = 0; i < 2; i++)
        for (const char *c = parts[i]; *c; c++) {
            if (*c == quote)
                pgsql_buffer_put(text, &quote, 1);
            pgsql_buffer_put(text, c, 1);
        }
    pgsql_buffer_put(text, &quote, 1);
}

/* A literal that means the same whatever standard_conforming_strings says. */
static void put_literal(pgsql_buffer *text, const char *value)
{
    if (strchr(value, '\\')) {
        put_text(text, " E'");
        for (const char *c = value; *c; c++) {
            if (*c == '\'' || *c == '\\')
                pgsql_buffer_put(text, c, 1);
            pgsql_buffer_put(text, c, 1);
        }
        put_text(text, "'");
    } else {
        put_quoted(text, '\'', value, "");
    }
}

static void put_relation(const pgsql_names *names, pgsql_buffer *text, const char *first,
                         const char *second)
{
    put_quoted(text, '"', names->schema, "");
    put_text(text, ".");
    put_quoted(text, '"', first, second);
}

static void put_token(const pgsql_names *names, const char *token, size_t size, pgsql_buffer *text)
{
#define IS(name) (size == sizeof(name) - 1 && memcmp(token, name, size) == 0)
    if (IS("schema"))
        put_quoted(text, '"', names->schema, "");
    else if (IS("dedup"))
        put_relation(names, text, names->prefix, "_dedup");
    else if (IS("pending"))
        put_relation(names, text, names->prefix, "_pending");
    else if (IS("endpoints"))
        put_relation(names, text, "waybill_endpoints", "");
    else if (IS("dedup_batch"))
        put_quoted(text, '"', names->prefix, "_dedup_batch");
    else if (IS("dedup_pkey"))
        put_quoted(text, '"', names->prefix, "_dedup_pkey");
    else if (IS("pending_pkey"))
        put_quoted(text, '"', names->prefix, "_pending_pkey");
    else if (IS("endpoint"))
        put_literal(text, names->endpoint);
    else if (IS("prefix"))
        put_literal(text, names->prefix);
#undef IS
}

void pgsql_names_expand(const pgsql_names *names, const char *template, pgsql_buffer *ret_text)
{
    const char *open;
    while ((open = strchr(template, '{')) != NULL) {
        const char *close = strchr(open, '}');
        pgsql_buffer_put(ret_text, template, (size_t)(open - template));
        put_token(names, open + 1, (size_t)(close - open - 1), ret_text);
        template = close + 1;
    }
    put_text(ret_text, template);
}

int64_t pgsql_names_lock(const pgsql_names *names, const char *purpose, const char *prefix)
{
    uint64_t state = wb_sql_hash(WB_SQL_HASH_START, purpose);
    state = wb_sql_hash(state, "/");
    state = wb_sql_hash(state, names->schema);
    state = wb_sql_hash(state, "/");
    state = wb_sql_hash(state, prefix);
    return (int64_t)state;
}
