/* SPDX-License-Identifier: Apache-2.0
 *
 * Delayed messages, or their keys, as the lists that statements take: a list a column.
 */
#ifndef WB_COMMON_SQL_COLUMNS_H
#define WB_COMMON_SQL_COLUMNS_H

#include "plugins/common/sql/driver.h"

/** All zero is empty. What cells point to is the caller's. */
typedef struct wb_sql_columns {
    size_t count;
    size_t capacity;
    wb_sql_cell *ids;
    wb_sql_cell *destinations;
    wb_sql_cell *operations;
    uint64_t *retries;
    uint64_t *due;
} wb_sql_columns;

/** Empty columns for so many rows. @return 0, or -1: no memory. */
int wb_sql_columns_init(wb_sql_columns *columns, size_t capacity);
void wb_sql_columns_free(wb_sql_columns *columns);

/** Add a row; there is room for it. */
void wb_sql_columns_add_message(wb_sql_columns *columns, const wb_delayed *message);
void wb_sql_columns_add_key(wb_sql_columns *columns, const wb_delayed_key *key);

/** The three parameters of a statement's keys: of `count` rows from `first`. */
void wb_sql_columns_keys(const wb_sql_columns *columns, size_t first, size_t count,
                         wb_sql_value ret_values[3]);

/** Nanoseconds in microseconds: not before `time`; what is long past is 0. */
uint64_t wb_sql_round_up(int64_t time);
/** And back; never is never. */
int64_t wb_sql_nanoseconds(uint64_t microseconds);

#endif
