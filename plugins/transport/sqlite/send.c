/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <waybill/sys/types.h>

#include "plugins/common/types_of.h"
#include "plugins/transport/sqlite/transport.h"

/* ---- queues ------------------------------------------------------------------------ */

static void free_route(wb_sqlite_route *freed)
{
    (void)sqlite3_finalize(freed->insert);
    (void)sqlite3_finalize(freed->highest);
    free(freed->name);
    *freed = (wb_sqlite_route){ 0 };
}

static wb_sqlite_route *route_of_number(wb_transport_session *session, int64_t number)
{
    for (size_t i = 0; i < session->route_count; i++)
        if (session->routes[i].number == number)
            return &session->routes[i];
    wb_sqlite_route *made;
    if (session->route_count < WB_SQLITE_ROUTES_MAX) {
        made = &session->routes[session->route_count++];
    } else {
        made = &session->routes[session->route_evict++ % WB_SQLITE_ROUTES_MAX];
        free_route(made);
    }
    made->number = number;
    return made;
}

static int look_up_queue(wb_transport_session *session, const char *name, int64_t *ret_number,
                         wb_error *error)
{
    int result = wb_sqlite_db_prepare(&session->db, &session->prepared.find_queue,
                                      "select number from waybill_queue where name=?1", error);
    if (result != WB_OK)
        return result;
    (void)sqlite3_bind_text(session->prepared.find_queue, 1, name, -1, SQLITE_STATIC);
    int code = sqlite3_step(session->prepared.find_queue);
    *ret_number = code == SQLITE_ROW ? sqlite3_column_int64(session->prepared.find_queue, 0) : 0;
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        result = wb_sqlite_db_fail(&session->db, code, "look up a queue", error);
    (void)sqlite3_reset(session->prepared.find_queue);
    return result;
}

/* *ret_route is NULL when there is no such queue. */
static int route_of_name(wb_transport_session *session, const char *name,
                         wb_sqlite_route **ret_route, wb_error *error)
{
    int64_t number = 0;
    *ret_route = NULL;
    for (size_t i = 0; i < session->route_count; i++)
        if (session->routes[i].name && strcmp(session->routes[i].name, name) == 0) {
            *ret_route = &session->routes[i];
            return WB_OK;
        }
    int result = look_up_queue(session, name, &number, error);
    if (result != WB_OK || number == 0)
        return result;
    wb_sqlite_route *found = route_of_number(session, number);
    if (!found->name)
        found->name = strdup(name); /* without memory it is looked up again */
    *ret_route = found;
    return WB_OK;
}

/* The first free number of a queue: above all messages, and above all claims, whose
 * messages may be gone while their numbers are still spoken for. */
static int read_next_seq(wb_transport_session *session, wb_sqlite_route *to, wb_error *error)
{
    int result = wb_sqlite_session_prepare_for_queue(
        session, &to->highest,
        "select max((select coalesce(max(seq),0) from waybill_message_%lld),"
        " (select coalesce(max(last),0) from waybill_claim where queue=?1))+1",
        to->number, error);
    if (result != WB_OK)
        return result;
    (void)sqlite3_bind_int64(to->highest, 1, to->number);
    int code = sqlite3_step(to->highest);
    if (code == SQLITE_ROW && sqlite3_column_type(to->highest, 0) != SQLITE_INTEGER) {
        result = session->db.host->fail(session->db.host, error, WB_RETRY, WB_CAUSE_SERVER, 0,
                                        "the numbers of a queue in \"%s\" are used up until it is "
                                        "empty",
                                        session->db.path);
    } else if (code == SQLITE_ROW) {
        to->next_seq = sqlite3_column_int64(to->highest, 0);
        to->stamp = session->stamp;
    } else {
        result = wb_sqlite_db_fail(&session->db, code, "number a message", error);
    }
    (void)sqlite3_reset(to->highest);
    return result;
}

/* ---- rows -------------------------------------------------------------------------- */

/* An absent id or key is NULL; an absent body is empty. */
static int bind_bytes(sqlite3_stmt *statement, int at, const void *data, size_t size, int nullable)
{
    if (size == 0 && nullable)
        return sqlite3_bind_null(statement, at);
    return sqlite3_bind_blob64(statement, at, size ? data : "", size, SQLITE_STATIC);
}

static int insert(wb_transport_session *session, wb_sqlite_route *to, wb_operation *operation,
                  wb_error *error)
{
    int result = wb_sqlite_session_prepare_for_queue(
        session, &to->insert,
        "insert into waybill_message_%lld(seq,id,key,headers,body) values(?1,?2,?3,?4,?5)",
        to->number, error);
    if (result == WB_OK && to->stamp != session->stamp)
        result = read_next_seq(session, to, error);
    if (result != WB_OK)
        return result;
    sqlite3_stmt *row = to->insert;
    int code = sqlite3_bind_int64(row, 1, to->next_seq);
    if (code == SQLITE_OK)
        code = bind_bytes(row, 2, operation->id, operation->id_size, 1);
    if (code == SQLITE_OK)
        code = bind_bytes(row, 3, operation->key, operation->key_size, 1);
    if (code == SQLITE_OK)
        code = bind_bytes(row, 4, session->headers.data, session->headers.size, 0);
    if (code == SQLITE_OK)
        code = bind_bytes(row, 5, operation->body, operation->body_size, 0);
    if (code == SQLITE_OK)
        code = sqlite3_step(row);
    (void)sqlite3_reset(row);
    if (code == SQLITE_DONE) {
        if (to->next_seq == INT64_MAX)
            to->stamp = 0; /* the next one asks */
        else
            to->next_seq++;
        session->ring = 1;
    } else if (code == SQLITE_TOOBIG) {
        wb_sqlite_reason_refuse(session, operation, WB_CAUSE_TOO_LARGE,
                                "too large for sqlite: %zu bytes", operation->body_size);
    } else {
        result = wb_sqlite_db_fail(&session->db, code, "send a message", error);
    }
    return result;
}

/* ---- publish ----------------------------------------------------------------------- */

static wb_sqlite_subscribers *subscribers_of(wb_transport_session *session, const char *type)
{
    for (size_t i = 0; i < session->type_count; i++)
        if (strcmp(session->types[i].type, type) == 0)
            return &session->types[i];
    char *copy = strdup(type);
    if (!copy)
        return NULL;
    wb_sqlite_subscribers *made;
    if (session->type_count < WB_SQLITE_TYPES_MAX) {
        made = &session->types[session->type_count++];
    } else {
        made = &session->types[session->type_evict++ % WB_SQLITE_TYPES_MAX];
        free(made->type);
    }
    made->type = copy;
    made->stamp = 0;
    return made;
}

static int add_subscriber(wb_sqlite_subscribers *to, int64_t queue)
{
    if (to->count == to->capacity) {
        size_t wanted = to->capacity * 2 + 4;
        int64_t *grown = realloc(to->queues, wanted * sizeof *grown);
        if (!grown)
            return -1;
        to->queues = grown;
        to->capacity = wanted;
    }
    to->queues[to->count++] = queue;
    return 0;
}

/* Read once a transaction: within it nobody else can subscribe. */
static int read_subscribers(wb_transport_session *session, wb_sqlite_subscribers *of,
                            wb_error *error)
{
    int code;
    int result =
        wb_sqlite_db_prepare(&session->db, &session->prepared.find_subscribers,
                             "select queue from waybill_subscription where type=?1 order by queue",
                             error);
    if (result != WB_OK)
        return result;
    of->count = 0;
    (void)sqlite3_bind_text(session->prepared.find_subscribers, 1, of->type, -1, SQLITE_STATIC);
    while ((code = sqlite3_step(session->prepared.find_subscribers)) == SQLITE_ROW)
        if (add_subscriber(of, sqlite3_column_int64(session->prepared.find_subscribers, 0)) < 0)
            break;
    if (code == SQLITE_DONE)
        of->stamp = session->stamp;
    else
        result = code == SQLITE_ROW ? wb_sqlite_db_out_of_memory(&session->db, error)
                                    : wb_sqlite_db_fail(&session->db, code, "read subscriptions",
                                                        error);
    (void)sqlite3_reset(session->prepared.find_subscribers);
    return result;
}

static int has_subscriber(const wb_sqlite_subscribers *all, int64_t queue)
{
    for (size_t i = 0; i < all->count; i++)
        if (all->queues[i] == queue)
            return 1;
    return 0;
}

/* Whoever subscribed to several of its types gets the event once. */
static int add_subscribers(wb_transport_session *session, const char *type, wb_error *error)
{
    int result = WB_OK;
    wb_sqlite_subscribers *of = subscribers_of(session, type);
    if (!of)
        return wb_sqlite_db_out_of_memory(&session->db, error);
    if (of->stamp != session->stamp)
        result = read_subscribers(session, of, error);
    for (size_t i = 0; result == WB_OK && i < of->count; i++)
        if (!has_subscriber(&session->addressees, of->queues[i]) &&
            add_subscriber(&session->addressees, of->queues[i]) < 0)
            result = wb_sqlite_db_out_of_memory(&session->db, error);
    return result;
}

static int publish(wb_transport_session *session, wb_operation *operation, wb_error *error)
{
    const char *types = wb_common_types_of(operation);
    char type[WB_TYPE_SIZE];
    size_t size;
    const wb_sqlite_subscribers *to = &session->addressees;
    session->addressees.count = 0;
    int result = add_subscribers(session, operation->destination, error);
    while (result == WB_OK && wb_type_next(&types, type, &size))
        result = add_subscribers(session, type, error);
    for (size_t i = 0; result == WB_OK && i < to->count && operation->result == WB_OK; i++)
        result = insert(session, route_of_number(session, to->queues[i]), operation, error);
    return result;
}

/* ---- send -------------------------------------------------------------------------- */

static int send_to_queue(wb_transport_session *session, wb_operation *operation, wb_error *error)
{
    wb_sqlite_route *to = NULL;
    int result = route_of_name(session, operation->destination, &to, error);
    if (result == WB_OK && to) {
        result = insert(session, to, operation, error);
        if (result == WB_OK || !session->db.lacks_table)
            return result;
        free_route(to); /* the queue was removed; perhaps it was made anew */
        result = route_of_name(session, operation->destination, &to, error);
        if (result == WB_OK && to)
            return insert(session, to, operation, error);
    }
    char name[WB_SQLITE_REASON_NAME_SIZE];
    if (result == WB_OK)
        wb_sqlite_reason_refuse(session, operation, WB_CAUSE_UNROUTABLE, "no queue \"%s\" in \"%s\"",
               wb_sqlite_reason_show_name(name, operation->destination), session->db.path);
    return result;
}

static int put(wb_transport_session *session, wb_operation *operation, wb_error *error)
{
    operation->result = WB_OK;
    operation->cause = WB_CAUSE_OTHER;
    operation->reason = NULL;
    if (!operation->destination || !operation->destination[0]) {
        wb_sqlite_reason_refuse(session, operation, WB_CAUSE_UNROUTABLE, "no destination");
        return WB_OK;
    }
    int encoded = wb_sqlite_codec_encode(&session->headers, operation->headers,
                                         operation->header_count);
    if (encoded == WB_SQLITE_CODEC_NO_MEMORY)
        return wb_sqlite_db_out_of_memory(&session->db, error);
    if (encoded == WB_SQLITE_CODEC_TOO_LARGE) {
        wb_sqlite_reason_refuse(session, operation, WB_CAUSE_TOO_LARGE,
                                "its headers are too large");
        return WB_OK;
    }
    return operation->kind == WB_OPERATION_PUBLISH ? publish(session, operation, error)
                                                   : send_to_queue(session, operation, error);
}

static int put_all(wb_transport_session *session, wb_operation *const *operations, size_t count,
                   wb_error *error)
{
    int result = WB_OK;
    for (size_t i = 0; result == WB_OK && i < count; i++) {
        result = put(session, operations[i], error);
        if (i + 1 == (count + 1) / 2)
            session->db.host->crash_point("half_dispatched");
    }
    return result;
}

static wb_sqlite_db_durability durability_of(wb_operation *const *operations, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!(operations[i]->flags & WB_OPERATION_NON_PERSISTENT))
            return WB_SQLITE_DB_POWER_LOSS;
    return WB_SQLITE_DB_PROCESS_CRASH;
}

/* The rows of a failed window are gone with its transaction, also with the host's own:
 * a part of a window must never be committed and then sent again. */
static void fail_all(wb_transport_session *session, wb_operation *const *operations, size_t count,
                     int result)
{
    wb_sqlite_db_rollback(&session->db);
    for (size_t i = 0; i < count; i++)
        if (operations[i]->result != WB_REJECT)
            operations[i]->result = result;
}

static int refuse_all(wb_transport_session *session, wb_operation *const *operations, size_t count)
{
    for (size_t i = 0; i < count; i++)
        wb_sqlite_reason_refuse(session, operations[i], WB_CAUSE_OTHER,
               "nothing can be sent at once while the transaction of this message holds \"%s\": send "
               "without WB_IMMEDIATE, or use transaction_mode = \"receive_only\" with the data in "
               "another file",
               session->db.path);
    return WB_OK;
}

int wb_sqlite_session_send(wb_transport_session *session, wb_operation *const *operations,
                           size_t count, int64_t deadline, wb_error *error)
{
    int own = !session->in_transaction;
    int result = WB_OK;
    wb_sqlite_reason_forget_all(session);
    if (count == 0)
        return WB_OK;
    if (wb_sqlite_session_is_blocked_by_thread(session))
        return refuse_all(session, operations, count);
    for (size_t i = 0; i < count; i++)
        operations[i]->result = WB_RETRY;
    session->db.deadline = deadline;
    if (own)
        result = wb_sqlite_session_begin_own(session, durability_of(operations, count), error);
    else if (!wb_sqlite_db_in_transaction(&session->db))
        result = wb_sqlite_session_fail_ended(session, error);
    if (result == WB_OK)
        result = put_all(session, operations, count, error);
    if (own && result == WB_OK) {
        session->db.host->crash_point("dispatch_unconfirmed");
        result = wb_sqlite_session_commit_own(session, error);
    }
    session->db.deadline = 0;
    if (result != WB_OK)
        fail_all(session, operations, count, result);
    return result;
}

void wb_sqlite_send_forget_statements(wb_transport_session *session)
{
    for (size_t i = 0; i < session->route_count; i++)
        session->routes[i].insert = session->routes[i].highest = NULL;
}

void wb_sqlite_send_free(wb_transport_session *session)
{
    for (size_t i = 0; i < session->route_count; i++)
        free_route(&session->routes[i]);
    for (size_t i = 0; i < session->type_count; i++) {
        free(session->types[i].type);
        free(session->types[i].queues);
    }
    free(session->addressees.queues);
    wb_sqlite_reason_forget_all(session);
    free(session->reasons);
    wb_sqlite_codec_free(&session->headers);
}
