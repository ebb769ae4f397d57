/* SPDX-License-Identifier: Apache-2.0
 *
 * The age of records: what time it is, what is old enough to go, and what claims to be from
 * the future.
 */
#include "config.h"

#include <stdio.h>
#include <time.h>

#include "plugins/persistence/sqlite/persistence.h"

#define SECOND INT64_C(1000000000)
#define MILLISECOND INT64_C(1000000)
/* Batch numbers: milliseconds since 2020 in the upper bits. */
#define EPOCH_SECONDS INT64_C(1577836800)
#define BATCH_SHIFT 22
/* A clock that is corrected goes back a little. */
#define FUTURE_AFTER_MS INT64_C(60000)

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

static void tell_future(wb_storage_session *session, uint64_t batch)
{
    const wb_host *host = session->db.host;
    char text[32] = "";
    struct tm parts;
    time_t when = (time_t)(EPOCH_SECONDS + (int64_t)(batch >> BATCH_SHIFT) / 1000);
    if (gmtime_r(&when, &parts))
        (void)strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    host->log(host, WB_LOG_WARNING,
              "records from the future are left alone: is the clock of this host right, or was it "
              "wrong?",
              (const wb_field[]){ { "file", session->persistence->path }, { "newest", text } }, 2);
    session->told_future = 1;
}

/* The newest record, and the newest of the last pending rows that is not parked (a parked
 * row's number is when it is due). A hint: what cannot be read is not told. */
static void look_for_future(wb_storage_session *session, int64_t wall)
{
    int64_t limit = wall / MILLISECOND - EPOCH_SECONDS * 1000 + FUTURE_AFTER_MS;
    if (session->told_future || limit < 0 ||
        wb_sqlite_storage_prepare(
            session, &session->newest,
            "select max((select coalesce(max(batch),?1) from \"waybill_%w_dedup\"),"
            " (select coalesce(max(batch),?1) from (select batch, operations from"
            "  \"waybill_%w_pending\" where batch>?1 order by batch desc limit 100)"
            "  where substr(operations,1,4)<>x'57424b31'))",
            NULL) != WB_OK)
        return;
    int64_t column = wb_sqlite_storage_batch_to_column((uint64_t)limit << BATCH_SHIFT);
    (void)sqlite3_bind_int64(session->newest, 1, column);
    int64_t newest = sqlite3_step(session->newest) == SQLITE_ROW
                         ? sqlite3_column_int64(session->newest, 0)
                         : column;
    (void)sqlite3_reset(session->newest);
    if (newest > column)
        tell_future(session, wb_sqlite_storage_batch_from_column(newest));
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
