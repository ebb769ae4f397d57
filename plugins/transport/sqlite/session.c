/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "plugins/common/sqlite/disk.h"
#include "plugins/common/sqlite/lockfile.h"
#include "plugins/transport/sqlite/transport.h"

int wb_sqlite_session_prepare_for_queue(wb_transport_session *session, sqlite3_stmt **statement,
                                        const char *format, int64_t queue, wb_error *error)
{
    if (*statement)
        return WB_OK;
    char *sql = sqlite3_mprintf(format, (long long)queue);
    if (!sql)
        return wb_sqlite_db_out_of_memory(&session->db, error);
    int result = wb_sqlite_db_prepare(&session->db, statement, sql, error);
    sqlite3_free(sql);
    return result;
}

/* ---- open -------------------------------------------------------------------- */

/* *ret_queue is its number. */
static int find_source(wb_transport_session *session, const char *name, int64_t *ret_queue, wb_error *error)
{
    int result = wb_sqlite_db_prepare(&session->db, &session->prepared.find_queue,
                                      "select number from waybill_queue where name=?1", error);
    if (result != WB_OK)
        return result;
    (void)sqlite3_bind_text(session->prepared.find_queue, 1, name, -1, SQLITE_STATIC);
    int code = sqlite3_step(session->prepared.find_queue);
    if (code == SQLITE_ROW)
        *ret_queue = sqlite3_column_int64(session->prepared.find_queue, 0);
    else if (code == SQLITE_DONE)
        result = session->db.host->fail(session->db.host, error, WB_FATAL, WB_CAUSE_MISSING, 0,
                                        "no queue \"%s\" in \"%s\": run `waybill install`", name,
                                        session->db.path);
    else
        result = wb_sqlite_db_fail(&session->db, code, "look up a queue", error);
    (void)sqlite3_reset(session->prepared.find_queue);
    return result;
}

static int find_sources(wb_transport_session *session, wb_error *error)
{
    const wb_endpoint_info *endpoint = session->transport->endpoint;
    const size_t count = wb_sqlite_transport_count_queues(endpoint);
    int result = WB_OK;
    for (size_t i = 0; result == WB_OK && i < count; i++) {
        session->sources[i].name = wb_sqlite_transport_queue(endpoint, i);
        result = find_source(session, session->sources[i].name, &session->sources[i].queue, error);
    }
    session->source_count = count;
    return result;
}

static int open_sessions_file(wb_transport_session *session, wb_error *error)
{
    const wb_transport *transport = session->transport;
    session->sessions_fd = wb_sqlite_lockfile_open(transport->sessions_path);
    if (session->sessions_fd >= 0)
        return WB_OK;
    return wb_sqlite_db_fail_file(transport->host, errno, "open", transport->sessions_path, error);
}

/* Whoever had our number before is dead; what it had claimed is given back before we
 * claim anything under the same number. Without claims nothing is written: an endpoint
 * starts while a slow handler of another process keeps the file locked. */
static int release_predecessor(wb_transport_session *session, wb_error *error)
{
    int exists = 0;
    int result = wb_sqlite_claim_exists(session, session->number, &exists, error);
    if (result != WB_OK || !exists)
        return result;
    result = wb_sqlite_session_begin_own(session, WB_SQLITE_DB_PROCESS_CRASH, error);
    if (result == WB_OK)
        result = wb_sqlite_claim_release_all(session, session->number, error);
    if (result == WB_OK)
        result = wb_sqlite_session_commit_own(session, error);
    wb_sqlite_db_rollback(&session->db);
    return result;
}

/* The lowest number whose lock is free. */
static int take_number(wb_transport_session *session, wb_error *error)
{
    int taken = 0;
    int64_t number = 0;
    while (!taken && number < WB_SQLITE_SESSIONS_MAX)
        taken = wb_sqlite_lockfile_try(session->sessions_fd, ++number);
    if (taken < 0)
        return wb_sqlite_db_fail_file(session->db.host, errno, "lock",
                                      session->transport->sessions_path, error);
    if (!taken)
        return session->db.host->fail(session->db.host, error, WB_RETRY, WB_CAUSE_SERVER, 0,
                                      "all %d locks of \"%s\" are taken", WB_SQLITE_SESSIONS_MAX,
                                      session->transport->sessions_path);
    session->number = number;
    return release_predecessor(session, error);
}

/* Whoever removes a queue has all of its bytes meanwhile, so it is looked up again behind the lock. */
static int enter_source(wb_transport_session *session, const wb_sqlite_source *source, wb_error *error)
{
    const wb_host *host = session->db.host;
    int64_t queue = 0;
    const int taken = wb_sqlite_lockfile_try(session->sessions_fd, wb_sqlite_reader_locks(source->queue) + session->number);
    if (taken < 0)
        return wb_sqlite_db_fail_file(host, errno, "lock", session->transport->sessions_path, error);
    const int result = taken ? find_source(session, source->name, &queue, error) : WB_OK;
    if (result != WB_OK || (taken && source->queue == queue))
        return result;
    return host->fail(host, error, WB_RETRY, WB_CAUSE_SERVER, 0, "queue \"%s\" in \"%s\" is being removed", source->name,
                      session->db.path);
}

static int enter_sources(wb_transport_session *session, wb_error *error)
{
    int result = WB_OK;
    for (size_t i = 0; result == WB_OK && i < session->source_count; i++)
        result = enter_source(session, &session->sources[i], error);
    return result;
}

static int open_for_receive(wb_transport_session *session, wb_error *error)
{
    int result = find_sources(session, error);
    if (result == WB_OK)
        result = wb_sqlite_wait_open(session, error);
    if (result == WB_OK)
        result = take_number(session, error);
    return result == WB_OK ? enter_sources(session, error) : result;
}

int wb_sqlite_session_open(wb_transport *transport, uint32_t purpose, uint32_t prefetch,
                           wb_transport_session **ret_session, wb_error *error)
{
    (void)prefetch; /* nothing is taken ahead: receive() has all messages at hand */
    wb_transport_session *session = calloc(1, sizeof *session);
    if (!session)
        return transport->host->fail(transport->host, error, WB_RETRY, WB_CAUSE_SERVER, 0,
                                     "out of memory");
    session->transport = transport;
    session->purpose = purpose;
    session->sessions_fd = -1;
    session->wake = -1;
    int result =
        wb_sqlite_db_open(&session->db, transport->host, transport->config, transport->path, error);
    if (result == WB_OK)
        result = open_sessions_file(session, error);
    if (result == WB_OK && (purpose & WB_SESSION_RECEIVE))
        result = open_for_receive(session, error);
    if (result == WB_OK)
        *ret_session = session;
    else
        wb_sqlite_session_close(session);
    return result;
}

/* ---- close ------------------------------------------------------------------- */

/* What was acknowledged is deleted, the rest goes back. If this fails the kernel still
 * releases the lock, and whoever looks next gives the messages back. */
static void give_back_all(wb_transport_session *session)
{
    if (!session->claims)
        return;
    int result = wb_sqlite_session_begin_own(session, WB_SQLITE_DB_PROCESS_CRASH, NULL);
    if (result == WB_OK)
        result = wb_sqlite_acknowledge_apply(session, 0, NULL);
    if (result == WB_OK)
        result = wb_sqlite_claim_release_all(session, session->number, NULL);
    if (result == WB_OK)
        (void)wb_sqlite_session_commit_own(session, NULL);
    wb_sqlite_db_rollback(&session->db);
}

static void close_connection(wb_transport_session *session)
{
    wb_sqlite_db_close(&session->db);
    session->prepared = (wb_sqlite_statements){ 0 };
    for (size_t i = 0; i < session->source_count; i++)
        session->sources[i] = (wb_sqlite_source){ .name = session->sources[i].name, .queue = session->sources[i].queue };
    wb_sqlite_send_forget_statements(session);
}

void wb_sqlite_session_close(wb_transport_session *session)
{
    if (!wb_sqlite_db_was_closed(&session->db)) {
        (void)wb_sqlite_session_rollback(session, NULL);
        give_back_all(session);
    }
    close_connection(session);
    while (session->in_hand)
        wb_sqlite_message_forget(session, session->in_hand);
    while (session->claims)
        wb_sqlite_claim_forget(session, session->claims);
    wb_sqlite_send_free(session);
    free(session->acknowledged.items);
    free((void *)session->received);
    wb_sqlite_wait_close(session);
    if (session->sessions_fd >= 0)
        (void)close(session->sessions_fd);
    free(session);
}

/* ---- transactions ------------------------------------------------------------- */

int wb_sqlite_session_begin_own(wb_transport_session *session, wb_sqlite_db_durability durability,
                                wb_error *error)
{
    session->stamp++;
    session->ring = 0;
    return wb_sqlite_db_begin(&session->db, durability, error);
}

int wb_sqlite_session_commit_own(wb_transport_session *session, wb_error *error)
{
    int result = wb_sqlite_db_commit(&session->db, error);
    session->wrote = 1;
    if (result == WB_OK && session->ring)
        wb_sqlite_wait_ring(session);
    return result;
}

int wb_sqlite_session_is_blocked_by_thread(const wb_transport_session *session)
{
    return !session->in_transaction && wb_sqlite_disk_is_written_here(session->db.handle);
}

int wb_sqlite_session_begin(wb_transport_session *session, wb_error *error)
{
    int result = wb_sqlite_acknowledge_flush(session, error);
    if (result == WB_OK)
        result = wb_sqlite_session_begin_own(session, WB_SQLITE_DB_POWER_LOSS, error);
    if (result == WB_OK)
        result = wb_sqlite_claim_verify(session, error);
    if (result != WB_OK)
        wb_sqlite_db_rollback(&session->db);
    session->db.shared = result == WB_OK;
    session->watched = wb_sqlite_db_watch(session->db.handle);
    session->in_transaction = result == WB_OK;
    return result;
}

int wb_sqlite_session_fail_ended(wb_transport_session *session, wb_error *error)
{
    int result =
        wb_sqlite_db_check_server(session->db.host, session->db.handle, session->watched, error);
    if (result != WB_OK)
        return result;
    return session->db.host->fail(session->db.host, error, WB_ABORT, WB_CAUSE_OTHER, 0,
                                  "the transaction in \"%s\" was ended before its commit",
                                  session->db.path);
}

int wb_sqlite_session_commit(wb_transport_session *session, wb_error *error)
{
    int result;
    const wb_host *host = session->db.host;
    if (session->in_transaction && wb_sqlite_db_in_transaction(&session->db)) {
        host->crash_point("dispatch_unconfirmed");
        result = wb_sqlite_session_commit_own(session, error);
    } else {
        result = wb_sqlite_session_fail_ended(session, error);
    }
    session->in_transaction = 0;
    if (result != WB_OK) {
        wb_sqlite_acknowledge_rolled_back(session);
        return result;
    }
    wb_sqlite_acknowledge_committed(session);
    host->crash_point("acknowledge_sent");
    return WB_OK;
}

/* Nothing is taken ahead, so there is nothing to tell a broker: receive() says it all. */
int wb_sqlite_session_stop_receiving(wb_transport_session *session, wb_error *error)
{
    (void)error;
    session->stopped = 1;
    return WB_OK;
}

/* What is in hand is the session's, by a lock in another file, and not the connection's: were it given up, it would come
 * again together with whoever closed it, and nobody would know that. */
static int reopen(wb_transport_session *session, wb_error *error)
{
    const wb_transport *transport = session->transport;
    close_connection(session); /* until then it keeps the file locked */
    return wb_sqlite_db_open(&session->db, transport->host, transport->config, transport->path, error);
}

int wb_sqlite_session_rollback(wb_transport_session *session, wb_error *error)
{
    const int was_closed = wb_sqlite_db_was_closed(&session->db);
    if (!was_closed)
        wb_sqlite_db_rollback(&session->db);
    if (session->in_transaction)
        wb_sqlite_acknowledge_rolled_back(session);
    session->in_transaction = 0;
    return was_closed ? reopen(session, error) : WB_OK;
}

/* NULL when a handler has closed it. */
void *wb_sqlite_session_native(wb_transport_session *session)
{
    return session->db.handle;
}
