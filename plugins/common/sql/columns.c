/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/sql/columns.h"

#include <stdlib.h>

int wb_sql_columns_init(wb_sql_columns *columns, size_t capacity)
{
    *columns = (wb_sql_columns){ .capacity = capacity };
    wb_sql_cell *cells = calloc(capacity, 3 * sizeof *cells);
    columns->retries = calloc(capacity, 2 * sizeof *columns->retries);
    columns->ids = cells;
    if (!cells || !columns->retries) {
        wb_sql_columns_free(columns);
        return -1;
    }
    columns->destinations = cells + capacity;
    columns->operations = cells + 2 * capacity;
    columns->due = columns->retries + capacity;
    return 0;
}

void wb_sql_columns_free(wb_sql_columns *columns)
{
    free(columns->ids);
    free(columns->retries);
    *columns = (wb_sql_columns){ 0 };
}

/* Where a cell must not be NULL, nothing is something, too. */
static wb_sql_cell cell_of(const void *data, size_t size)
{
    return (wb_sql_cell){ size ? data : "", size };
}

void wb_sql_columns_add_message(wb_sql_columns *columns, const wb_delayed *message)
{
    const size_t i = columns->count++;
    columns->ids[i] = cell_of(message->id, message->id_size);
    columns->destinations[i] = cell_of(message->destination, message->destination_size);
    columns->operations[i] = cell_of(message->operation, message->operation_size);
    columns->retries[i] = message->retries;
    columns->due[i] = wb_sql_round_up(message->due);
}

void wb_sql_columns_add_key(wb_sql_columns *columns, const wb_delayed_key *key)
{
    const size_t i = columns->count++;
    columns->ids[i] = cell_of(key->id, key->id_size);
    columns->destinations[i] = cell_of(key->destination, key->destination_size);
    columns->retries[i] = key->retries;
}

void wb_sql_columns_keys(const wb_sql_columns *columns, size_t first, size_t count,
                         wb_sql_value ret_values[3])
{
    ret_values[0] = WB_SQL_LIST(WB_SQL_SOME_BYTES, columns->ids + first, count);
    ret_values[1] = WB_SQL_LIST(WB_SQL_SOME_BYTES, columns->destinations + first, count);
    ret_values[2] = WB_SQL_LIST(WB_SQL_SOME_NUMBERS, columns->retries + first, count);
}

uint64_t wb_sql_round_up(int64_t time)
{
    return time <= 0 ? 0 : (uint64_t)time / 1000 + (time % 1000 != 0);
}

int64_t wb_sql_nanoseconds(uint64_t microseconds)
{
    return microseconds > (uint64_t)INT64_MAX / 1000 ? INT64_MAX : (int64_t)microseconds * 1000;
}
