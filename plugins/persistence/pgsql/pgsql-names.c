/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/pgsql/pgsql-names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define HASH_DIGITS 16
/* What is kept of a name that cannot be kept whole: room for "$" and the hash. */
#define KEPT_MAX (PGSQL_PREFIX_MAX - 1 - HASH_DIGITS)
#define FNV_OFFSET UINT64_C(0xcbf29ce484222325)

/* FNV-1a. Endpoint names come from the operator's file, not from an adversary. */
static uint64_t hash(uint64_t state, const char *text)
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
    if (size == 0 || size > PGSQL_PREFIX_MAX)
        return 0;
    for (size_t i = 0; i < size; i++)
        if (!is_kept(name[i]))
            return 0;
    return 1;
}

void pgsql_names_init(pgsql_names *names, const char *endpoint, const char *schema)
{
    size_t kept = 0;

    names->endpoint = endpoint;
    names->schema = schema;
    if (is_kept_whole(endpoint)) {
        (void)snprintf(names->prefix, sizeof names->prefix, "%s", endpoint);
        return;
    }
    for (; endpoint[kept] && kept < KEPT_MAX; kept++)
        names->prefix[kept] = nearest(endpoint[kept]);
    (void)snprintf(names->prefix + kept, sizeof names->prefix - kept, "$%016" PRIx64,
                   hash(FNV_OFFSET, endpoint));
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
    uint64_t state = hash(FNV_OFFSET, purpose);
    state = hash(state, "/");
    state = hash(state, names->schema);
    state = hash(state, "/");
    state = hash(state, prefix);
    return (int64_t)state;
}
