/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "plugins/common/sqlite/lockfile.h"
#include "plugins/transport/sqlite/transport.h"

/* Large bodies end a batch early, so that memory stays bounded. */
#define BATCH_BYTES_MAX ((size_t)32 << 20)

#define MILLISECOND INT64_C(1000000)
/* Belt and braces: a wake-up that never came costs this much, no more. */
#define LOOK_EVERY (1000 * MILLISECOND)
/* The kernel announces a closed descriptor a moment before it releases its lock. */
#define LOOK_FOR_DEAD_EVERY (5 * MILLISECOND)

/* ---- claim what is there --------------------------------------------------------- */

typedef struct batch {
    size_t max;
    size_t count;
    size_t bytes;
} batch;

static int reserve_received(wb_transport_session *session, size_t max, wb_error *error)
{
    if (max <= session->received_capacity)
        return WB_OK;
    const wb_incoming **grown = realloc((void *)session->received, max * sizeof *grown);
    if (!grown)
        return db_out_of_memory(&session->db, error);
    session->received = grown;
    session->received_capacity = max;
    return WB_OK;
}

/* Read the messages of a run of numbers that nobody has claimed. */
static int fetch_run(wb_transport_session *session, int64_t from, int64_t to, batch *taken,
                     wb_error *error)
{
    int code = SQLITE_DONE;
    int result = session_prepare_for_queue(
        session, &session->fetch,
        "select seq, id, key, headers, body from waybill_message_%lld"
        " where seq between ?1 and ?2 order by seq limit ?3",
        session->queue, error);
    if (result != WB_OK)
        return result;
    (void)sqlite3_bind_int64(session->fetch, 1, from);
    (void)sqlite3_bind_int64(session->fetch, 2, to);
    (void)sqlite3_bind_int64(session->fetch, 3, (int64_t)(taken->max - taken->count));
    while (taken->bytes < BATCH_BYTES_MAX && (code = sqlite3_step(session->fetch)) == SQLITE_ROW) {
        message *read = message_read(session->fetch);
        if (!read) {
            result = db_out_of_memory(&session->db, error);
            break;
        }
        message_hold(session, read);
        session->received[taken->count++] = &read->incoming;
        taken->bytes += read->incoming.body_size;
    }
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        result = db_fail(&session->db, code, "read messages", error);
    (void)sqlite3_reset(session->fetch);
    return result;
}

/* Delivery counts exist only for messages that were delivered before. */
static int read_counts(wb_transport_session *session, claim *own, size_t from, size_t to,
                       wb_error *error)
{
    int code;
    int result = db_prepare(&session->db, &session->list_counts,
                            "select seq, count from waybill_redelivered where queue=?1"
                            " and seq between ?2 and ?3 order by seq",
                            error);
    if (result != WB_OK)
        return result;
    sqlite3_stmt *counts = session->list_counts;
    (void)sqlite3_bind_int64(counts, 1, session->queue);
    (void)sqlite3_bind_int64(counts, 2, own->first);
    (void)sqlite3_bind_int64(counts, 3, own->last);
    size_t at = from;
    while ((code = sqlite3_step(counts)) == SQLITE_ROW) {
        int64_t seq = sqlite3_column_int64(counts, 0);
        while (at < to && ((const message *)session->received[at])->seq < seq)
            at++;
        if (at == to || ((const message *)session->received[at])->seq != seq)
            continue;
        ((message *)(uintptr_t)session->received[at])->incoming.delivery_count =
            (uint32_t)sqlite3_column_int64(counts, 1);
        own->redelivered = 1;
    }
    if (code != SQLITE_DONE)
        result = db_fail(&session->db, code, "read delivery counts", error);
    (void)sqlite3_reset(counts);
    return result;
}

/* Claim the messages received[from] and later, which are one run. */
static int claim_run(wb_transport_session *session, size_t from, size_t to, wb_error *error)
{
    claim *own = NULL;
    const message *first = (const message *)session->received[from];
    const message *last = (const message *)session->received[to - 1];
    int result = claim_insert(session, first->seq, last->seq, &own, error);
    if (result != WB_OK)
        return result;
    for (size_t i = from; i < to; i++)
        ((message *)(uintptr_t)session->received[i])->claim = own;
    own->held = to - from;
    return read_counts(session, own, from, to, error);
}

static int take_run(wb_transport_session *session, int64_t from, int64_t to, batch *taken,
                    wb_error *error)
{
    size_t before = taken->count;
    int result = fetch_run(session, from, to, taken, error);
    if (result != WB_OK || taken->count == before)
        return result;
    if (session_is_forgetful(session))
        return acknowledge_run(session, ((const message *)session->received[before])->seq,
                               ((const message *)session->received[taken->count - 1])->seq, error);
    return claim_run(session, before, taken->count, error);
}

/* All claims of the living; what the dead had claimed is free when this returns. */
static int list_living(wb_transport_session *session, foreign_claim **ret_claims,
                       size_t *ret_count, wb_error *error)
{
    for (;;) {
        size_t dead = 0;
        int result = claim_list(session, ret_claims, ret_count, error);
        while (result == WB_OK && dead < *ret_count &&
               !claim_is_dead(session, (*ret_claims)[dead].session))
            dead++;
        if (result != WB_OK || dead == *ret_count)
            return result;
        result = claim_release_all(session, (*ret_claims)[dead].session, error);
        free(*ret_claims);
        *ret_claims = NULL;
        *ret_count = 0;
        if (result != WB_OK)
            return result;
    }
}

static int take_available(wb_transport_session *session, batch *taken, wb_error *error)
{
    foreign_claim *claims = NULL;
    size_t count = 0;
    int64_t from = 1;
    int result = list_living(session, &claims, &count, error);
    for (size_t i = 0; result == WB_OK && i <= count; i++) {
        int64_t to = i < count ? claims[i].first - 1 : INT64_MAX;
        if (taken->count == taken->max || taken->bytes >= BATCH_BYTES_MAX)
            break;
        if (from <= to)
            result = take_run(session, from, to, taken, error);
        if (i < count)
            from = claims[i].last + 1;
    }
    free(claims);
    return result;
}

static void drop(wb_transport_session *session, const batch *taken)
{
    for (size_t i = 0; i < taken->count; i++)
        message_forget(session, (message *)(uintptr_t)session->received[i]);
}

/* One transaction: delete what was acknowledged, claim what comes next. It need not be
 * flushed: losing it in a power failure means delivering again. */
static int take(wb_transport_session *session, size_t max, size_t *ret_count, wb_error *error)
{
    batch taken = { .max = max };
    size_t acknowledged = session->acknowledged.count;
    int result = reserve_received(session, max, error);
    if (result == WB_OK)
        result = session_begin_own(session, DB_PROCESS_CRASH, error);
    if (result != WB_OK)
        return result;
    result = acknowledge_apply(session, 0, error);
    if (result == WB_OK)
        result = take_available(session, &taken, error);
    if (result == WB_OK)
        result = session_commit_own(session, error);
    if (result != WB_OK) {
        db_rollback(&session->db);
        acknowledge_postponed(session);
        drop(session, &taken);
        return result;
    }
    acknowledge_committed(session);
    if (acknowledged)
        session->db.host->crash_point("acknowledge_sent");
    if (taken.count)
        session->db.host->crash_point("received_frame");
    *ret_count = taken.count;
    return WB_OK;
}

/* ---- look without claiming --------------------------------------------------------- */

static int peek_run(wb_transport_session *session, int64_t from, int64_t to, int *ret_found,
                    wb_error *error)
{
    int result = session_prepare_for_queue(
        session, &session->peek,
        "select 1 from waybill_message_%lld where seq between ?1 and ?2 limit 1", session->queue,
        error);
    if (result != WB_OK)
        return result;
    (void)sqlite3_bind_int64(session->peek, 1, from);
    (void)sqlite3_bind_int64(session->peek, 2, to);
    int code = sqlite3_step(session->peek);
    *ret_found = code == SQLITE_ROW;
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        result = db_fail(&session->db, code, "look for messages", error);
    (void)sqlite3_reset(session->peek);
    return result;
}

/* Whether there is something to take. A hint: taking decides. */
static int look(wb_transport_session *session, int *ret_found, wb_error *error)
{
    foreign_claim *claims = NULL;
    size_t count = 0;
    int64_t from = 1;
    int result = claim_list(session, &claims, &count, error);
    *ret_found = 0;
    for (size_t i = 0; result == WB_OK && !*ret_found && i <= count; i++) {
        int64_t to = i < count ? claims[i].first - 1 : INT64_MAX;
        if (from <= to)
            result = peek_run(session, from, to, ret_found, error);
        if (i == count)
            break;
        if (claim_is_dead(session, claims[i].session))
            *ret_found = 1;
        from = claims[i].last + 1;
    }
    free(claims);
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
    wait_for_change(session, until < deadline ? until : deadline);
    if (dead_about > 0 || session->db.host->now() < until || until > deadline)
        return WB_OK;
    tidy(session);
    if (!lockfile_is_deleted(session->sessions_fd))
        return WB_OK;
    return session->db.host->fail(session->db.host, error, WB_NOT_CONNECTED, WB_CAUSE_OTHER, 0,
                                  "\"%s\" was deleted: stop all processes that use it",
                                  session->transport->sessions_path);
}

/* One look and, if it was worth it, one claim; a file kept busy by others is no error. */
static int attempt(wb_transport_session *session, size_t max, size_t *ret_count, int *ret_idle,
                   wb_error *error)
{
    int worth = session->hot || session->acknowledged.count > 0;
    int result = worth ? WB_OK : look(session, &worth, error);
    *ret_idle = !worth;
    if (result == WB_OK && worth)
        result = take(session, max, ret_count, error);
    session->hot = result == WB_OK && *ret_count == max;
    return db_was_busy(&session->db, result) ? WB_OK : result;
}

int session_receive(wb_transport_session *session, int64_t deadline,
                    const wb_incoming **ret_messages, size_t max, size_t *ret_count,
                    wb_error *error)
{
    size_t count = 0;
    int result = WB_OK;
    int idle = 0;
    session->db.deadline = deadline > 0 ? deadline : 1;
    session->db.interrupted = &session->interrupted;
    do {
        if (atomic_exchange(&session->interrupted, 0))
            break;
        wait_prepare(session);
        result = attempt(session, max, &count, &idle, error);
        if (result == WB_OK && count == 0 && idle)
            result = rest(session, deadline, error);
        wait_done(session);
    } while (result == WB_OK && count == 0 && session->db.host->now() < deadline);
    session->db.deadline = 0;
    session->db.interrupted = NULL;
    for (size_t i = 0; i < count; i++)
        ret_messages[i] = session->received[i];
    *ret_count = count;
    return result;
}
