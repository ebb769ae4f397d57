/* SPDX-License-Identifier: Apache-2.0
 *
 * The age of records: what time it is, what is old enough to go, and what claims to be from
 * the future.
 */
#include "config.h"

#include <time.h>

#include "plugins/common/sql/ages.h"
#include "plugins/persistence/sqlite/persistence.h"

#define SECOND INT64_C(1000000000)

/* ---- time ----------------------------------------------------------------------------- */

/* A file has no clock but that of the host it is on, and all who use it are on that host. */
int wb_sqlite_storage_clock(wb_storage_session *session, int64_t *ret_wall, wb_error *error)
{
    struct timespec now;
    (void)session;
    (void)error;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    *ret_wall = (int64_t)now.tv_sec * SECOND + now.tv_nsec;
    return WB_OK;
}

/* ---- records from the future -------------------------------------------------------------- */

#define TEXT_OF_(number) #number
#define TEXT_OF(number) TEXT_OF_(number)
#define LIMITED " limit " TEXT_OF(WB_SQL_FUTURE_MAX) ")"

/* A parked row's number is when it is due. A hint: what cannot be read is not told. */
static void look_for_future(wb_storage_session *session, int64_t wall)
{
    if (session->told_future ||
        wb_sqlite_storage_prepare(
            session, &session->newest,
            "select (select count(*) from (select 1 from \"waybill_%w_dedup\" where batch>=?1" LIMITED
            "), (select count(*) from (select operations from \"waybill_%w_pending\" where batch>=?1"
            LIMITED " where cast(substr(operations,1,4) as text)<>'" WB_SQL_PARKED "'),"
            " (select max(batch) from \"waybill_%w_dedup\")",
            NULL) != WB_OK)
        return;
    sqlite3_stmt *row = session->newest;
    (void)sqlite3_bind_int64(row, 1, wb_sqlite_storage_batch_to_column(wb_sql_future(wall)));
    if (sqlite3_step(row) == SQLITE_ROW) {
        const uint64_t records = (uint64_t)sqlite3_column_int64(row, 0);
        const uint64_t pending = (uint64_t)sqlite3_column_int64(row, 1);
        const uint64_t newest = wb_sqlite_storage_batch_from_column(sqlite3_column_int64(row, 2));
        wb_sql_report_future(session->db.host, records,
                             pending, newest, wall);
        session->told_future = records || pending;
    }
    (void)sqlite3_reset(row);
}

/* ---- clean up ------------------------------------------------------------------------- */

/* One instance at a time by nature: a file has one writer. A busy file is left alone, the
 * host comes again. */
int wb_sqlite_storage_clean_up(wb_storage_session *session, uint64_t before, size_t limit,
                               size_t *ret_deleted, wb_error *error)
{
    int64_t wall = 0;
    *ret_deleted = 0;
    (void)wb_sqlite_storage_clock(session, &wall, NULL);
    look_for_future(session, wall);
    int result = wb_sqlite_storage_prepare(
        session, &session->clean_up,
        "delete from \"waybill_%w_dedup\" where (batch,key) in"
        " (select batch, key from \"waybill_%w_dedup\" d where batch<?1"
        "  and not exists(select 1 from \"waybill_%w_pending\" p where p.batch=d.batch)"
        "  order by batch limit ?2)",
        error);
    if (result == WB_OK)
        result = wb_sqlite_db_begin(&session->db, WB_SQLITE_DB_PROCESS_CRASH, error);
    if (result != WB_OK)
        return wb_sqlite_db_was_busy(&session->db, result) ? WB_OK : result;
    (void)sqlite3_bind_int64(session->clean_up, 1, wb_sqlite_storage_batch_to_column(before));
    (void)sqlite3_bind_int64(session->clean_up, 2, limit > INT64_MAX ? INT64_MAX : (int64_t)limit);
    result = wb_sqlite_db_run(&session->db, session->clean_up, "clean up deduplication records",
                              error);
    size_t deleted = (size_t)sqlite3_changes(session->db.handle);
    if (result == WB_OK)
        result = wb_sqlite_db_commit(&session->db, error);
    if (result == WB_OK)
        *ret_deleted = deleted;
    wb_sqlite_db_rollback(&session->db);
    return result;
}
