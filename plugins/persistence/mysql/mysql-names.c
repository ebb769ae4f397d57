/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/mysql/mysql-names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define HASH_DIGITS 16
/* What is kept of a name that cannot be kept whole: room for "$" and the hash. */
#define KEPT_MAX (MYS_PREFIX_MAX - 1 - HASH_DIGITS)
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
    if (size == 0 || size > MYS_PREFIX_MAX)
        return 0;
    for (size_t i = 0; i < size; i++)
        if (!is_kept(name[i]))
            return 0;
    return 1;
}

void mys_names_init(mys_names *names, const char *endpoint, const char *database)
{
    size_t kept = 0;

    names->endpoint = endpoint;
    names->database = database;
    if (is_kept_whole(endpoint)) {
        (void)snprintf(names->prefix, sizeof names->prefix, "%s", endpoint);
        return;
    }
    for (; endpoint[kept] && kept < KEPT_MAX; kept++)
        names->prefix[kept] = nearest(endpoint[kept]);
    (void)snprintf(names->prefix + kept, sizeof names->prefix - kept, "$%016" PRIx64,
                   hash(FNV_OFFSET, endpoint));
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
    uint64_t state = hash(FNV_OFFSET, names->database);
    state = hash(state, "/");
    state = hash(state, prefix);
    (void)snprintf(ret_name, MYS_LOCK_NAME_SIZE, "waybill %s %016" PRIx64, purpose, state);
}
