/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/common/sqlite/lockfile.h"
#include "plugins/persistence/sqlite/persistence.h"

#define ROW_BYTES_KEPT ((size_t)1 << 20)

/* ---- marks ---------------------------------------------------------------------------- */

static int mark_all(wb_storage_session *session, const wb_mark *mark, wb_error *error)
{
    int result = wb_sqlite_storage_prepare(session, &session->delete_pending,
                                           "delete from \"waybill_%w_pending\" where batch=?1",
                                           error);
    if (result != WB_OK)
        return result;
    (void)sqlite3_bind_int64(session->delete_pending, 1,
                             wb_sqlite_storage_batch_to_column(mark->batch));
    return wb_sqlite_db_run(&session->db, session->delete_pending, "mark operations", error);
}

static int mark_some(wb_storage_session *session, const wb_mark *mark, wb_error *error)
{
    int result =
        wb_sqlite_storage_prepare(session, &session->update_pending,
                                  "update \"waybill_%w_pending\" set operations=?2 where batch=?1",
                                  error);
    if (result != WB_OK)
        return result;
    (void)sqlite3_bind_int64(session->update_pending, 1,
                             wb_sqlite_storage_batch_to_column(mark->batch));
    (void)sqlite3_bind_blob64(session->update_pending, 2, mark->remaining, mark->remaining_size,
                              SQLITE_STATIC);
    return wb_sqlite_db_run(&session->db, session->update_pending, "mark operations", error);
}

int wb_sqlite_storage_mark_each(wb_storage_session *session, const wb_mark *marks, size_t count, wb_error *error)
{
    int result = WB_OK;
    for (size_t i = 0; result == WB_OK && i < count; i++)
        result = marks[i].remaining ? mark_some(session, &marks[i], error)
                                    : mark_all(session, &marks[i], error);
    return result;
}

int wb_sqlite_storage_mark(wb_storage_session *session, const wb_mark *marks, size_t count,
                           wb_error *error)
{
    const wb_begin begin = { .struct_size = sizeof begin, .marks = marks, .mark_count = count };
    return wb_sqlite_apart_settle(session, &begin, error);
}

/* ---- visits --------------------------------------------------------------------------- */

static int reserve(wb_storage_session *session, size_t size)
{
    if (size <= session->operations_capacity)
        return 0;
    void *grown = realloc(session->operations, size);
    if (!grown)
        return -1;
    session->operations = grown;
    session->operations_capacity = size;
    return 0;
}

/* A session lives as long as its worker: it does not keep the memory of its largest row. */
static void shrink(wb_storage_session *session)
{
    if (session->operations_capacity <= ROW_BYTES_KEPT)
        return;
    free(session->operations);
    session->operations = NULL;
    session->operations_capacity = 0;
}

int wb_sqlite_storage_read_row(wb_storage_session *session, sqlite3_stmt *statement, int *ret_found,
                               uint64_t *ret_batch, wb_error *error)
{
    int result = WB_OK;
    int code = sqlite3_step(statement);
    *ret_found = code == SQLITE_ROW;
    if (code == SQLITE_ROW) {
        const void *data = sqlite3_column_blob(statement, 1);
        size_t size = data ? (size_t)sqlite3_column_bytes(statement, 1) : 0;
        *ret_batch = wb_sqlite_storage_batch_from_column(sqlite3_column_int64(statement, 0));
        if (reserve(session, size + 1) < 0)
            result = wb_sqlite_db_out_of_memory(&session->db, error);
        else if (size)
            memcpy(session->operations, data, size);
        session->operations_size = size;
    } else if (code != SQLITE_DONE) {
        result = wb_sqlite_db_fail(&session->db, code, "read pending operations", error);
    }
    (void)sqlite3_reset(statement);
    return result;
}

int wb_sqlite_storage_visit_row(wb_storage_session *session, uint64_t batch, wb_pending_fn visit,
                                void *argument)
{
    const wb_pending row = { .struct_size = sizeof row,
                             .batch = batch,
                             .operations = session->operations,
                             .operations_size = session->operations_size };
    int result = visit(argument, &row);
    shrink(session);
    return result;
}

int wb_sqlite_storage_pending(wb_storage_session *session, const uint64_t *batches, size_t count,
                              wb_pending_fn visit, void *argument, wb_error *error)
{
    int result = wb_sqlite_storage_prepare(session, &session->find_pending,
                                           "select batch, operations from \"waybill_%w_pending\""
                                           " where batch=?1",
                                           error);
    for (size_t i = 0; result == WB_OK && i < count; i++) {
        int found = 0;
        uint64_t batch = 0;
        (void)sqlite3_bind_int64(session->find_pending, 1,
                                 wb_sqlite_storage_batch_to_column(batches[i]));
        result = wb_sqlite_storage_read_row(session, session->find_pending, &found, &batch, error);
        if (result == WB_OK && found)
            result = wb_sqlite_storage_visit_row(session, batch, visit, argument);
    }
    return result;
}

/* ---- sweep ---------------------------------------------------------------------------- */

int64_t wb_sqlite_storage_lock_of(int64_t locks, const char *endpoint) /* FNV-1a */
{
    uint32_t hash = 2166136261u;
    for (; *endpoint; endpoint++)
        hash = (hash ^ (unsigned char)*endpoint) * 16777619u;
    return locks + (int64_t)hash;
}

/* A lock of the operating system, not a transaction: a visitor sends, perhaps through
 * this very file. */
static int lock_sweep(wb_storage_session *session, int64_t lock, int *ret_locked, wb_error *error)
{
    const wb_host *host = session->db.host;
    const char *path = session->persistence->sessions_path;
    if (session->sweep_fd < 0)
        session->sweep_fd = wb_sqlite_lockfile_open(path);
    int taken = session->sweep_fd < 0 ? -1 : wb_sqlite_lockfile_try(session->sweep_fd, lock);
    *ret_locked = taken == 1;
    if (taken >= 0)
        return WB_OK;
    return wb_sqlite_db_fail_file(host, errno, "lock", path, error);
}

/* Visit at most `limit` rows above `after` and below `before`, one after the other. */
static int walk(wb_storage_session *session, uint64_t after, uint64_t before, size_t limit,
                wb_pending_fn visit, void *argument, wb_error *error)
{
    int found = 1;
    uint64_t batch = after;
    int result = wb_sqlite_storage_prepare(session, &session->oldest_pending,
                                           "select batch, operations from \"waybill_%w_pending\""
                                           " where batch>?1 and batch<?2 order by batch limit 1",
                                           error);
    for (size_t i = 0; result == WB_OK && i < limit; i++) {
        (void)sqlite3_bind_int64(session->oldest_pending, 1,
                                 wb_sqlite_storage_batch_to_column(batch));
        (void)sqlite3_bind_int64(session->oldest_pending, 2,
                                 wb_sqlite_storage_batch_to_column(before));
        result = wb_sqlite_storage_read_row(session, session->oldest_pending, &found, &batch, error);
        if (result != WB_OK || !found)
            break;
        result = wb_sqlite_storage_visit_row(session, batch, visit, argument);
    }
    return result;
}

static int walk_alone(wb_storage_session *session, uint64_t after, uint64_t before, size_t limit,
                      wb_pending_fn visit, void *argument, wb_error *error)
{
    int locked = 0;
    int64_t lock = wb_sqlite_storage_lock_of(WB_SQLITE_SWEEP_LOCKS, session->persistence->endpoint->name);
    int result = lock_sweep(session, lock, &locked, error);
    if (!locked)
        return result;
    result = walk(session, after, before, limit, visit, argument, error);
    wb_sqlite_lockfile_release(session->sweep_fd, lock);
    return result;
}

int wb_sqlite_storage_sweep(wb_storage_session *session, uint64_t before, size_t limit,
                            wb_pending_fn visit, void *argument, wb_error *error)
{
    return walk_alone(session, 0, before, limit, visit, argument, error);
}

int wb_sqlite_storage_next_pending(wb_storage_session *session, uint64_t after, uint64_t before,
                                   wb_pending_fn visit, void *argument, wb_error *error)
{
    return walk_alone(session, after, before, 1, visit, argument, error);
}

/* ---- the row in hand ---------------------------------------------------------------------- */

/* Rows that share a lock are dispatched one after the other. */
static int64_t row_lock(const char *endpoint, uint64_t batch)
{
    const uint32_t mixed = (uint32_t)((batch * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
    return WB_SQLITE_ROW_LOCKS + (wb_sqlite_storage_lock_of(0, endpoint) ^ mixed);
}

static int find_row(wb_storage_session *session, uint64_t batch, int *ret_found, wb_error *error)
{
    int result = wb_sqlite_storage_prepare(session, &session->has_pending,
                                           "select 1 from \"waybill_%w_pending\" where batch=?1", error);
    if (result != WB_OK)
        return result;
    (void)sqlite3_bind_int64(session->has_pending, 1, wb_sqlite_storage_batch_to_column(batch));
    int code = sqlite3_step(session->has_pending);
    *ret_found = code == SQLITE_ROW;
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        result = wb_sqlite_db_fail(&session->db, code, "take a pending row", error);
    (void)sqlite3_reset(session->has_pending);
    return result;
}

/* Whoever had it before may have dispatched all of it: so the row is looked for behind the lock. */
int wb_sqlite_storage_take_pending(wb_storage_session *session, uint64_t batch, int *ret_taken,
                                   wb_error *error)
{
    int locked = 0, found = 0;
    if (session->row_lock)
        wb_sqlite_lockfile_release(session->sweep_fd, session->row_lock);
    session->row_lock = 0;
    *ret_taken = WB_TAKEN_BY_OTHERS;
    if (!batch)
        return WB_OK;
    int64_t lock = row_lock(session->persistence->endpoint->name, batch);
    int result = lock_sweep(session, lock, &locked, error);
    if (!locked)
        return result;
    session->row_lock = lock;
    result = find_row(session, batch, &found, error);
    if (result == WB_OK && found)
        *ret_taken = WB_TAKEN;
    return result;
}
