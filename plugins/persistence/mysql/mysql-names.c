/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/mysql/mysql-names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void mys_names_init(mys_names *names, const char *endpoint, const char *database)
{
    names->endpoint = endpoint;
    names->database = database;
    wb_sql_prefix(endpoint, names->prefix);
}

static void put_identifier(mys_buffer *text, const char *first, const char *second)
{
    const char *parts[] = { first, second };
    mys_buffer_put(text, "`", 1);
    for (size_t i = 0; i < 2; i++)
        for (const char *c = parts[i]; *c; c++) {
            if (*c == '`')
                mys_buffer_put(text, c, 1);
            mys_buffer_put(text, c, 1);
        }
    mys_buffer_put(text, "`", 1);
}

static void put_table(const mys_names *names, mys_buffer *text, const char *first,
                      const char *second)
{
    put_identifier(text, names->database, "");
    mys_buffer_put(text, ".", 1);
    put_identifier(text, first, second);
}

/* Readable where it can be: an administrator may run the text of schema() by hand. */
static void put_literal(mys_buffer *text, const char *value)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_.-$ ";
    if (value[strspn(value, plain)]) {
        mys_buffer_put_string(text, value, strlen(value));
        return;
    }
    mys_buffer_put(text, "'", 1);
    mys_buffer_put_text(text, value);
    mys_buffer_put(text, "'", 1);
}

static void put_token(const mys_names *names, const char *token, size_t size, mys_buffer *text)
{
#define IS(name) (size == sizeof(name) - 1 && memcmp(token, name, size) == 0)
    if (IS("dedup"))
        put_table(names, text, names->prefix, "_dedup");
    else if (IS("pending"))
        put_table(names, text, names->prefix, "_pending");
    else if (IS("endpoints"))
        put_table(names, text, "waybill_endpoints", "");
    else if (IS("endpoint"))
        put_literal(text, names->endpoint);
    else if (IS("prefix"))
        put_literal(text, names->prefix);
    else if (IS("database"))
        put_literal(text, names->database);
#undef IS
}

void mys_names_expand(const mys_names *names, const char *template, mys_buffer *ret_text)
{
    const char *open;
    while ((open = strchr(template, '{')) != NULL) {
        const char *close = strchr(open, '}');
        mys_buffer_put(ret_text, template, (size_t)(open - template));
        put_token(names, open + 1, (size_t)(close - open - 1), ret_text);
        template = close + 1;
    }
    mys_buffer_put_text(ret_text, template);
}

void mys_names_lock(const mys_names *names, const char *purpose, const char *prefix,
                    char ret_name[MYS_LOCK_NAME_SIZE])
{
    uint64_t state = wb_sql_hash(WB_SQL_HASH_START, names->database);
    state = wb_sql_hash(state, "/");
    state = wb_sql_hash(state, prefix);
    (void)snprintf(ret_name, MYS_LOCK_NAME_SIZE, "waybill %s %016" PRIx64, purpose, state);
}
