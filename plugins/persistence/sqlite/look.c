/* SPDX-License-Identifier: Apache-2.0
 *
 * What people look at who look after an endpoint: they read what is committed, and wait for nobody.
 */
#include "config.h"

#include "plugins/persistence/sqlite/persistence.h"

#define LOOK "look at the outbox"
/* Counted in some ten milliseconds. SQLite has no estimates. */
#define COUNTED_MAX 1000000

static int64_t limited(size_t limit)
{
    return limit > INT64_MAX ? INT64_MAX : (int64_t)limit;
}

/* ---- in numbers ------------------------------------------------------------------------ */

/* One row of a statement that is run once. @return the class; `cells` of them may be NULL in SQL: 0. */
static int ask(wb_storage_session *session, sqlite3_stmt *statement, int64_t *cells, int count, wb_error *error)
{
    int result = WB_OK;
    const int code = sqlite3_step(statement);
    for (int i = 0; i < count && code == SQLITE_ROW; i++)
        cells[i] = sqlite3_column_int64(statement, i);
    if (code != SQLITE_ROW)
        result = wb_sqlite_db_fail(&session->db, code, LOOK, error);
    (void)sqlite3_reset(statement);
    return result;
}

/* -1 where the library was built without dbstat; it reads the whole table. */
static int64_t bytes_of(wb_storage_session *session, const char *format)
{
    sqlite3_stmt *statement = NULL;
    int64_t bytes = -1;
    if (wb_sqlite_storage_prepare(session, &statement, format, NULL) == WB_OK &&
        ask(session, statement, &bytes, 1, NULL) != WB_OK)
        bytes = -1;
    (void)sqlite3_finalize(statement);
    return bytes;
}

#define BYTES_OF(table)                                                                            \
    "select sum(pgsize) from dbstat where aggregate=1 and name in "                                \
    "(select name from sqlite_master where tbl_name='waybill_%w_" table "')"

static uint64_t batch_or_none(int64_t records, int64_t column)
{
    return records ? wb_sqlite_storage_batch_from_column(column) : 0;
}

int wb_sqlite_storage_stats(wb_storage_session *session, wb_outbox_stats *stats, wb_error *error)
{
    sqlite3_stmt *statement = NULL;
    int64_t cells[3];
    int result = wb_sqlite_storage_prepare(
        session, &statement,
        "select (select count(*) from (select 1 from \"waybill_%w_dedup\" limit ?1)),"
        " (select min(batch) from \"waybill_%w_dedup\"), (select max(batch) from \"waybill_%w_dedup\")",
        error);
    if (result == WB_OK) {
        (void)sqlite3_bind_int64(statement, 1, stats->is_exact ? INT64_MAX : COUNTED_MAX + 1);
        result = ask(session, statement, cells, 3, error);
    }
    (void)sqlite3_finalize(statement);
    if (result != WB_OK)
        return result;
    const int is_all = stats->is_exact || cells[0] <= COUNTED_MAX;
    stats->records = (uint64_t)cells[0];
    stats->records_are = is_all ? WB_COUNT_EXACT : WB_COUNT_AT_LEAST;
    stats->oldest_record = batch_or_none(cells[0], cells[1]);
    stats->newest_record = batch_or_none(cells[0], cells[2]);
    stats->record_bytes = is_all ? bytes_of(session, BYTES_OF("dedup")) : -1;
    stats->pending_bytes = is_all ? bytes_of(session, BYTES_OF("pending")) : -1;
    return WB_OK;
}

int wb_sqlite_storage_count_records(wb_storage_session *session, uint64_t from, uint64_t before,
                                    size_t limit, uint64_t *ret_count, wb_error *error)
{
    int64_t count = 0;
    int result = wb_sqlite_storage_prepare(
        session, &session->count_records,
        "select count(*) from (select 1 from \"waybill_%w_dedup\" d where batch>=?1 and batch<?2"
        " and not exists(select 1 from \"waybill_%w_pending\" p where p.batch=d.batch) limit ?3)",
        error);
    *ret_count = 0;
    if (result != WB_OK)
        return result;
    sqlite3_stmt *statement = session->count_records;
    (void)sqlite3_bind_int64(statement, 1, wb_sqlite_storage_batch_to_column(from));
    (void)sqlite3_bind_int64(statement, 2, wb_sqlite_storage_batch_to_column(before));
    (void)sqlite3_bind_int64(statement, 3, limited(limit));
    result = ask(session, statement, &count, 1, error);
    *ret_count = (uint64_t)count;
    return result;
}

/* ---- rows ------------------------------------------------------------------------------- */

/* Row by row, each a short look of its own: a reader that stays would keep the log from being carried
 * into the file. */
int wb_sqlite_storage_list_pending(wb_storage_session *session, const wb_pending_filter *filter,
                                   wb_pending_fn visit, void *argument, wb_error *error)
{
    int found = 1;
    uint64_t batch = filter->after;
    int result = wb_sqlite_storage_prepare(
        session, &session->list_heads,
        "select batch, substr(operations,1,?3) from \"waybill_%w_pending\""
        " where batch>?1 and batch<?2 order by batch limit 1",
        error);
    for (size_t i = 0; result == WB_OK && (!filter->limit || i < filter->limit); i++) {
        sqlite3_stmt *statement = session->list_heads;
        (void)sqlite3_bind_int64(statement, 1, wb_sqlite_storage_batch_to_column(batch));
        (void)sqlite3_bind_int64(statement, 2, wb_sqlite_storage_batch_to_column(filter->before));
        (void)sqlite3_bind_int64(statement, 3, filter->head ? limited(filter->head) : INT32_MAX);
        result = wb_sqlite_storage_read_row(session, statement, &found, &batch, error);
        if (result != WB_OK || !found)
            break;
        result = wb_sqlite_storage_visit_row(session, batch, visit, argument);
    }
    return result;
}
