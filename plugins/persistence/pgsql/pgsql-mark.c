/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/pgsql/pgsql-transaction.h"

/* One DELETE for all rows that go; an UPDATE for each that only shrinks, which is rare. */
void pgsql_queue_marks(wb_storage_session *s, const wb_mark *marks, size_t count)
{
    size_t gone = 0;
    for (size_t i = 0; i < count; i++)
        gone += !marks[i].remaining;
    if (gone) {
        pgsql_encode_gone(&s->batches, marks, count, gone);
        if (s->batches.failed)
            s->exchange.broken = s->exchange.out_of_memory = 1;
        const pgsql_value value = { s->batches.data, s->batches.size };
        pgsql_queue(s, PGSQL_SQL_MARK, &value, 1, NULL);
    }
    for (size_t i = 0; i < count; i++) {
        char batch[8];
        pgsql_write_u64(batch, marks[i].batch);
        const pgsql_value values[] = { { batch, sizeof batch },
                                       { marks[i].remaining, marks[i].remaining_size } };
        if (marks[i].remaining)
            pgsql_queue(s, PGSQL_SQL_SHRINK, values, 2, NULL);
    }
}

int pgsql_mark(wb_storage_session *s, const wb_mark *marks, size_t count, wb_error *error)
{
    if (s->sql.state != WB_SQL_IDLE)
        return wb_sql_unusable(s, "mark operations as dispatched", error);
    if (!count)
        return WB_OK;
    pgsql_exchange_start(s);
    pgsql_queue_marks(s, marks, count);
    if (pgsql_exchange_run(s, "mark_sent") != WB_OK)
        return wb_sql_report(s, "mark operations as dispatched", error);
    return WB_OK;
}
