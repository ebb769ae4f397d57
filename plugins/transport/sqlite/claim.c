/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "plugins/common/sqlite/lockfile.h"
#include "plugins/transport/sqlite/transport.h"

#define FIRST_CAPACITY 16u

static int grow(wb_sqlite_foreign_claim **claims, size_t *capacity)
{
    size_t wanted = *capacity ? *capacity * 2 : FIRST_CAPACITY;
    wb_sqlite_foreign_claim *grown = realloc(*claims, wanted * sizeof **claims);
    if (!grown)
        return -1;
    *claims = grown;
    *capacity = wanted;
    return 0;
}

int wb_sqlite_claim_list(wb_transport_session *session, wb_sqlite_foreign_claim **ret_claims,
                         size_t *ret_count, wb_error *error)
{
    wb_sqlite_foreign_claim *claims = NULL;
    size_t count = 0;
    size_t capacity = 0;
    int code = SQLITE_DONE;
    int result =
        wb_sqlite_db_prepare(&session->db, &session->prepared.list_claims,
                             "select first, last, session from waybill_claim where queue=?1"
                             " order by first", error);
    if (result != WB_OK)
        return result;
    sqlite3_stmt *list = session->prepared.list_claims;
    (void)sqlite3_bind_int64(list, 1, session->source->queue);
    while ((code = sqlite3_step(list)) == SQLITE_ROW) {
        if (count == capacity && grow(&claims, &capacity) < 0)
            break;
        claims[count++] = (wb_sqlite_foreign_claim){ .first = sqlite3_column_int64(list, 0),
                                           .last = sqlite3_column_int64(list, 1),
                                           .session = sqlite3_column_int64(list, 2) };
    }
    if (code == SQLITE_ROW)
        result = wb_sqlite_db_out_of_memory(&session->db, error);
    else if (code != SQLITE_DONE)
        result = wb_sqlite_db_fail(&session->db, code, "read the claims", error);
    (void)sqlite3_reset(list);
    if (result == WB_OK) {
        *ret_claims = claims;
        *ret_count = count;
    } else {
        free(claims);
    }
    return result;
}

int64_t wb_sqlite_claim_gap_end(const wb_sqlite_foreign_claim *next, int64_t from)
{
    return !next ? INT64_MAX : next->first > from ? next->first - 1 : 0;
}

int64_t wb_sqlite_claim_gap_begin(const wb_sqlite_foreign_claim *next, int64_t from)
{
    if (!next || next->last == INT64_MAX)
        return 0;
    return next->last < from ? from : next->last + 1;
}

int wb_sqlite_claim_is_dead(const wb_transport_session *session, int64_t number)
{
    return number != session->number && !wb_sqlite_lockfile_is_held(session->sessions_fd, number);
}

/* Count a delivery of each message of a claim that is still in its queue. */
static int count_up_claim(wb_transport_session *session, int64_t queue, int64_t first,
                          int64_t last, wb_error *error)
{
    sqlite3_stmt *count = NULL;
    int result = wb_sqlite_session_prepare_for_queue(
        session, &count,
        "insert into waybill_redelivered(queue,seq,count)"
        " select ?1, seq, 1 from waybill_message_%lld where seq between ?2 and ?3"
        " on conflict(queue,seq) do update set count=count+1",
        queue, error);
    if (result != WB_OK)
        return result;
    (void)sqlite3_bind_int64(count, 1, queue);
    (void)sqlite3_bind_int64(count, 2, first);
    (void)sqlite3_bind_int64(count, 3, last);
    result = wb_sqlite_db_run(&session->db, count, "count deliveries", error);
    (void)sqlite3_finalize(count);
    return result;
}

static int prepare_claims_of(wb_transport_session *session, int64_t number, wb_error *error)
{
    int result =
        wb_sqlite_db_prepare(&session->db, &session->prepared.claims_of,
                             "select queue, first, last from waybill_claim where session=?1",
                             error);
    if (result == WB_OK)
        (void)sqlite3_bind_int64(session->prepared.claims_of, 1, number);
    return result;
}

int wb_sqlite_claim_exists(wb_transport_session *session, int64_t number, int *ret_exists,
                           wb_error *error)
{
    int result = prepare_claims_of(session, number, error);
    if (result != WB_OK)
        return result;
    int code = sqlite3_step(session->prepared.claims_of);
    *ret_exists = code == SQLITE_ROW;
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        result = wb_sqlite_db_fail(&session->db, code, "read the claims", error);
    (void)sqlite3_reset(session->prepared.claims_of);
    return result;
}

int wb_sqlite_claim_release_all(wb_transport_session *session, int64_t number, wb_error *error)
{
    wb_sqlite_database *db = &session->db;
    int code;
    int result = prepare_claims_of(session, number, error);
    if (result == WB_OK)
        result = wb_sqlite_db_prepare(db, &session->prepared.release_all,
                                      "delete from waybill_claim where session=?1", error);
    if (result != WB_OK)
        return result;
    sqlite3_stmt *claims = session->prepared.claims_of;
    while (result == WB_OK && (code = sqlite3_step(claims)) != SQLITE_DONE) {
        if (code != SQLITE_ROW)
            result = wb_sqlite_db_fail(db, code, "read the claims", error);
        else
            result = count_up_claim(session, sqlite3_column_int64(claims, 0),
                                    sqlite3_column_int64(claims, 1),
                                    sqlite3_column_int64(claims, 2), error);
        session->ring = 1;
    }
    (void)sqlite3_reset(claims);
    if (result != WB_OK)
        return result;
    (void)sqlite3_bind_int64(session->prepared.release_all, 1, number);
    return wb_sqlite_db_run(db, session->prepared.release_all, "release claims", error);
}

int wb_sqlite_claim_insert(wb_transport_session *session, wb_sqlite_source *source, int64_t first, int64_t last,
                           wb_sqlite_claim **ret_claim, wb_error *error)
{
    int result = wb_sqlite_db_prepare(&session->db, &session->prepared.insert_claim,
                                      "insert into waybill_claim(queue,first,last,session)"
                                      " values(?1,?2,?3,?4)",
                                      error);
    if (result != WB_OK)
        return result;
    wb_sqlite_claim *made = calloc(1, sizeof *made);
    if (!made)
        return wb_sqlite_db_out_of_memory(&session->db, error);
    sqlite3_stmt *insert = session->prepared.insert_claim;
    (void)sqlite3_bind_int64(insert, 1, source->queue);
    (void)sqlite3_bind_int64(insert, 2, first);
    (void)sqlite3_bind_int64(insert, 3, last);
    (void)sqlite3_bind_int64(insert, 4, session->number);
    result = wb_sqlite_db_run(&session->db, insert, "claim messages", error);
    if (result != WB_OK) {
        free(made);
        return result;
    }
    made->source = source;
    made->first = first;
    made->last = last;
    made->next = session->claims;
    session->claims = made;
    *ret_claim = made;
    return WB_OK;
}

/* Only somebody who deleted the sessions file can have made others believe that we are
 * dead; then what we would commit was or will be done by them as well. */
int wb_sqlite_claim_verify(wb_transport_session *session, wb_error *error)
{
    wb_sqlite_database *db = &session->db;
    int result = wb_sqlite_db_prepare(db, &session->prepared.find_claim,
                                      "select 1 from waybill_claim where queue=?1 and first=?2"
                                      " and session=?3",
                                      error);
    for (const wb_sqlite_claim *own = session->claims; result == WB_OK && own; own = own->next) {
        (void)sqlite3_bind_int64(session->prepared.find_claim, 1, own->source->queue);
        (void)sqlite3_bind_int64(session->prepared.find_claim, 2, own->first);
        (void)sqlite3_bind_int64(session->prepared.find_claim, 3, session->number);
        int code = sqlite3_step(session->prepared.find_claim);
        if (code == SQLITE_DONE)
            result = db->host->fail(db->host, error, WB_NOT_CONNECTED, WB_CAUSE_OTHER, 0,
                                    "messages in hand were given to another process: was \"%s\" "
                                    "deleted?",
                                    session->transport->sessions_path);
        else if (code != SQLITE_ROW)
            result = wb_sqlite_db_fail(db, code, "check a claim", error);
        (void)sqlite3_reset(session->prepared.find_claim);
    }
    return result;
}

void wb_sqlite_claim_forget(wb_transport_session *session, wb_sqlite_claim *forgotten)
{
    wb_sqlite_claim **link = &session->claims;
    while (*link != forgotten)
        link = &(*link)->next;
    *link = forgotten->next;
    free(forgotten);
}
