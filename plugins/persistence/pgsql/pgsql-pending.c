/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/pgsql/pgsql-pending.h"

#include <stdlib.h>

#include "plugins/persistence/pgsql/pgsql-clock.h"
#include "plugins/persistence/pgsql/pgsql-transaction.h"

static int visit_rows(const PGresult *rows, wb_pending_fn visit, void *argument)
{
    int result = WB_OK;
    for (int row = 0; row < PQntuples(rows) && result == WB_OK; row++) {
        const wb_pending pending = {
            .batch = pgsql_read_u64(PQgetvalue(rows, row, 0)),
            .operations = PQgetvalue(rows, row, 1),
            .operations_size = (size_t)PQgetlength(rows, row, 1),
        };
        result = visit(argument, &pending);
    }
    return result;
}

int pgsql_pending(wb_storage_session *s, const uint64_t *batches, size_t count, wb_pending_fn visit,
                  void *argument, wb_error *error)
{
    PGresult *rows = NULL;

    if (s->sql.state != WB_SQL_IDLE)
        return wb_sql_unusable(s, "read pending operations", error);
    if (!count)
        return WB_OK;
    pgsql_exchange_start(s);
    pgsql_encode_batches(&s->batches, batches, count);
    if (s->batches.failed)
        s->exchange.broken = s->exchange.out_of_memory = 1;
    const pgsql_value value = { s->batches.data, s->batches.size };
    pgsql_queue(s, PGSQL_SQL_PENDING, &value, 1, &rows);
    int result = pgsql_exchange_run(s, NULL);
    if (result != WB_OK)
        result = wb_sql_report(s, "read pending operations", error);
    else
        result = visit_rows(rows, visit, argument);
    PQclear(rows);
    return result;
}

/* ---- one instance at a time -------------------------------------------------------- */

/* Two numbers and the key of a lock, as the statements want them. */
static void queue_locked(wb_storage_session *s, pgsql_sql which, uint64_t first, uint64_t second,
                         const char *purpose, PGresult **ret_result)
{
    const wb_sql_names *names = &s->persistence->sql.names;
    const uint64_t most = (uint64_t)INT64_MAX;
    char numbers[3][8];
    pgsql_write_u64(numbers[0], first < most ? first : most);
    pgsql_write_u64(numbers[1], second < most ? second : most);
    pgsql_write_u64(numbers[2], (uint64_t)pgsql_names_lock(names, purpose, names->prefix));
    const pgsql_value values[] = { { numbers[0], 8 }, { numbers[1], 8 }, { numbers[2], 8 } };
    pgsql_queue(s, which, values, 3, ret_result);
}

/* The lock is the transaction's, which lasts until the last row is visited; to take it again
 * with each row costs nothing. */
static int read_next(wb_storage_session *s, uint64_t from, uint64_t before, PGresult **ret_row)
{
    pgsql_exchange_start(s);
    if (s->sql.state == WB_SQL_IDLE)
        pgsql_queue(s, PGSQL_SQL_BEGIN, NULL, 0, NULL);
    s->sql.state = WB_SQL_OPEN;
    queue_locked(s, PGSQL_SQL_NEXT, from, before, "waybill sweep", ret_row);
    return pgsql_exchange_run(s, NULL);
}

static int walk(wb_storage_session *s, uint64_t from, uint64_t before, size_t limit,
                wb_pending_fn visit, void *argument, wb_error *error)
{
    int result = WB_OK;
    int found = 1;

    for (size_t i = 0; i < limit && found && result == WB_OK; i++) {
        PGresult *row = NULL;
        result = read_next(s, from, before, &row);
        found = result == WB_OK && PQntuples(row) > 0;
        if (found) {
            from = pgsql_read_u64(PQgetvalue(row, 0, 0)) + 1;
            result = visit_rows(row, visit, argument);
        } else if (result != WB_OK) {
            result = wb_sql_report(s, "sweep pending operations", error);
        }
        PQclear(row);
    }
    pgsql_undo(s);
    return result;
}

int pgsql_sweep(wb_storage_session *s, uint64_t before, size_t limit, wb_pending_fn visit,
                void *argument, wb_error *error)
{
    if (s->sql.state != WB_SQL_IDLE)
        return wb_sql_unusable(s, "sweep pending operations", error);
    return walk(s, 0, before, limit, visit, argument, error);
}

int pgsql_next_pending(wb_storage_session *s, uint64_t after, uint64_t before,
                       wb_pending_fn visit, void *argument, wb_error *error)
{
    if (s->sql.state != WB_SQL_IDLE)
        return wb_sql_unusable(s, "sweep pending operations", error);
    if (after >= before)
        return WB_OK;
    return walk(s, after + 1, before, 1, visit, argument, error);
}

int pgsql_clean_up(wb_storage_session *s, uint64_t before, size_t limit, size_t *ret_deleted,
                   wb_error *error)
{
    PGresult *deleted = NULL;

    if (s->sql.state != WB_SQL_IDLE)
        return wb_sql_unusable(s, "clean up", error);
    int result = pgsql_clock_look_ahead(s);
    if (result != WB_OK)
        return wb_sql_report(s, "clean up", error);
    pgsql_exchange_start(s);
    queue_locked(s, PGSQL_SQL_CLEAN_UP, before, limit, "waybill cleanup", &deleted);
    result = pgsql_exchange_run(s, NULL);
    if (result != WB_OK)
        result = wb_sql_report(s, "clean up", error);
    else
        *ret_deleted = (size_t)strtoull(PQcmdTuples(deleted), NULL, 10);
    PQclear(deleted);
    return result;
}
