/* SPDX-License-Identifier: Apache-2.0
 *
 * Claiming what is there: one transaction that deletes what was acknowledged, claims and
 * reads what comes next.
 */
#include "config.h"

#include <stdlib.h>
#include <time.h>
#include <waybill/sys/expiry.h>

#include "plugins/transport/sqlite/transport.h"

/* Large messages end a batch early, so that memory stays bounded. */
#define BATCH_BYTES_MAX ((size_t)32 << 20)
/* So many that cannot come now are looked at, no more. */
#define LEFT_MAX 64
/* So many that expired are deleted in one transaction, about: others wait for it. */
#define EXPIRED_MAX 1000

typedef struct batch {
    size_t max;
    size_t count;
    size_t bytes;
    size_t left; /* over the limit, and left in the queue since another such is in hand */
    size_t expired; /* and deleted */
    int is_over; /* nothing more goes into it */
} batch;

static int reserve_received(wb_transport_session *session, size_t max, wb_error *error)
{
    if (max <= session->received_capacity)
        return WB_OK;
    const wb_incoming **grown = realloc((void *)session->received, max * sizeof *grown);
    if (!grown)
        return wb_sqlite_db_out_of_memory(&session->db, error);
    session->received = grown;
    session->received_capacity = max;
    return WB_OK;
}

static int prepare_fetch(wb_transport_session *session, sqlite3_stmt **statement,
                         const char *columns, wb_error *error)
{
    if (*statement)
        return WB_OK;
    char *sql = sqlite3_mprintf("select %s from waybill_message_%lld where seq between ?1 and ?2"
                                " order by seq limit ?3",
                                columns, (long long)session->source->queue);
    if (!sql)
        return wb_sqlite_db_out_of_memory(&session->db, error);
    int result = wb_sqlite_db_prepare(&session->db, statement, sql, error);
    sqlite3_free(sql);
    return result;
}

static void bind_run(sqlite3_stmt *statement, int64_t from, int64_t to, size_t limit)
{
    (void)sqlite3_bind_int64(statement, 1, from);
    (void)sqlite3_bind_int64(statement, 2, to);
    (void)sqlite3_bind_int64(statement, 3, (int64_t)limit);
}

static void add(wb_transport_session *session, batch *to, wb_sqlite_message *added)
{
    wb_sqlite_message_hold(session, added);
    session->received[to->count++] = &added->incoming;
    to->bytes += added->bytes;
    to->is_over = to->count == to->max || to->bytes >= BATCH_BYTES_MAX || added->large;
}

/* A message over the limit comes alone: it ends the batch before it. When it cannot come
 * now, the run ends before it and another begins behind it. */
static void leave(batch *taken)
{
    if (taken->count)
        taken->is_over = 1;
    else if (++taken->left == LEFT_MAX)
        taken->is_over = 1;
}

/* Where reading is in a run of numbers that nobody has claimed. */
typedef struct run {
    int64_t from; /* behind the last one looked at */
    int64_t to;
    int is_done;  /* there are no more */
    int has_left; /* one, so the run ends here and another begins behind it */
    int64_t expired; /* its number, so the run ends here as well; 0: there is none */
} run;

/* The queue does not know when a message came in, but its header says when it was sent. */
static int has_expired(const wb_sqlite_message *read)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return wb_has_expired(read->incoming.headers, read->incoming.header_count, 0,
                          now.tv_sec * WB_SECONDS + now.tv_nsec);
}

/* Its row is deleted when the statement that is at it has ended. */
static void expire(wb_transport_session *session, run *at, batch *taken, wb_sqlite_message *read)
{
    at->expired = read->seq;
    taken->is_over = taken->is_over || ++taken->expired >= EXPIRED_MAX;
    wb_sqlite_message_hold(session, read);
    wb_sqlite_message_forget(session, read);
}

/* Take the row that a statement is at, or leave it. */
static int fetch_row(wb_transport_session *session, sqlite3_stmt *row, int is_weighed, run *at,
                     batch *taken, wb_error *error)
{
    wb_sqlite_message *read = NULL;
    int64_t number = sqlite3_column_int64(row, 0);
    int result = wb_sqlite_message_read(session, row, is_weighed, taken->count == 0, &read, error);
    at->is_done = number == at->to;
    at->from = number < at->to ? number + 1 : at->to;
    at->has_left = !read;
    if (read && has_expired(read))
        expire(session, at, taken, read);
    else if (read)
        add(session, taken, read);
    else if (result == WB_OK)
        leave(taken);
    return result;
}

/* The next row is larger than any that is within the limits: look before reading it. */
static int fetch_weighed(wb_transport_session *session, run *at, batch *taken, wb_error *error)
{
    int result =
        prepare_fetch(session, &session->source->fetch_weighed, wb_sqlite_message_columns_weighed, error);
    if (result != WB_OK)
        return result;
    sqlite3_stmt *row = session->source->fetch_weighed;
    bind_run(row, at->from, at->to, 1);
    wb_sqlite_message_bind_limits(session, row);
    int code = sqlite3_step(row);
    result = code == SQLITE_ROW ? fetch_row(session, row, 1, at, taken, error)
                                : wb_sqlite_db_fail(&session->db, code, "read a message", error);
    (void)sqlite3_reset(row);
    return result;
}

/* Read until one is left, the batch is full, or SQLite refuses to read a row because it is
 * larger than the limit set here. */
static int fetch_run(wb_transport_session *session, run *at, batch *taken, wb_error *error)
{
    int code = SQLITE_ROW;
    int result = prepare_fetch(session, &session->source->fetch, wb_sqlite_message_columns, error);
    if (result != WB_OK)
        return result;
    sqlite3_stmt *row = session->source->fetch;
    bind_run(row, at->from, at->to, taken->max - taken->count);
    int before =
        sqlite3_limit(session->db.handle, SQLITE_LIMIT_LENGTH, wb_sqlite_message_row_max(session));
    at->has_left = 0;
    while (result == WB_OK && !at->has_left && !at->expired && !taken->is_over &&
           (code = sqlite3_step(row)) == SQLITE_ROW)
        result = fetch_row(session, row, 0, at, taken, error);
    (void)sqlite3_limit(session->db.handle, SQLITE_LIMIT_LENGTH, before);
    if (code == SQLITE_DONE)
        at->is_done = 1;
    else if (code != SQLITE_ROW && code != SQLITE_TOOBIG)
        result = wb_sqlite_db_fail(&session->db, code, "read messages", error);
    (void)sqlite3_reset(row);
    return code == SQLITE_TOOBIG ? fetch_weighed(session, at, taken, error) : result;
}

/* Delivery counts exist only for messages that were delivered before. */
static int read_counts(wb_transport_session *session, wb_sqlite_claim *own, size_t from, size_t to,
                       wb_error *error)
{
    int code;
    int result = wb_sqlite_db_prepare(&session->db, &session->prepared.list_counts,
                                      "select seq, count from waybill_redelivered where queue=?1"
                                      " and seq between ?2 and ?3 order by seq",
                                      error);
    if (result != WB_OK)
        return result;
    sqlite3_stmt *counts = session->prepared.list_counts;
    (void)sqlite3_bind_int64(counts, 1, session->source->queue);
    (void)sqlite3_bind_int64(counts, 2, own->first);
    (void)sqlite3_bind_int64(counts, 3, own->last);
    size_t at = from;
    while ((code = sqlite3_step(counts)) == SQLITE_ROW) {
        int64_t seq = sqlite3_column_int64(counts, 0);
        while (at < to && ((const wb_sqlite_message *)session->received[at])->seq < seq)
            at++;
        if (at == to || ((const wb_sqlite_message *)session->received[at])->seq != seq)
            continue;
        ((wb_sqlite_message *)(uintptr_t)session->received[at])->incoming.delivery_count =
            (uint32_t)sqlite3_column_int64(counts, 1);
        own->redelivered = 1;
    }
    if (code != SQLITE_DONE)
        result = wb_sqlite_db_fail(&session->db, code, "read delivery counts", error);
    (void)sqlite3_reset(counts);
    return result;
}

/* Claim the messages received[from] and later, which are one run. */
static int claim_run(wb_transport_session *session, size_t from, size_t to, wb_error *error)
{
    wb_sqlite_claim *own = NULL;
    const wb_sqlite_message *first = (const wb_sqlite_message *)session->received[from];
    const wb_sqlite_message *last = (const wb_sqlite_message *)session->received[to - 1];
    int result = wb_sqlite_claim_insert(session, session->source, first->seq, last->seq, &own, error);
    if (result != WB_OK)
        return result;
    for (size_t i = from; i < to; i++)
        ((wb_sqlite_message *)(uintptr_t)session->received[i])->claim = own;
    own->held = to - from;
    return read_counts(session, own, from, to, error);
}

/* Claim the messages received[from] and later, or delete them at once. */
static int keep_run(wb_transport_session *session, size_t from, size_t to, wb_error *error)
{
    if (from == to)
        return WB_OK;
    if (wb_sqlite_session_is_forgetful(session))
        return wb_sqlite_acknowledge_run(
            session, ((const wb_sqlite_message *)session->received[from])->seq,
            ((const wb_sqlite_message *)session->received[to - 1])->seq, error);
    return claim_run(session, from, to, error);
}

/* In the transaction that takes what is around it. */
static int delete_expired(wb_transport_session *session, run *at, wb_error *error)
{
    int64_t number = at->expired;
    at->expired = 0;
    return number ? wb_sqlite_acknowledge_run(session, number, number, error) : WB_OK;
}

static int take_run(wb_transport_session *session, int64_t from, int64_t to, batch *taken,
                    wb_error *error)
{
    int result = WB_OK;
    run at = { .from = from, .to = to, .is_done = from > to };
    while (result == WB_OK && !at.is_done && !taken->is_over) {
        size_t before = taken->count;
        result = fetch_run(session, &at, taken, error);
        if (result == WB_OK)
            result = delete_expired(session, &at, error);
        if (result == WB_OK)
            result = keep_run(session, before, taken->count, error);
    }
    return result;
}

/* All claims of the living; what the dead had claimed is free when this returns. */
static int list_living(wb_transport_session *session, wb_sqlite_foreign_claim **ret_claims,
                       size_t *ret_count, wb_error *error)
{
    for (;;) {
        size_t dead = 0;
        int result = wb_sqlite_claim_list(session, ret_claims, ret_count, error);
        while (result == WB_OK && dead < *ret_count &&
               !wb_sqlite_claim_is_dead(session, (*ret_claims)[dead].session))
            dead++;
        if (result != WB_OK || dead == *ret_count)
            return result;
        result = wb_sqlite_claim_release_all(session, (*ret_claims)[dead].session, error);
        free(*ret_claims);
        *ret_claims = NULL;
        *ret_count = 0;
        if (result != WB_OK)
            return result;
    }
}

static int take_available(wb_transport_session *session, batch *taken, wb_error *error)
{
    wb_sqlite_foreign_claim *claims = NULL;
    size_t count = 0;
    int64_t from = 1;
    int result = list_living(session, &claims, &count, error);
    for (size_t i = 0; result == WB_OK && from && !taken->is_over; i++) {
        const wb_sqlite_foreign_claim *next = i < count ? &claims[i] : NULL;
        result = take_run(session, from, wb_sqlite_claim_gap_end(next, from), taken, error);
        from = wb_sqlite_claim_gap_begin(next, from);
    }
    free(claims);
    return result;
}

/* Each queue is the first one in its turn: what is full of others never fills every batch. */
static int take_by_turns(wb_transport_session *session, batch *taken, wb_error *error)
{
    int result = WB_OK;
    for (size_t i = 0; result == WB_OK && i < session->source_count && !taken->is_over; i++) {
        session->source = &session->sources[(session->turn + i) % session->source_count];
        result = take_available(session, taken, error);
    }
    return result;
}

static void count_expired(const wb_host *host, size_t count)
{
    if (count && WB_HAS(host, wb_host, expired))
        host->expired(host, count);
}

static void drop(wb_transport_session *session, const batch *taken)
{
    for (size_t i = 0; i < taken->count; i++)
        wb_sqlite_message_forget(session, (wb_sqlite_message *)(uintptr_t)session->received[i]);
}

/* One transaction: delete what was acknowledged, claim what comes next. It need not be
 * flushed: losing it in a power failure means delivering again. */
int wb_sqlite_take_messages(wb_transport_session *session, size_t max, size_t *ret_count,
                            int *ret_left, wb_error *error)
{
    batch taken = { .max = max };
    size_t acknowledged = session->acknowledged.count;
    int result = reserve_received(session, max, error);
    if (result == WB_OK)
        result = wb_sqlite_session_begin_own(session, WB_SQLITE_DB_PROCESS_CRASH, error);
    if (result != WB_OK)
        return result;
    result = wb_sqlite_acknowledge_apply(session, 0, error);
    if (result == WB_OK)
        result = take_by_turns(session, &taken, error);
    if (result == WB_OK)
        result = wb_sqlite_session_commit_own(session, error);
    if (result != WB_OK) {
        wb_sqlite_db_rollback(&session->db);
        wb_sqlite_acknowledge_postponed(session);
        drop(session, &taken);
        return result;
    }
    session->turn = (session->turn + 1) % session->source_count;
    wb_sqlite_acknowledge_committed(session);
    count_expired(session->db.host, taken.expired);
    if (acknowledged)
        session->db.host->crash_point("acknowledge_sent");
    if (taken.count)
        session->db.host->crash_point("received_frame");
    *ret_count = taken.count;
    *ret_left = taken.left > 0;
    return WB_OK;
}
