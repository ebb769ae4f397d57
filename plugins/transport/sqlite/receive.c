/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "plugins/common/sqlite/lockfile.h"
#include "plugins/transport/sqlite/transport.h"

#define MILLISECOND INT64_C(1000000)
/* Belt and braces: a wake-up that never came costs this much, no more. */
#define LOOK_EVERY (1000 * MILLISECOND)
/* The kernel announces a closed descriptor a moment before it releases its lock. */
#define LOOK_FOR_DEAD_EVERY (5 * MILLISECOND)

/* ---- look without claiming --------------------------------------------------------- */

static int peek_run(wb_transport_session *session, int64_t from, int64_t to, int *ret_found,
                    wb_error *error)
{
    int result = wb_sqlite_session_prepare_for_queue(
        session, &session->source->peek,
        "select 1 from waybill_message_%lld where seq between ?1 and ?2 limit 1", session->source->queue,
        error);
    if (result != WB_OK)
        return result;
    (void)sqlite3_bind_int64(session->source->peek, 1, from);
    (void)sqlite3_bind_int64(session->source->peek, 2, to);
    int code = sqlite3_step(session->source->peek);
    *ret_found = code == SQLITE_ROW;
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        result = wb_sqlite_db_fail(&session->db, code, "look for messages", error);
    (void)sqlite3_reset(session->source->peek);
    return result;
}

/* Whether there is something to take of the queue that is being looked at. A hint: taking decides. */
static int look_at_source(wb_transport_session *session, int *ret_found, wb_error *error)
{
    wb_sqlite_foreign_claim *claims = NULL;
    size_t count = 0;
    int64_t from = 1;
    int result = wb_sqlite_claim_list(session, &claims, &count, error);
    *ret_found = 0;
    for (size_t i = 0; result == WB_OK && !*ret_found && from; i++) {
        const wb_sqlite_foreign_claim *next = i < count ? &claims[i] : NULL;
        int64_t to = wb_sqlite_claim_gap_end(next, from);
        if (from <= to)
            result = peek_run(session, from, to, ret_found, error);
        if (next && wb_sqlite_claim_is_dead(session, next->session))
            *ret_found = 1;
        from = wb_sqlite_claim_gap_begin(next, from);
    }
    free(claims);
    return result;
}

static int look(wb_transport_session *session, int *ret_found, wb_error *error)
{
    int result = WB_OK;
    *ret_found = 0;
    for (size_t i = 0; result == WB_OK && i < session->source_count && !*ret_found; i++) {
        session->source = &session->sources[i];
        result = look_at_source(session, ret_found, error);
    }
    return result;
}

/* ---- wait ---------------------------------------------------------------------------- */

/* Nothing came for a while: cut the log back, without making anybody wait. */
static void tidy(wb_transport_session *session)
{
    if (!session->wrote)
        return;
    int64_t deadline = session->db.deadline;
    session->db.deadline = 1; /* long past */
    if (sqlite3_wal_checkpoint_v2(session->db.handle, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL,
                                  NULL) == SQLITE_OK)
        session->wrote = 0;
    session->db.deadline = deadline;
}

static int rest(wb_transport_session *session, int64_t deadline, wb_error *error)
{
    int64_t now = session->db.host->now();
    int dead_about = atomic_load(&session->died);
    int64_t until = now + (dead_about > 0 ? LOOK_FOR_DEAD_EVERY : LOOK_EVERY);
    if (dead_about > 0)
        atomic_fetch_sub(&session->died, 1);
    wb_sqlite_wait_for_change(session, until < deadline ? until : deadline);
    if (dead_about > 0 || session->db.host->now() < until || until > deadline)
        return WB_OK;
    tidy(session);
    if (!wb_sqlite_lockfile_is_deleted(session->sessions_fd))
        return WB_OK;
    return session->db.host->fail(session->db.host, error, WB_NOT_CONNECTED, WB_CAUSE_OTHER, 0,
                                  "\"%s\" was deleted: stop all processes that use it",
                                  session->transport->sessions_path);
}

/* A file kept busy by others is no error for now. @return what is left of `result`. */
static int pardon_busy(wb_transport_session *session, int result, int64_t begun)
{
    if (!wb_sqlite_db_was_busy(&session->db, result)) {
        session->busy_since = 0;
        return result;
    }
    if (!session->busy_since)
        session->busy_since = begun;
    return WB_OK;
}

/* A lock that nobody lets go of is not a queue without messages. */
static int judge_busy(const wb_transport_session *session, wb_error *error)
{
    const wb_host *host = session->db.host;
    const int64_t waited = session->busy_since ? host->now() - session->busy_since : 0;
    if (!waited || waited < session->db.busy_timeout)
        return WB_OK;
    return host->fail(host, error, WB_RETRY, WB_CAUSE_SERVER, SQLITE_BUSY,
                      "could not take messages from \"%s\" for %lld s: another writer has the file",
                      session->db.path, (long long)(waited / (1000 * MILLISECOND)));
}

/* One look and, if it was worth it, one claim. */
static int attempt(wb_transport_session *session, size_t max, size_t *ret_count, int *ret_idle,
                   wb_error *error)
{
    const int64_t begun = session->db.host->now();
    int worth = session->hot || session->acknowledged.count > 0;
    int result = worth ? WB_OK : look(session, &worth, error);
    *ret_idle = !worth;
    if (result == WB_OK && worth)
        result = wb_sqlite_take_messages(session, max, ret_count, ret_idle, error);
    session->hot = result == WB_OK && *ret_count == max;
    return pardon_busy(session, result, begun);
}

/* What was acknowledged last is deleted now, not when the session is closed. */
static int receive_nothing(wb_transport_session *session, size_t *ret_count, wb_error *error)
{
    *ret_count = 0;
    session->db.deadline = 1; /* long past */
    int result = wb_sqlite_acknowledge_flush(session, error);
    session->db.deadline = 0;
    return result == WB_RETRY ? WB_OK : result; /* close() tries again */
}

int wb_sqlite_session_receive(wb_transport_session *session, int64_t deadline,
                              const wb_incoming **ret_messages, size_t max, size_t *ret_count,
                              wb_error *error)
{
    size_t count = 0;
    int result = WB_OK;
    int idle = 0;
    if (session->stopped)
        return receive_nothing(session, ret_count, error);
    session->db.deadline = deadline > 0 ? deadline : 1;
    session->db.interrupted = &session->interrupted;
    do {
        if (atomic_exchange(&session->interrupted, 0))
            break;
        wb_sqlite_wait_prepare(session);
        result = attempt(session, max, &count, &idle, error);
        if (result == WB_OK && count == 0 && idle)
            result = rest(session, deadline, error);
        wb_sqlite_wait_done(session);
    } while (result == WB_OK && count == 0 && session->db.host->now() < deadline);
    if (result == WB_OK && count == 0 && deadline > 0 && session->db.host->now() >= deadline)
        result = judge_busy(session, error);
    session->db.deadline = 0;
    session->db.interrupted = NULL;
    for (size_t i = 0; i < count; i++)
        ret_messages[i] = session->received[i];
    *ret_count = count;
    return result;
}
