/* SPDX-License-Identifier: Apache-2.0
 *
 * How far the partitions of a transport are done with. A transaction holds the file: whoever reads a row in
 * one reads what it will write.
 */
#include "config.h"

#include "plugins/persistence/sqlite/persistence.h"

static void bind_partition(sqlite3_stmt *statement, const wb_position *position)
{
    (void)sqlite3_bind_blob64(statement, 1, position->partition, position->partition_size, SQLITE_STATIC);
}

static int find(wb_storage_session *session, wb_position *position, wb_error *error)
{
    position->found = position->batch = 0;
    int result = wb_sqlite_storage_prepare(session, &session->find_position,
                                           "select position, batch from \"waybill_%w_positions\" where partition=?1",
                                           error);
    if (result != WB_OK)
        return result;
    bind_partition(session->find_position, position);
    int code = sqlite3_step(session->find_position);
    if (code == SQLITE_ROW) {
        position->found = (uint64_t)sqlite3_column_int64(session->find_position, 0);
        position->batch = wb_sqlite_storage_batch_from_column(sqlite3_column_int64(session->find_position, 1));
    } else if (code != SQLITE_DONE) {
        result = wb_sqlite_db_fail(&session->db, code, "find a position", error);
    }
    (void)sqlite3_reset(session->find_position);
    return result;
}

static int move(wb_storage_session *session, const wb_position *position, uint64_t batch, wb_error *error)
{
    int result = wb_sqlite_storage_prepare(
        session, &session->move_position,
        "insert into \"waybill_%w_positions\"(partition, position, batch) values(?1, ?2, ?3)"
        " on conflict do update set position=excluded.position, batch=excluded.batch"
        " where position<excluded.position", error);
    if (result != WB_OK)
        return result;
    bind_partition(session->move_position, position);
    (void)sqlite3_bind_int64(session->move_position, 2, (int64_t)position->next);
    (void)sqlite3_bind_int64(session->move_position, 3, wb_sqlite_storage_batch_to_column(batch));
    return wb_sqlite_db_run(&session->db, session->move_position, "move a position on", error);
}

int wb_sqlite_positions_claim(wb_storage_session *session, wb_begin *begin, wb_error *error)
{
    int result = WB_OK;
    for (size_t i = 0; result == WB_OK && i < begin->position_count; i++) {
        result = find(session, &begin->positions[i], error);
        if (result == WB_OK)
            result = move(session, &begin->positions[i], begin->batch, error);
    }
    return result;
}

int wb_sqlite_positions_set_back(wb_storage_session *session, const wb_commit *commit, wb_error *error)
{
    int result = wb_sqlite_storage_prepare(session, &session->set_position_back,
                                           "update \"waybill_%w_positions\" set position=?2, batch=?3"
                                           " where partition=?1 and batch=?4", error);
    for (size_t i = 0; result == WB_OK && i < commit->position_count; i++) {
        sqlite3_stmt *statement = session->set_position_back;
        bind_partition(statement, &commit->positions[i]);
        (void)sqlite3_bind_int64(statement, 2, (int64_t)commit->positions[i].next);
        (void)sqlite3_bind_int64(statement, 3, wb_sqlite_storage_batch_to_column(commit->positions[i].batch));
        (void)sqlite3_bind_int64(statement, 4, wb_sqlite_storage_batch_to_column(commit->batch));
        result = wb_sqlite_db_run(&session->db, statement, "set a position back", error);
    }
    return result;
}

static wb_position read_row(sqlite3_stmt *statement)
{
    return (wb_position){ .partition = sqlite3_column_blob(statement, 0),
                          .partition_size = (size_t)sqlite3_column_bytes(statement, 0),
                          .found = (uint64_t)sqlite3_column_int64(statement, 1),
                          .batch = wb_sqlite_storage_batch_from_column(sqlite3_column_int64(statement, 2)) };
}

int wb_sqlite_positions_visit(wb_storage_session *session, wb_position_fn visit, void *argument, wb_error *error)
{
    sqlite3_stmt *statement = NULL;
    int code = SQLITE_DONE;
    int result = wb_sqlite_storage_prepare(session, &statement,
                                           "select partition, position, batch from \"waybill_%w_positions\"", error);
    while (result == WB_OK && (code = sqlite3_step(statement)) == SQLITE_ROW) {
        const wb_position position = read_row(statement);
        result = visit(argument, &position);
    }
    if (result == WB_OK && code != SQLITE_DONE)
        result = wb_sqlite_db_fail(&session->db, code, "read positions", error);
    (void)sqlite3_finalize(statement);
    return result;
}

int wb_sqlite_positions_forget(wb_storage_session *session, size_t *ret_count, wb_error *error)
{
    sqlite3_stmt *statement = NULL;
    int result = wb_sqlite_db_begin(&session->db, WB_SQLITE_DB_POWER_LOSS, error);
    if (result != WB_OK)
        return result;
    result = wb_sqlite_storage_prepare(session, &statement, "delete from \"waybill_%w_positions\"", error);
    if (result == WB_OK)
        result = wb_sqlite_db_run(&session->db, statement, "forget positions", error);
    *ret_count = result == WB_OK ? (size_t)sqlite3_changes(session->db.handle) : 0;
    (void)sqlite3_finalize(statement);
    if (result == WB_OK)
        result = wb_sqlite_db_commit(&session->db, error);
    if (result != WB_OK)
        wb_sqlite_db_rollback(&session->db);
    return result;
}
