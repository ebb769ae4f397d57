/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/sql/names.h"

#include <string.h>

void wb_sql_names_init(wb_sql_names *names, const wb_sql_quoting *quoting, const char *endpoint,
                       const char *container)
{
    names->quoting = quoting;
    names->endpoint = endpoint;
    names->container = container;
    wb_sql_prefix(endpoint, names->prefix);
}

static void put_identifier(const wb_sql_names *names, wb_sql_buffer *text, const char *first,
                           const char *second)
{
    const char quote = names->quoting->identifier;
    const char *parts[] = { first, second };
    wb_sql_buffer_put(text, &quote, 1);
    for (size_t i = 0; i < 2; i++)
        for (const char *c = parts[i]; *c; c++) {
            if (*c == quote)
                wb_sql_buffer_put(text, c, 1);
            wb_sql_buffer_put(text, c, 1);
        }
    wb_sql_buffer_put(text, &quote, 1);
}

static void put_table(const wb_sql_names *names, wb_sql_buffer *text, const char *first,
                      const char *second)
{
    put_identifier(names, text, names->container, "");
    wb_sql_buffer_put(text, ".", 1);
    put_identifier(names, text, first, second);
}

static void put_token(const wb_sql_names *names, const char *token, size_t size,
                      wb_sql_buffer *text)
{
#define IS(name) (size == sizeof(name) - 1 && memcmp(token, name, size) == 0)
    if (IS("dedup"))
        put_table(names, text, names->prefix, "_dedup");
    else if (IS("pending"))
        put_table(names, text, names->prefix, "_pending");
    else if (IS("endpoints"))
        put_table(names, text, "waybill_endpoints", "");
    else if (IS("schema"))
        put_identifier(names, text, names->container, "");
    else if (IS("dedup_batch"))
        put_identifier(names, text, names->prefix, "_dedup_batch");
    else if (IS("dedup_pkey"))
        put_identifier(names, text, names->prefix, "_dedup_pkey");
    else if (IS("pending_pkey"))
        put_identifier(names, text, names->prefix, "_pending_pkey");
    else if (IS("endpoint"))
        names->quoting->put_literal(text, names->endpoint);
    else if (IS("prefix"))
        names->quoting->put_literal(text, names->prefix);
    else if (IS("database"))
        names->quoting->put_literal(text, names->container);
#undef IS
}

void wb_sql_names_expand(const wb_sql_names *names, const char *template, wb_sql_buffer *ret_text)
{
    const char *open;
    while ((open = strchr(template, '{')) != NULL) {
        const char *close = strchr(open, '}');
        wb_sql_buffer_put(ret_text, template, (size_t)(open - template));
        put_token(names, open + 1, (size_t)(close - open - 1), ret_text);
        template = close + 1;
    }
    wb_sql_buffer_put_text(ret_text, template);
}

char *wb_sql_names_text(const wb_sql_names *names, const char *template)
{
    wb_sql_buffer text = { 0 };
    wb_sql_names_expand(names, template, &text);
    wb_sql_buffer_put(&text, "", 1);
    if (text.failed) {
        wb_sql_buffer_free(&text);
        return NULL;
    }
    return text.data;
}
