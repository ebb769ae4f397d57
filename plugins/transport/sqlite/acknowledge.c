/* SPDX-License-Identifier: Apache-2.0
 *
 * Acknowledged messages are deleted by the next transaction this session makes anyway:
 * the claim of the next batch. Until then they are still claimed, so nobody sees them. Whoever
 * acknowledges nothing wants it now.
 */
#include "config.h"

#include <stdlib.h>

#include "plugins/transport/sqlite/transport.h"

static int remember(wb_transport_session *session, const wb_incoming *const *messages,
                    size_t count, wb_error *error)
{
    wb_sqlite_message_list *list = &session->acknowledged;
    if (list->count + count > list->capacity) {
        size_t wanted = (list->count + count) * 2;
        wb_sqlite_message **grown = realloc(list->items, wanted * sizeof *grown);
        if (!grown)
            return wb_sqlite_db_out_of_memory(&session->db, error);
        list->items = grown;
        list->capacity = wanted;
    }
    for (size_t i = 0; i < count; i++)
        list->items[list->count++] = (wb_sqlite_message *)(uintptr_t)messages[i];
    return WB_OK;
}

/* ---- rows ---------------------------------------------------------------------- */

static int delete_run(wb_transport_session *session, wb_sqlite_source *source, int64_t first, int64_t last, wb_error *error)
{
    int result = wb_sqlite_session_prepare_for_queue(
        session, &source->delete_run,
        "delete from waybill_message_%lld where seq between ?1 and ?2", source->queue, error);
    if (result != WB_OK)
        return result;
    (void)sqlite3_bind_int64(source->delete_run, 1, first);
    (void)sqlite3_bind_int64(source->delete_run, 2, last);
    return wb_sqlite_db_run(&session->db, source->delete_run, "delete messages", error);
}

static int delete_counts(wb_transport_session *session, const wb_sqlite_source *source, int64_t first, int64_t last,
                         wb_error *error)
{
    int result = wb_sqlite_db_prepare(&session->db, &session->prepared.delete_counts,
                                      "delete from waybill_redelivered where queue=?1"
                                      " and seq between ?2 and ?3",
                                      error);
    if (result != WB_OK)
        return result;
    (void)sqlite3_bind_int64(session->prepared.delete_counts, 1, source->queue);
    (void)sqlite3_bind_int64(session->prepared.delete_counts, 2, first);
    (void)sqlite3_bind_int64(session->prepared.delete_counts, 3, last);
    return wb_sqlite_db_run(&session->db, session->prepared.delete_counts, "delete counts", error);
}

int wb_sqlite_acknowledge_run(wb_transport_session *session, int64_t first, int64_t last,
                              wb_error *error)
{
    int result = delete_run(session, session->source, first, last, error);
    return result == WB_OK ? delete_counts(session, session->source, first, last, error) : result;
}

static int delete_claim(wb_transport_session *session, const wb_sqlite_claim *owner,
                        wb_error *error)
{
    int result =
        wb_sqlite_db_prepare(&session->db, &session->prepared.delete_claim,
                             "delete from waybill_claim where queue=?1 and first=?2 and session=?3",
                             error);
    if (result != WB_OK)
        return result;
    (void)sqlite3_bind_int64(session->prepared.delete_claim, 1, owner->source->queue);
    (void)sqlite3_bind_int64(session->prepared.delete_claim, 2, owner->first);
    (void)sqlite3_bind_int64(session->prepared.delete_claim, 3, session->number);
    return wb_sqlite_db_run(&session->db, session->prepared.delete_claim, "release a claim", error);
}

/* The usual case: a batch is acknowledged as it was received, and one statement deletes
 * all of it. */
static int delete_whole(wb_transport_session *session, wb_sqlite_claim *owner, wb_error *error)
{
    owner->gone = 1;
    int result = delete_run(session, owner->source, owner->first, owner->last, error);
    if (result == WB_OK && owner->redelivered)
        result = delete_counts(session, owner->source, owner->first, owner->last, error);
    return result == WB_OK ? delete_claim(session, owner, error) : result;
}

static int delete_one(wb_transport_session *session, const wb_sqlite_message *one, wb_error *error)
{
    int result = delete_run(session, one->claim->source, one->seq, one->seq, error);
    if (result == WB_OK && one->incoming.delivery_count > 0)
        result = delete_counts(session, one->claim->source, one->seq, one->seq, error);
    return result;
}

int wb_sqlite_acknowledge_apply(wb_transport_session *session, size_t from, wb_error *error)
{
    const wb_sqlite_message_list *list = &session->acknowledged;
    int result = WB_OK;
    for (size_t i = from; i < list->count; i++)
        list->items[i]->claim->leaving++;
    for (size_t i = from; result == WB_OK && i < list->count; i++) {
        wb_sqlite_claim *owner = list->items[i]->claim;
        if (owner->gone)
            continue;
        result = owner->leaving == owner->held ? delete_whole(session, owner, error)
                                               : delete_one(session, list->items[i], error);
    }
    return result;
}

static void forget_leaving(wb_transport_session *session)
{
    for (wb_sqlite_claim *own = session->claims; own; own = own->next) {
        own->leaving = 0;
        own->gone = 0;
    }
}

void wb_sqlite_acknowledge_committed(wb_transport_session *session)
{
    wb_sqlite_message_list *list = &session->acknowledged;
    for (size_t i = 0; i < list->count; i++)
        wb_sqlite_message_forget(session, list->items[i]);
    list->count = 0;
    forget_leaving(session);
}

/* They stay acknowledged, and their rows are deleted by a later transaction. */
void wb_sqlite_acknowledge_postponed(wb_transport_session *session)
{
    forget_leaving(session);
}

void wb_sqlite_acknowledge_rolled_back(wb_transport_session *session)
{
    forget_leaving(session);
    session->acknowledged.count = 0;
}

int wb_sqlite_acknowledge_flush(wb_transport_session *session, wb_error *error)
{
    if (session->acknowledged.count == 0)
        return WB_OK;
    int result = wb_sqlite_session_begin_own(session, WB_SQLITE_DB_PROCESS_CRASH, error);
    if (result == WB_OK)
        result = wb_sqlite_acknowledge_apply(session, 0, error);
    if (result == WB_OK)
        result = wb_sqlite_session_commit_own(session, error);
    if (result == WB_OK) {
        wb_sqlite_acknowledge_committed(session);
        session->db.host->crash_point("acknowledge_sent");
    } else {
        wb_sqlite_db_rollback(&session->db);
        wb_sqlite_acknowledge_postponed(session);
    }
    return result;
}

int wb_sqlite_session_acknowledge(wb_transport_session *session, const wb_incoming *const *messages,
                                  size_t count, wb_error *error)
{
    size_t before = session->acknowledged.count;
    if (wb_sqlite_session_is_forgetful(session)) {
        for (size_t i = 0; i < count; i++)
            wb_sqlite_message_forget(session, (wb_sqlite_message *)(uintptr_t)messages[i]);
        return WB_OK;
    }
    if (count == 0)
        return session->in_transaction ? WB_OK : wb_sqlite_acknowledge_flush(session, error);
    int result = remember(session, messages, count, error);
    if (result != WB_OK)
        return result;
    if (session->in_transaction)
        return wb_sqlite_acknowledge_apply(session, before, error);
    for (size_t i = 0; i < count; i++)
        wb_sqlite_message_release_large(session, (wb_sqlite_message *)(uintptr_t)messages[i]);
    return WB_OK;
}

/* ---- give back ------------------------------------------------------------------ */

static int count_up(wb_transport_session *session, const wb_sqlite_message *one, wb_error *error)
{
    int result =
        wb_sqlite_db_prepare(&session->db, &session->prepared.count_up,
                             "insert into waybill_redelivered(queue,seq,count) values(?1,?2,1)"
                             " on conflict(queue,seq) do update set count=count+1", error);
    if (result != WB_OK)
        return result;
    (void)sqlite3_bind_int64(session->prepared.count_up, 1, one->claim->source->queue);
    (void)sqlite3_bind_int64(session->prepared.count_up, 2, one->seq);
    return wb_sqlite_db_run(&session->db, session->prepared.count_up, "count a delivery", error);
}

/* What stays in hand of a claim gets a claim a message instead of the run. */
static int split(wb_transport_session *session, wb_sqlite_claim *owner,
                 wb_sqlite_message *const *returned, size_t count, wb_error *error)
{
    int result = WB_OK;
    for (wb_sqlite_message *one = session->in_hand; result == WB_OK && one; one = one->next) {
        int goes = one->claim != owner;
        wb_sqlite_claim *own;
        for (size_t i = 0; !goes && i < count; i++)
            goes = returned[i] == one;
        if (goes)
            continue;
        result = wb_sqlite_claim_insert(session, owner->source, one->seq, one->seq, &own, error);
        if (result != WB_OK)
            break;
        own->held = 1;
        own->redelivered = one->incoming.delivery_count > 0;
        one->claim = own;
        owner->held--;
    }
    return result;
}

static int give_back_rows(wb_transport_session *session, wb_sqlite_message *const *returned,
                          size_t count, wb_error *error)
{
    int result = WB_OK;
    for (size_t i = 0; i < count; i++)
        returned[i]->claim->leaving++;
    for (size_t i = 0; result == WB_OK && i < count; i++) {
        wb_sqlite_claim *owner = returned[i]->claim;
        result = count_up(session, returned[i], error);
        if (result != WB_OK || owner->gone)
            continue;
        owner->gone = 1;
        result = delete_claim(session, owner, error);
        if (result == WB_OK && owner->leaving < owner->held)
            result = split(session, owner, returned, count, error);
    }
    return result;
}

/* The image of a split claim in memory has no way back, so a failure after it costs the
 * session: the host opens another, and the claims go with this one. */
static int fail_split(wb_transport_session *session, wb_error *error)
{
    return session->db.host->fail(session->db.host, error, WB_NOT_CONNECTED, WB_CAUSE_OTHER,
                                  session->db.failure, "could not give messages back in \"%s\"",
                                  session->db.path);
}

int wb_sqlite_session_give_back(wb_transport_session *session, const wb_incoming *const *messages,
                                size_t count, wb_error *error)
{
    wb_sqlite_message *const *returned = (wb_sqlite_message *const *)(uintptr_t)messages;
    if (wb_sqlite_session_is_forgetful(session))
        return wb_sqlite_session_acknowledge(session, messages, count, error);
    if (session->in_transaction)
        return session->db.host->fail(session->db.host, error, WB_ABORT, WB_CAUSE_OTHER, 0,
                                      "messages cannot be given back inside a transaction");
    int result = wb_sqlite_acknowledge_flush(session, error);
    if (result == WB_OK && count > 0)
        result = wb_sqlite_session_begin_own(session, WB_SQLITE_DB_PROCESS_CRASH, error);
    if (result != WB_OK || count == 0)
        return result;
    result = give_back_rows(session, returned, count, error);
    session->ring = 1;
    if (result == WB_OK)
        result = wb_sqlite_session_commit_own(session, error);
    if (result != WB_OK) {
        wb_sqlite_db_rollback(&session->db);
        return fail_split(session, error);
    }
    forget_leaving(session);
    for (size_t i = 0; i < count; i++)
        wb_sqlite_message_forget(session, returned[i]);
    return WB_OK;
}
