/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/sqlite/delayed.h"
#include "plugins/persistence/sqlite/persistence.h"

/* ---- begin ---------------------------------------------------------------------------- */

/* The statement may be run as long as `room` is there. */
static void bind_key(const wb_storage_session *session, sqlite3_stmt *statement, int parameter,
                     const wb_claim *claim, unsigned char room[WB_SQL_KEY_ROOM])
{
    wb_sql_key key = { claim->id, claim->id_size };
    if (session->has_compact_keys)
        key = wb_sql_key_exchange(claim->id, claim->id_size, room);
    (void)sqlite3_bind_blob64(statement, parameter, key.data, key.size, SQLITE_STATIC);
}

/* Leaves duplicate_of as it is where there is no record. */
static int find_owner(wb_storage_session *session, wb_claim *claim, wb_error *error)
{
    unsigned char room[WB_SQL_KEY_ROOM];
    int result = wb_sqlite_storage_prepare(session, &session->find_claim,
                                           "select batch from \"waybill_%w_dedup\" where key=?1",
                                           error);
    if (result != WB_OK)
        return result;
    bind_key(session, session->find_claim, 1, claim, room);
    int code = sqlite3_step(session->find_claim);
    if (code == SQLITE_ROW)
        claim->duplicate_of =
            wb_sqlite_storage_batch_from_column(sqlite3_column_int64(session->find_claim, 0));
    else if (code != SQLITE_DONE)
        result = wb_sqlite_db_fail(&session->db, code, "find a deduplication record", error);
    (void)sqlite3_reset(session->find_claim);
    return result;
}

/* The insert is the check: a key that is there already makes no row. */
int wb_sqlite_storage_claim(wb_storage_session *session, uint64_t batch, const wb_claim *claim, int *ret_is_new,
                            wb_error *error)
{
    unsigned char room[WB_SQL_KEY_ROOM];
    int result =
        wb_sqlite_storage_prepare(session, &session->insert_claim,
                                  "insert into \"waybill_%w_dedup\"(batch,key) values(?1,?2)"
                                  " on conflict do nothing", error);
    if (result != WB_OK)
        return result;
    (void)sqlite3_bind_int64(session->insert_claim, 1, wb_sqlite_storage_batch_to_column(batch));
    bind_key(session, session->insert_claim, 2, claim, room);
    result = wb_sqlite_db_run(&session->db, session->insert_claim, "claim a message id", error);
    *ret_is_new = result == WB_OK && sqlite3_changes(session->db.handle) != 0;
    return result;
}

/* What is no longer there when it is looked for is nobody's: the transaction holds the file. */
static int claim_ids(wb_storage_session *session, wb_begin *begin, wb_error *error)
{
    int result = WB_OK, is_new;
    for (size_t i = 0; result == WB_OK && i < begin->claim_count; i++) {
        wb_claim *claim = &begin->claims[i];
        claim->duplicate_of = 0;
        result = wb_sqlite_storage_claim(session, begin->batch, claim, &is_new, error);
        if (result == WB_OK && !is_new)
            result = find_owner(session, claim, error);
        if (result == WB_OK && !is_new && !claim->duplicate_of)
            result = wb_sqlite_db_fail(&session->db, SQLITE_CORRUPT, "find a deduplication record", error);
    }
    return result;
}

int wb_sqlite_storage_find(wb_storage_session *session, wb_claim *claims, size_t count, wb_error *error)
{
    int result = WB_OK;
    for (size_t i = 0; result == WB_OK && i < count; i++) {
        claims[i].duplicate_of = 0;
        result = find_owner(session, &claims[i], error);
    }
    return result;
}

int wb_sqlite_storage_begin(wb_storage_session *session, wb_begin *begin, wb_error *error)
{
    int result = wb_sqlite_apart_settle(session, begin, error);
    if (result == WB_OK)
        result = wb_sqlite_db_begin(&session->db, WB_SQLITE_DB_POWER_LOSS, error);
    if (result != WB_OK)
        return result;
    session->db.shared = 1;
    wb_sqlite_storage_watch(session);
    if (WB_HAS(begin, wb_begin, position_count))
        result = wb_sqlite_positions_claim(session, begin, error);
    if (result == WB_OK && begin->batch != 0)
        result = claim_ids(session, begin, error);
    if (result != WB_OK)
        wb_sqlite_db_rollback(&session->db);
    else
        session->db.host->crash_point("claim_sent");
    return result;
}

/* ---- commit --------------------------------------------------------------------------- */

static int store(wb_storage_session *session, const wb_commit *commit, wb_error *error)
{
    int result = wb_sqlite_storage_prepare(session, &session->insert_pending,
                                           "insert into \"waybill_%w_pending\"(batch,operations)"
                                           " values(?1,?2)",
                                           error);
    if (result != WB_OK)
        return result;
    (void)sqlite3_bind_int64(session->insert_pending, 1,
                             wb_sqlite_storage_batch_to_column(commit->batch));
    if (sqlite3_bind_blob64(session->insert_pending, 2, commit->operations,
                            commit->operations_size, SQLITE_STATIC) != SQLITE_OK)
        return wb_sqlite_db_fail(&session->db, SQLITE_TOOBIG, "store outgoing operations", error);
    return wb_sqlite_db_run(&session->db, session->insert_pending, "store outgoing operations",
                            error);
}

int wb_sqlite_storage_release(wb_storage_session *session, uint64_t batch, const wb_claim *claims, size_t count,
                              wb_error *error)
{
    unsigned char room[WB_SQL_KEY_ROOM];
    int result =
        wb_sqlite_storage_prepare(session, &session->release_claim,
                                  "delete from \"waybill_%w_dedup\" where batch=?1 and key=?2",
                                  error);
    if (result != WB_OK)
        return result;
    (void)sqlite3_bind_int64(session->release_claim, 1,
                             wb_sqlite_storage_batch_to_column(batch));
    for (size_t i = 0; result == WB_OK && i < count; i++) {
        bind_key(session, session->release_claim, 2, &claims[i], room);
        result = wb_sqlite_db_run(&session->db, session->release_claim, "give a claim back", error);
    }
    return result;
}

static int claim_late(wb_storage_session *session, const wb_commit *commit, wb_error *error)
{
    const wb_host *host = session->db.host;
    int result = WB_OK, is_new = 1;
    for (size_t i = 0; result == WB_OK && is_new && i < commit->claim_count; i++) {
        const wb_claim *claim = &commit->claims[i];
        if (claim->duplicate_of)
            result = wb_sqlite_storage_release(session, claim->duplicate_of, claim, 1, error);
        if (result == WB_OK)
            result = wb_sqlite_storage_claim(session, commit->batch, claim, &is_new, error);
    }
    return result != WB_OK || is_new ? result
                                     : host->fail(host, error, WB_ABORT, WB_CAUSE_OTHER, 0,
                                                  "an id to be claimed has a record");
}

int wb_sqlite_storage_check_intact(wb_storage_session *session, wb_error *error)
{
    if (wb_sqlite_storage_is_intact(session))
        return WB_OK;
    int result = wb_sqlite_storage_check_server(session, error);
    if (result != WB_OK)
        return result;
    return session->db.host->fail(session->db.host, error, WB_ABORT, WB_CAUSE_OTHER, 0,
                                  "the transaction in \"%s\" was ended before its commit",
                                  session->db.path);
}

int wb_sqlite_storage_commit(wb_storage_session *session, wb_commit *commit, wb_error *error)
{
    commit->failed_item = SIZE_MAX;
    int result = wb_sqlite_storage_check_intact(session, error);
    if (result == WB_OK && commit->operations)
        result = store(session, commit, error);
    if (result == WB_OK && commit->released_count > 0)
        result = wb_sqlite_storage_release(session, commit->batch, commit->released, commit->released_count, error);
    if (result == WB_OK && WB_HAS(commit, wb_commit, position_count) && commit->position_count)
        result = wb_sqlite_positions_set_back(session, commit, error);
    if (result == WB_OK && WB_HAS(commit, wb_commit, delayed_count) && commit->delayed_count)
        result = wb_sqlite_delayed_insert(session, commit->delayed, commit->delayed_count, error);
    if (result == WB_OK && WB_HAS(commit, wb_commit, claim_count))
        result = claim_late(session, commit, error);
    if (result == WB_OK) {
        session->db.host->crash_point("commit_sent");
        result = wb_sqlite_db_commit(&session->db, error);
    }
    if (result != WB_OK)
        wb_sqlite_db_rollback(&session->db);
    return result;
}

/* A rollback that fails leaves nothing behind either. */
int wb_sqlite_storage_rollback(wb_storage_session *session, wb_error *error)
{
    const wb_host *host = session->db.host;
    if (!wb_sqlite_db_was_closed(&session->db)) {
        wb_sqlite_db_rollback(&session->db);
        return WB_OK;
    }
    wb_sqlite_db_close(&session->db); /* until then it keeps the file locked */
    return host->fail(host, error, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, 0,
                      "a handler closed the connection to \"%s\"", session->db.path);
}
