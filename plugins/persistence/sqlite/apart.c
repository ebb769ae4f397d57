/* SPDX-License-Identifier: Apache-2.0
 *
 * Deduplication apart from the outbox: what is forgotten once it was dispatched, and what another outbox
 * has remembered here.
 */
#include "config.h"

#include "plugins/persistence/sqlite/persistence.h"

/* ---- forgetting ----------------------------------------------------------------------- */

static int forget_each(wb_storage_session *session, const wb_claim *claims, size_t count, wb_error *error)
{
    int result = WB_OK;
    for (size_t i = 0; result == WB_OK && i < count; i++)
        result = wb_sqlite_storage_release(session, claims[i].duplicate_of, &claims[i], 1, error);
    return result;
}

int wb_sqlite_apart_settle(wb_storage_session *session, const wb_begin *begin, wb_error *error)
{
    const size_t forgotten = WB_HAS(begin, wb_begin, forgotten_count) ? begin->forgotten_count : 0;
    if (begin->mark_count == 0 && forgotten == 0)
        return WB_OK;
    int result = wb_sqlite_db_begin(&session->db, WB_SQLITE_DB_PROCESS_CRASH, error);
    if (result == WB_OK)
        result = wb_sqlite_storage_mark_each(session, begin->marks, begin->mark_count, error);
    if (result == WB_OK)
        result = forget_each(session, begin->forgotten, forgotten, error);
    if (result == WB_OK)
        result = wb_sqlite_db_commit(&session->db, error);
    if (result != WB_OK)
        wb_sqlite_db_rollback(&session->db);
    else
        session->db.host->crash_point(begin->mark_count ? "mark_sent" : "forget_sent");
    return result;
}

int wb_sqlite_apart_forget(wb_storage_session *session, const wb_claim *claims, size_t count, wb_error *error)
{
    const wb_begin begin = { .struct_size = sizeof begin, .forgotten = claims, .forgotten_count = count };
    return wb_sqlite_apart_settle(session, &begin, error);
}

/* ---- remembering ---------------------------------------------------------------------- */

static int remember_each(wb_storage_session *session, const wb_claim *claims, size_t count, wb_error *error)
{
    int result = WB_OK, is_new;
    for (size_t i = 0; result == WB_OK && i < count; i++)
        result = wb_sqlite_storage_claim(session, claims[i].duplicate_of, &claims[i], &is_new, error);
    return result;
}

int wb_sqlite_apart_remember(wb_storage_session *session, const wb_claim *claims, size_t count, wb_error *error)
{
    if (count == 0)
        return WB_OK;
    int result = wb_sqlite_db_begin(&session->db, WB_SQLITE_DB_POWER_LOSS, error);
    if (result == WB_OK)
        result = remember_each(session, claims, count, error);
    if (result == WB_OK) {
        session->db.host->crash_point("remember_sent");
        result = wb_sqlite_db_commit(&session->db, error);
    }
    if (result != WB_OK)
        wb_sqlite_db_rollback(&session->db);
    return result;
}
