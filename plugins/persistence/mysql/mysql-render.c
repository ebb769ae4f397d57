/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include "plugins/common/sql/driver.h"
#include "plugins/persistence/mysql/mysql-dialect.h"
#include "plugins/persistence/mysql/mysql-memory.h"

typedef struct renderer {
    const wb_sql_names *names;
    const wb_sql_value *values;
    size_t count;
    wb_sql_buffer *text;
} renderer;

static void put_lock(const renderer *r, const char *purpose)
{
    char name[MYS_LOCK_NAME_SIZE];
    mys_lock_name(r->names, purpose, r->names->prefix, name);
    wb_sql_buffer_put(r->text, "'", 1);
    wb_sql_buffer_put_text(r->text, name);
    wb_sql_buffer_put(r->text, "'", 1);
}

static void put_key(const renderer *r, const wb_sql_value *keys, size_t i)
{
    unsigned char room[WB_SQL_KEY_ROOM];
    const wb_sql_key key = wb_sql_listed_key(keys, i, room);
    mys_buffer_put_bytes(r->text, key.data, key.size);
}

static void put_text(const renderer *r, const wb_sql_value *value)
{
    if (value->data)
        mys_buffer_put_bytes(r->text, value->data, value->size);
    else
        wb_sql_buffer_put_text(r->text, "NULL");
}

/* Of a list its element `i`. */
static void put_value(const renderer *r, const wb_sql_value *value, size_t i)
{
    const wb_sql_cell *cells = value->data;
    switch (value->kind) {
    case WB_SQL_A_NUMBER: wb_sql_buffer_put_number(r->text, value->number); break;
    case WB_SQL_A_TEXT: put_text(r, value); break;
    case WB_SQL_A_LOCK: put_lock(r, value->data); break;
    case WB_SQL_SOME_NUMBERS:
        wb_sql_buffer_put_number(r->text, ((const uint64_t *)value->data)[i]);
        break;
    case WB_SQL_SOME_BYTES: mys_buffer_put_bytes(r->text, cells[i].data, cells[i].size); break;
    case WB_SQL_OWNERS:
        wb_sql_buffer_put_number(r->text, ((const wb_claim *)value->data)[i].duplicate_of);
        break;
    case WB_SQL_GONE_BATCHES:
        wb_sql_buffer_put_number(r->text, ((const wb_mark *)value->data)[i].batch);
        break;
    default: put_key(r, value, i); break;
    }
}

static const wb_sql_value *list_of(const renderer *r)
{
    const wb_sql_value *list = r->values;
    while (list->kind == WB_SQL_A_NUMBER || list->kind == WB_SQL_A_TEXT ||
           list->kind == WB_SQL_A_LOCK)
        list++;
    return list;
}

/* A doubled quote ends a part and begins the next. */
static const char *skip_quoted(const char *at, const char *end)
{
    const char *close = memchr(at + 1, *at, (size_t)(end - at - 1));
    return close ? close + 1 : end;
}

static void put_part(const renderer *r, const char *at, const char *end, size_t i)
{
    while (at < end) {
        const char *from = at;
        while (at < end && *at != '$')
            at = *at == '`' || *at == '\'' ? skip_quoted(at, end) : at + 1;
        wb_sql_buffer_put(r->text, from, (size_t)(at - from));
        if (at < end) {
            put_value(r, &r->values[at[1] - '1'], i);
            at += 2;
        }
    }
}

static void put_repeated(const renderer *r, const char *at, const char *end)
{
    const wb_sql_value *list = list_of(r);
    int put = 0;
    for (size_t i = 0; i < list->size; i++) {
        if (!wb_sql_is_listed(list, i))
            continue;
        wb_sql_buffer_put(r->text, ",", (size_t)put);
        put_part(r, at, end, i);
        put = 1;
    }
}

static const char *find_bracket(const char *at, const char *end)
{
    while (at < end && *at != '[')
        at = *at == '`' || *at == '\'' ? skip_quoted(at, end) : at + 1;
    return at;
}

void mys_render(const wb_sql_names *names, const char *statement, const wb_sql_value *values,
                size_t count, wb_sql_buffer *text)
{
    const renderer r = { names, values, count, text };
    const char *end = statement + strlen(statement);
    const char *open = count ? find_bracket(statement, end) : end;

    if (!count) {
        wb_sql_buffer_put(text, statement, (size_t)(end - statement));
        return;
    }
    put_part(&r, statement, open, 0);
    if (open < end) {
        const char *close = strchr(open, ']');
        put_repeated(&r, open + 1, close);
        put_part(&r, close + 1, end, 0);
    }
}
