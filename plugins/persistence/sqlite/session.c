/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugins/common/sqlite/leavings.h"
#include "plugins/persistence/sqlite/delayed.h"
#include "plugins/persistence/sqlite/persistence.h"

#define SIGN (UINT64_C(1) << 63)

int64_t wb_sqlite_storage_batch_to_column(uint64_t batch)
{
    return (int64_t)(batch ^ SIGN);
}

uint64_t wb_sqlite_storage_batch_from_column(int64_t column)
{
    return (uint64_t)column ^ SIGN;
}

int wb_sqlite_storage_prepare(wb_storage_session *session, sqlite3_stmt **statement,
                              const char *format, wb_error *error)
{
    if (*statement)
        return WB_OK;
    char *sql = wb_sqlite_names_format(format, session->persistence->tables);
    if (!sql)
        return wb_sqlite_db_out_of_memory(&session->db, error);
    int result = wb_sqlite_db_prepare(&session->db, statement, sql, error);
    sqlite3_free(sql);
    return result;
}

int wb_sqlite_storage_open(wb_persistence *persistence, wb_storage_session **ret_session,
                           wb_error *error)
{
    wb_storage_session *session = calloc(1, sizeof *session);
    if (!session)
        return persistence->host->fail(persistence->host, error, WB_RETRY, WB_CAUSE_SERVER, 0,
                                       "out of memory");
    session->persistence = persistence;
    session->sweep_fd = session->turn_fd = -1;
    int result =
        wb_sqlite_db_open(&session->db, persistence->host, persistence->config, persistence->path,
                          error);
    if (result != WB_OK) {
        free(session);
        return result;
    }
    session->sentinel_was = (uintptr_t)session->db.sentinel;
    result = wb_sqlite_schema_check_keys(persistence, &session->db, &session->has_compact_keys,
                                         error);
    if (result == WB_OK)
        *ret_session = session;
    else
        wb_sqlite_storage_close(session);
    return result;
}

void wb_sqlite_storage_close(wb_storage_session *session)
{
    wb_sqlite_delayed_forget(session);
    wb_sqlite_db_rollback(&session->db);
    wb_sqlite_db_close(&session->db);
    if (session->sweep_fd >= 0)
        (void)close(session->sweep_fd);
    if (session->turn_fd >= 0)
        (void)close(session->turn_fd);
    free(session->operations);
    free(session);
}

/* ---- the transaction a handler shares ------------------------------------------------ */

/* Counts for a joined connection are of the thread and not of the session: the hook may
 * outlive the session, and a batch stays on one thread from join() to its commit. */
static _Thread_local uint64_t thread_rollbacks;
static uint64_t of_thread; /* its address stands for that */

static void on_rollback(void *argument)
{
    uint64_t *rollbacks = argument;
    if (rollbacks == &of_thread)
        thread_rollbacks++;
    else
        (*rollbacks)++;
}

static uint64_t rollbacks_of(const wb_storage_session *session)
{
    return session->joined ? thread_rollbacks : session->rollbacks;
}

static wb_sqlite_heard *heard_of(wb_storage_session *session)
{
    return session->joined ? NULL : &session->heard;
}

static sqlite3 *handle_of(const wb_storage_session *session)
{
    return session->joined ? session->joined : session->db.handle;
}

/* @return whether the hook was there before, and not a handler's in its place. */
static int hook(wb_storage_session *session)
{
    void *counter = session->joined ? &of_thread : &session->rollbacks;
    return sqlite3_rollback_hook(handle_of(session), on_rollback, counter) == counter;
}

/* What a handler replaced is put back; but the commit hook of a joined connection is the
 * transport's, and nobody can tell here whether it is there. */
static int are_hooks_ours(wb_storage_session *session)
{
    const int is_watched = hook(session);
    if (!session->joined)
        return wb_sqlite_db_hook(&session->db) && is_watched;
    wb_sqlite_leavings_end_settings(session->joined);
    return is_watched;
}

void wb_sqlite_storage_watch(wb_storage_session *session)
{
    (void)hook(session);
    wb_sqlite_heard_begin(heard_of(session), handle_of(session));
    session->rollbacks_before = rollbacks_of(session);
    session->watched = wb_sqlite_db_watch(handle_of(session));
}

int wb_sqlite_storage_check_server(wb_storage_session *session, wb_error *error)
{
    return wb_sqlite_db_check_server(session->db.host, handle_of(session), session->watched, error);
}

int wb_sqlite_storage_is_intact(const wb_storage_session *session)
{
    return !sqlite3_get_autocommit(handle_of(session)) &&
           session->rollbacks_before == rollbacks_of(session);
}

int wb_sqlite_storage_join(wb_storage_session *session, void *native, wb_error *error)
{
    const wb_host *host = session->db.host;
    session->joined = native;
    if (!native)
        return WB_OK;
    if (sqlite3_get_autocommit(session->joined)) {
        session->joined = NULL;
        return host->fail(host, error, WB_ABORT, WB_CAUSE_OTHER, 0,
                          "the transport has no open transaction to join");
    }
    wb_sqlite_storage_watch(session);
    return WB_OK;
}

static sqlite3 *connection(void *session, size_t item)
{
    wb_sqlite_heard_hand_out(heard_of(session), item);
    return handle_of(session);
}

const void *wb_sqlite_storage_interface(wb_storage_session *session, const char *name)
{
    static const wb_sqlite_api api = { .struct_size = sizeof api, .connection = connection };
    (void)session;
    if (strcmp(name, WB_FAILED_INTERFACE) == 0)
        return &wb_sqlite_failed_ops;
    return strcmp(name, WB_SQLITE_INTERFACE) == 0 ? &api : NULL;
}

/* Last of all, since it is a statement and forgets the handler's error. */
static int end_leavings(wb_storage_session *session, wb_error *error)
{
    sqlite3 *handle = handle_of(session);
    const int code = wb_sqlite_leavings_end(handle, &session->sentinel_was, wb_sqlite_heard_had_pragma(heard_of(session)));
    if (code == SQLITE_OK)
        return WB_OK;
    return session->db.host->fail(session->db.host, error, WB_RETRY, WB_CAUSE_OTHER, code,
                                  "what the handler left on the connection stays: %s", sqlite3_errmsg(handle));
}

/* sqlite3_interrupt() ends a transaction by itself; only a handler can have called it. */
static int was_interrupted(sqlite3 *handle)
{
    return (sqlite3_errcode(handle) & 0xff) == SQLITE_INTERRUPT;
}

static int was_closed(const wb_storage_session *session)
{
    return session->joined ? wb_sqlite_db_is_zombie(session->joined) : wb_sqlite_db_was_closed(&session->db);
}

/* The server's trouble first: SQLite ends a transaction because of it, and whatever the
 * handler did afterwards was no longer in one. */
int wb_sqlite_storage_check(wb_storage_session *session, size_t item, wb_error *error)
{
    const wb_host *host = session->db.host;
    sqlite3 *handle = handle_of(session);
    (void)item;
    if (was_closed(session))
        return host->fail(host, error, WB_REJECT, WB_CAUSE_OTHER, 0, "the handler closed the connection");
    const int is_known = are_hooks_ours(session), went_back = wb_sqlite_heard_went_back(heard_of(session));
    int result = wb_sqlite_storage_check_server(session, error);
    if (result != WB_OK)
        return result;
    if (!is_known)
        return host->fail(host, error, WB_REJECT, WB_CAUSE_OTHER, 0,
                          "the handler replaced the commit or rollback hook: nobody knows whether "
                          "it ended the transaction");
    if (wb_sqlite_storage_is_intact(session) && went_back)
        return host->fail(host, error, WB_ABORT, WB_CAUSE_OTHER, 0, WB_COMMON_WENT_BACK);
    if (wb_sqlite_storage_is_intact(session))
        return end_leavings(session, error);
    int code = sqlite3_extended_errcode(handle);
    if (was_interrupted(handle))
        return host->fail(host, error, WB_RETRY, WB_CAUSE_OTHER, code,
                          "sqlite rolled the transaction back: %s", sqlite3_errmsg(handle));
    return host->fail(host, error, WB_REJECT, WB_CAUSE_OTHER, code,
                      "the handler ended the transaction: it must neither commit nor roll back");
}
