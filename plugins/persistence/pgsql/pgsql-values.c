/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/pgsql/pgsql-values.h"

#include "plugins/persistence/pgsql/pgsql-dialect.h"
#include "plugins/persistence/pgsql/pgsql-session.h"

#define OID_INT8 20
#define OID_BYTEA 17

static void put_array_header(wb_sql_buffer *buffer, uint32_t type, size_t count)
{
    wb_sql_buffer_reset(buffer);
    pgsql_buffer_put_u32(buffer, count ? 1 : 0); /* dimensions */
    pgsql_buffer_put_u32(buffer, 0);             /* no NULLs */
    pgsql_buffer_put_u32(buffer, type);
    if (!count)
        return;
    pgsql_buffer_put_u32(buffer, (uint32_t)count);
    pgsql_buffer_put_u32(buffer, 1); /* lower bound */
}

static void put_key(wb_sql_buffer *buffer, const wb_claim *claim)
{
    pgsql_buffer_put_u32(buffer, (uint32_t)claim->id_size);
    wb_sql_buffer_put(buffer, claim->id, claim->id_size);
}

static void put_number(wb_sql_buffer *buffer, uint64_t number)
{
    pgsql_buffer_put_u32(buffer, 8);
    pgsql_buffer_put_u64(buffer, number);
}

static void put_array(wb_sql_buffer *buffer, const wb_sql_value *list)
{
    const int keys = list->kind == WB_SQL_SOME_KEYS || list->kind == WB_SQL_UNSETTLED_KEYS;
    put_array_header(buffer, keys ? OID_BYTEA : OID_INT8, wb_sql_count_listed(list));
    for (size_t i = 0; i < list->size; i++) {
        if (!wb_sql_is_listed(list, i))
            continue;
        if (keys)
            put_key(buffer, (const wb_claim *)list->data + i);
        else if (list->kind == WB_SQL_GONE_BATCHES)
            put_number(buffer, ((const wb_mark *)list->data)[i].batch);
        else
            put_number(buffer, ((const uint64_t *)list->data)[i]);
    }
}

static void encode_number(pgsql_value *value, uint64_t number)
{
    pgsql_write_u64(value->number, number);
    value->data = value->number;
    value->size = sizeof value->number;
}

int pgsql_encode(wb_storage_session *s, const wb_sql_value *from, pgsql_value *value)
{
    const wb_sql_names *names = &s->sql.outbox->names;

    switch (from->kind) {
    case WB_SQL_A_NUMBER: /* more than a bigint holds is as good as the most */
        encode_number(value, from->number < (uint64_t)INT64_MAX ? from->number : INT64_MAX);
        return 0;
    case WB_SQL_A_LOCK:
        encode_number(value, (uint64_t)pgsql_lock_key(names, from->data, names->prefix));
        return 0;
    case WB_SQL_A_TEXT:
        value->data = from->data;
        value->size = from->size;
        return 0;
    default:
        put_array(&s->array, from);
        value->data = s->array.data;
        value->size = s->array.size;
        return s->array.failed ? -1 : 0;
    }
}
