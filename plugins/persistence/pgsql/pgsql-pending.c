/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/pgsql/pgsql-pending.h"

#include <stdlib.h>

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

    if (s->state != PGSQL_IDLE)
        return pgsql_session_unusable(s, "read pending operations", error);
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
        result = pgsql_report(s, "read pending operations", error);
    else
        result = visit_rows(rows, visit, argument);
    PQclear(rows);
    return result;
}

/* `before`, `limit` and the key of a lock, as the statements want them. */
static void queue_limited(wb_storage_session *s, pgsql_sql which, uint64_t before, size_t limit,
                          const char *purpose, PGresult **ret_result)
{
    const pgsql_names *names = &s->persistence->names;
    char numbers[3][8];
    pgsql_write_u64(numbers[0], before < (uint64_t)INT64_MAX ? before : (uint64_t)INT64_MAX);
    pgsql_write_u64(numbers[1], limit < (size_t)INT64_MAX ? limit : (uint64_t)INT64_MAX);
    pgsql_write_u64(numbers[2], (uint64_t)pgsql_names_lock(names, purpose, names->prefix));
    const pgsql_value values[] = { { numbers[0], 8 }, { numbers[1], 8 }, { numbers[2], 8 } };
    pgsql_queue(s, which, values, 3, ret_result);
}

int pgsql_sweep(wb_storage_session *s, uint64_t before, size_t limit, wb_pending_fn visit,
                void *argument, wb_error *error)
{
    PGresult *rows = NULL;

    if (s->state != PGSQL_IDLE)
        return pgsql_session_unusable(s, "sweep pending operations", error);
    /* the transaction, and with it the lock, lasts until all rows are visited */
    s->state = PGSQL_OPEN;
    pgsql_exchange_start(s);
    pgsql_queue(s, PGSQL_SQL_BEGIN, NULL, 0, NULL);
    queue_limited(s, PGSQL_SQL_SWEEP, before, limit, "waybill sweep", &rows);
    int result = pgsql_exchange_run(s, NULL);
    if (result == WB_OK)
        result = visit_rows(rows, visit, argument);
    else
        result = pgsql_report(s, "sweep pending operations", error);
    PQclear(rows);
    pgsql_undo(s);
    return result;
}

int pgsql_clean_up(wb_storage_session *s, uint64_t before, size_t limit, size_t *ret_deleted,
                   wb_error *error)
{
    PGresult *deleted = NULL;

    if (s->state != PGSQL_IDLE)
        return pgsql_session_unusable(s, "clean up", error);
    pgsql_exchange_start(s);
    queue_limited(s, PGSQL_SQL_CLEAN_UP, before, limit, "waybill cleanup", &deleted);
    int result = pgsql_exchange_run(s, NULL);
    if (result != WB_OK)
        result = pgsql_report(s, "clean up", error);
    else
        *ret_deleted = (size_t)strtoull(PQcmdTuples(deleted), NULL, 10);
    PQclear(deleted);
    return result;
}
