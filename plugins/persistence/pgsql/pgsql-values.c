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

static void put_bytes(wb_sql_buffer *buffer, const void *data, size_t size)
{
    pgsql_buffer_put_u32(buffer, (uint32_t)size);
    wb_sql_buffer_put(buffer, data, size);
}

static void put_number(wb_sql_buffer *buffer, uint64_t number)
{
    pgsql_buffer_put_u32(buffer, 8);
    pgsql_buffer_put_u64(buffer, number);
}

static void put_key(wb_sql_buffer *buffer, const wb_sql_value *keys, size_t i)
{
    unsigned char room[WB_SQL_KEY_ROOM];
    const wb_sql_key key = wb_sql_listed_key(keys, i, room);
    put_bytes(buffer, key.data, key.size);
}

static void put_element(wb_sql_buffer *buffer, const wb_sql_value *list, size_t i)
{
    const wb_sql_cell *cells = list->data;
    switch (list->kind) {
    case WB_SQL_SOME_BYTES: put_bytes(buffer, cells[i].data, cells[i].size); break;
    case WB_SQL_SOME_NUMBERS: put_number(buffer, ((const uint64_t *)list->data)[i]); break;
    case WB_SQL_OWNERS: put_number(buffer, ((const wb_claim *)list->data)[i].duplicate_of); break;
    case WB_SQL_GONE_BATCHES: put_number(buffer, ((const wb_mark *)list->data)[i].batch); break;
    default: put_key(buffer, list, i); break;
    }
}

static uint32_t type_of(const wb_sql_value *list)
{
    switch (list->kind) {
    case WB_SQL_SOME_NUMBERS:
    case WB_SQL_OWNERS:
    case WB_SQL_GONE_BATCHES: return OID_INT8;
    default: return OID_BYTEA;
    }
}

static void put_array(wb_sql_buffer *buffer, const wb_sql_value *list)
{
    put_array_header(buffer, type_of(list), wb_sql_count_listed(list));
    for (size_t i = 0; i < list->size; i++)
        if (wb_sql_is_listed(list, i))
            put_element(buffer, list, i);
}

static void encode_number(pgsql_value *value, uint64_t number)
{
    pgsql_write_u64(value->number, number);
    value->data = value->number;
    value->size = sizeof value->number;
}

int pgsql_encode(wb_storage_session *s, const wb_sql_value *from, size_t i, pgsql_value *value)
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
        put_array(&s->arrays[i], from);
        value->data = s->arrays[i].data;
        value->size = s->arrays[i].size;
        return s->arrays[i].failed ? -1 : 0;
    }
}
