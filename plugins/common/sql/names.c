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

typedef enum name_kind { IS_TABLE, IS_IDENTIFIER, IS_LITERAL } name_kind;

/* What a name in braces stands for. */
typedef struct token {
    const char *name;
    name_kind kind;
    const char *suffix; /* behind the prefix; NULL: not made of it */
} token;

static const token tokens[] = {
    { "dedup", IS_TABLE, "_dedup" },
    { "pending", IS_TABLE, "_pending" },
    { "delayed", IS_TABLE, "_delayed" },
    { "written", IS_TABLE, "_written" },
    { "lanes", IS_TABLE, "_lanes" },
    { "write", IS_TABLE, "_write" },
    { "send", IS_TABLE, "_send" },
    { "publish", IS_TABLE, "_publish" },
    { "claim", IS_TABLE, "_claim" },
    { "positions", IS_TABLE, "_positions" },
    { "subscribed", IS_TABLE, "_subscribed" },
    { "failed", IS_TABLE, "_failed" },
    { "endpoints", IS_TABLE, NULL },
    { "schema", IS_IDENTIFIER, NULL },
    { "dedup_batch", IS_IDENTIFIER, "_dedup_batch" },
    { "dedup_pkey", IS_IDENTIFIER, "_dedup_pkey" },
    { "pending_pkey", IS_IDENTIFIER, "_pending_pkey" },
    { "delayed_pkey", IS_IDENTIFIER, "_delayed_pkey" },
    { "delayed_due", IS_IDENTIFIER, "_delayed_due" },
    { "written_pkey", IS_IDENTIFIER, "_written_pkey" },
    { "written_held", IS_IDENTIFIER, "_written_held" },
    { "position_key", IS_IDENTIFIER, "_position_key" },
    { "failed_pkey", IS_IDENTIFIER, "_failed_pkey" },
    { "failed_listed", IS_IDENTIFIER, "_failed_listed" },
    { "failed_changed", IS_IDENTIFIER, "_failed_changed" },
    { "dedup_name", IS_IDENTIFIER, "_dedup" },
    { "pending_name", IS_IDENTIFIER, "_pending" },
    { "delayed_name", IS_IDENTIFIER, "_delayed" },
    { "written_name", IS_IDENTIFIER, "_written" },
    { "positions_name", IS_IDENTIFIER, "_positions" },
    { "subscribed_name", IS_IDENTIFIER, "_subscribed" },
    { "failed_name", IS_IDENTIFIER, "_failed" },
    { "endpoint", IS_LITERAL, NULL },
    { "prefix", IS_LITERAL, "" },
    { "database", IS_LITERAL, NULL },
};

/* Of what stands behind "{". NULL: none of them does, with its "}". */
static const token *find_token(const char *at)
{
    for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++) {
        const size_t size = strlen(tokens[i].name);
        if (strncmp(at, tokens[i].name, size) == 0 && at[size] == '}')
            return &tokens[i];
    }
    return NULL;
}

static void put_token(const wb_sql_names *names, const token *t, wb_sql_buffer *text)
{
    const char *suffix = t->suffix ? t->suffix : "";
    if (t->kind == IS_TABLE)
        put_table(names, text, t->suffix ? names->prefix : "waybill_endpoints", suffix);
    else if (t->kind == IS_IDENTIFIER)
        put_identifier(names, text, t->suffix ? names->prefix : names->container, suffix);
    else if (t->suffix)
        names->quoting->put_literal(text, names->prefix);
    else
        names->quoting->put_literal(text, strcmp(t->name, "endpoint") == 0 ? names->endpoint
                                                                           : names->container);
}

const char *wb_sql_names_unknown(const char *template)
{
    const char *open = template;
    while ((open = strchr(open, '{')) != NULL && find_token(open + 1))
        open++;
    return open;
}

void wb_sql_names_expand(const wb_sql_names *names, const char *template, wb_sql_buffer *ret_text)
{
    const char *open;
    while ((open = strchr(template, '{')) != NULL) {
        const token *t = find_token(open + 1);
        wb_sql_buffer_put(ret_text, template, (size_t)(open + !t - template));
        if (t)
            put_token(names, t, ret_text);
        template = t ? open + 1 + strlen(t->name) + 1 : open + 1;
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
