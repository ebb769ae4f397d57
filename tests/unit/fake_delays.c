/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "fake_delays.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/delayed/lot.h"
#include "core/message/header_names.h"
#include "core/message/incoming.h"

fake_delays fake_store;
static wb_alarm *alarm_of_poller;

static int next_answer(int answers[8], wb_error *error)
{
    int answer = answers[0];
    memmove(answers, answers + 1, 7 * sizeof answers[0]);
    answers[7] = WB_OK;
    const int cause = fake_store.cause ? fake_store.cause : WB_CAUSE_SERVER;
    return answer == WB_OK ? WB_OK : wb_error_set(error, answer, cause, 0, "as the test asked");
}

/* Between begin_fetch() and end_fetch() the session is the store's. */
static void no_fetch_has_begun(wb_storage_session *session)
{
    (void)session;
    if (fake_store.has_begun)
        abort();
}

static fake_row *find(const wb_delayed_key *key)
{
    for (size_t i = 0; i < fake_store.row_count; i++) {
        fake_row *row = &fake_store.rows[i];
        if (strcmp(row->destination, key->destination) == 0 && strcmp(row->id, key->id) == 0 &&
            row->retries == key->retries)
            return row;
    }
    return NULL;
}

static int is_his(const fake_row *row, const char *owner)
{
    return row && (!owner || memcmp(row->owner, owner, sizeof row->owner) == 0);
}

/* ---- the store ------------------------------------------------------------------------ */

static int initialize(wb_persistence *persistence, int32_t mode, wb_error *error)
{
    (void)persistence, (void)mode, (void)error;
    return WB_OK;
}

static int store(wb_storage_session *session, const wb_delayed *messages, size_t count, wb_error *error)
{
    no_fetch_has_begun(session);
    fake_store.store_calls++;
    int r = next_answer(fake_store.store_answers, error);
    for (size_t i = 0; i < count && r == WB_OK; i++)
        if (fake_store.row_max && messages[i].operation_size > fake_store.row_max)
            r = wb_error_set(error, WB_REJECT, WB_CAUSE_TOO_LARGE, 0, "a row does not hold it");
    for (size_t i = 0; i < count && r == WB_OK; i++) {
        const wb_delayed *m = &messages[i];
        const wb_delayed_key key = { m->destination, m->destination_size, m->id, m->id_size, m->retries, 0, 0 };
        if (find(&key))
            continue;
        fake_row *row = &fake_store.rows[fake_store.row_count++];
        *row = (fake_row){ .retries = m->retries, .due = m->due, .operation_size = m->operation_size };
        (void)snprintf(row->destination, sizeof row->destination, "%s", m->destination);
        (void)snprintf(row->id, sizeof row->id, "%.*s", (int)m->id_size, m->id);
        memcpy(row->operation, m->operation, m->operation_size);
    }
    return r;
}

static int next(wb_storage_session *session, int64_t *ret_due, int64_t *ret_now, wb_error *error)
{
    no_fetch_has_begun(session);
    int r = next_answer(fake_store.next_answers, error);
    if (r != WB_OK)
        return r;
    *ret_due = WB_NEVER_DUE;
    *ret_now = fake_store.now;
    for (size_t i = 0; i < fake_store.row_count; i++) {
        const fake_row *row = &fake_store.rows[i];
        int64_t at = row->leased_until > fake_store.now && row->leased_until > row->due ? row->leased_until
                                                                                        : row->due;
        *ret_due = at < *ret_due ? at : *ret_due;
    }
    if (fake_store.told_while_looking)
        wb_alarm_tell(alarm_of_poller, fake_store.told_while_looking);
    fake_store.told_while_looking = 0;
    return WB_OK;
}

/* What a fetch takes, copied: rows move, and others change them before it is visited. */
static size_t take(const wb_delayed_fetch *fetch, fake_row *taken)
{
    size_t count = 0;
    if (fake_store.locked_for > 0 && fake_store.locked_for--)
        return 0;
    for (size_t i = 0; i < fake_store.row_count && count < fetch->limit; i++) {
        fake_row *row = &fake_store.rows[i];
        if (row->due > fake_store.now || row->leased_until > fake_store.now)
            continue;
        memcpy(row->owner, fetch->owner, sizeof row->owner);
        row->leased_until = fake_store.now + fetch->lease;
        taken[count++] = *row;
    }
    return count;
}

static void visit_taken(const fake_row *taken, size_t count, wb_delayed_fn visit, void *argument)
{
    for (size_t i = 0; i < count; i++) {
        const fake_row *row = &taken[i];
        const wb_delayed message = { .struct_size = sizeof message,
                                     .destination = row->destination,
                                     .destination_size = strlen(row->destination),
                                     .id = row->id,
                                     .id_size = strlen(row->id),
                                     .retries = row->retries,
                                     .failures = row->failures,
                                     .due = row->due,
                                     .operation = row->operation,
                                     .operation_size = row->operation_size };
        (void)visit(argument, &message);
    }
}

static int fetch(wb_storage_session *session, const wb_delayed_fetch *fetch, wb_delayed_fn visit,
                 void *argument, wb_error *error)
{
    static fake_row taken[FAKE_ROWS_MAX];
    no_fetch_has_begun(session);
    fake_store.fetch_calls++;
    if (fake_store.stop_in_fetch == fake_store.fetch_calls + fake_store.begin_calls)
        *fake_store.stop = 1;
    int r = next_answer(fake_store.fetch_answers, error);
    if (r == WB_OK)
        visit_taken(taken, take(fetch, taken), visit, argument);
    return r;
}

static void drop_rows(const char *owner, wb_delayed_key *keys, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        fake_row *row = find(&keys[i]);
        keys[i].was_there = is_his(row, owner);
        if (!keys[i].was_there)
            continue;
        int64_t age = fake_store.now - (row->leased_until - WB_LOT_LEASE);
        fake_store.oldest_removed = age > fake_store.oldest_removed ? age : fake_store.oldest_removed;
        *row = fake_store.rows[--fake_store.row_count];
    }
}

static fake_row begun[FAKE_ROWS_MAX];
static size_t begun_count;
static wb_delayed_key *begun_keys;
static size_t begun_key_count;
static wb_delayed_fetch begun_what;

static void do_begun(void)
{
    drop_rows(begun_what.owner, begun_keys, begun_key_count);
    begun_count = take(&begun_what, begun);
}

static int begin_fetch(wb_storage_session *session, wb_delayed_key *keys, size_t count,
                       const wb_delayed_fetch *what, wb_error *error)
{
    no_fetch_has_begun(session);
    fake_store.begin_calls++;
    fake_store.ride_calls += count > 0;
    if (fake_store.stop_in_fetch == fake_store.fetch_calls + fake_store.begin_calls)
        *fake_store.stop = 1;
    int r = next_answer(fake_store.fetch_answers, error);
    if (r != WB_OK)
        return r;
    begun_keys = keys;
    begun_key_count = count;
    begun_what = *what;
    if (!fake_store.works_late)
        do_begun();
    fake_store.has_begun = 1;
    return WB_OK;
}

static int end_fetch(wb_storage_session *session, wb_delayed_fn visit, void *argument, wb_error *error)
{
    (void)session;
    if (!fake_store.has_begun)
        abort();
    fake_store.has_begun = 0;
    int r = next_answer(fake_store.end_answers, error);
    if (r == WB_OK && fake_store.works_late)
        do_begun();
    if (r == WB_OK)
        visit_taken(begun, begun_count, visit, argument);
    return r;
}

static int remove_rows(wb_storage_session *session, const char *owner, wb_delayed_key *keys, size_t count,
                       wb_error *error)
{
    no_fetch_has_begun(session);
    fake_store.remove_calls++;
    int r = next_answer(fake_store.remove_answers, error);
    if (r == WB_OK)
        drop_rows(owner, keys, count);
    return r;
}

static int increment(wb_storage_session *session, const char *owner, wb_delayed_key *keys, size_t count,
                     int64_t due, wb_error *error)
{
    no_fetch_has_begun(session);
    (void)error;
    for (size_t i = 0; i < count; i++) {
        fake_row *row = find(&keys[i]);
        keys[i].was_there = is_his(row, owner);
        if (!keys[i].was_there)
            continue;
        row->failures++;
        row->due = due;
        row->leased_until = 0;
    }
    return WB_OK;
}

static int release(wb_storage_session *session, const char *owner, wb_delayed_key *keys, size_t count,
                   int64_t due, wb_error *error)
{
    no_fetch_has_begun(session);
    (void)error;
    fake_store.release_calls++;
    fake_store.released += count;
    for (size_t i = 0; i < count; i++) {
        fake_row *row = find(&keys[i]);
        keys[i].was_there = is_his(row, owner);
        if (!keys[i].was_there)
            continue;
        row->due = due ? due : row->due;
        row->leased_until = 0;
    }
    return WB_OK;
}

static const wb_delayed_ops delayed_ops = {
    .struct_size = sizeof delayed_ops,
    .initialize = initialize,
    .store = store,
    .next = next,
    .fetch = fetch,
    .remove = remove_rows,
    .increment_failure_count = increment,
    .release = release,
    .begin_fetch = begin_fetch,
    .end_fetch = end_fetch,
};

static int open_storage(wb_persistence *persistence, wb_storage_session **ret_session, wb_error *error)
{
    (void)persistence, (void)error;
    if (fake_store.is_away)
        return wb_error_set(error, WB_NOT_CONNECTED, WB_CAUSE_OTHER, 0, "away");
    fake_store.storage_open++;
    fake_store.storage_opened++;
    *ret_session = (wb_storage_session *)&fake_store;
    return WB_OK;
}

static void close_storage(wb_storage_session *session)
{
    (void)session;
    fake_store.has_begun = 0;
    fake_store.storage_open--;
}

static int clock_of(wb_storage_session *session, int64_t *ret_wall, wb_error *error)
{
    (void)session, (void)error;
    *ret_wall = fake_store.now;
    return WB_OK;
}

static int join(wb_storage_session *session, void *native, wb_error *error)
{
    (void)session, (void)native, (void)error;
    return WB_OK;
}

static const wb_persistence_ops persistence_ops = { .struct_size = sizeof persistence_ops,
                                                    .open = open_storage,
                                                    .close = close_storage,
                                                    .join = join,
                                                    .clock = clock_of,
                                                    .delayed = &delayed_ops };

/* ---- the transport --------------------------------------------------------------------- */

static int open_transport(wb_transport *transport, uint32_t purpose, uint32_t prefetch,
                          wb_transport_session **ret_session, wb_error *error)
{
    (void)transport, (void)purpose, (void)prefetch, (void)error;
    fake_store.transport_open++;
    fake_store.transport_opened++;
    *ret_session = (wb_transport_session *)&fake_store;
    return WB_OK;
}

static void close_transport(wb_transport_session *session)
{
    (void)session;
    fake_store.transport_open--;
    fake_store.lost = WB_OK;
}

static int answer_of_transaction(int answers[8], wb_error *error)
{
    if (fake_store.lost != WB_OK)
        return wb_error_set(error, fake_store.lost, WB_CAUSE_OTHER, 0, "the session is lost");
    const int answer = next_answer(answers, error);
    if (answer == WB_NOT_CONNECTED || answer == WB_IN_DOUBT || answer == WB_FATAL)
        fake_store.lost = answer;
    return answer;
}

static int begin_transaction(wb_transport_session *session, wb_error *error)
{
    (void)session;
    return answer_of_transaction(fake_store.begin_answers, error);
}

static int commit_transaction(wb_transport_session *session, wb_error *error)
{
    (void)session;
    return answer_of_transaction(fake_store.commit_answers, error);
}

static int roll_back(wb_transport_session *session, wb_error *error)
{
    (void)session, (void)error;
    return WB_OK;
}

static void *native_of(wb_transport_session *session)
{
    return session;
}

static void copy_header(const wb_operation *operation, const char *name, char *text, size_t size)
{
    const wb_header *header =
        wb_headers_find(operation->headers, operation->header_count, name, strlen(name));
    (void)snprintf(text, size, "%s", header ? header->value : "");
}

static void note_sent(const wb_operation *operation)
{
    fake_sent *sent = &fake_store.sent[fake_store.sent_count++];
    (void)snprintf(sent->destination, sizeof sent->destination, "%s", operation->destination);
    (void)snprintf(sent->id, sizeof sent->id, "%.*s", (int)operation->id_size, operation->id);
    (void)snprintf(sent->body, sizeof sent->body, "%.*s", (int)operation->body_size,
                   (const char *)operation->body);
    copy_header(operation, WB_HEADER_FAILED_QUEUE, sent->failed_queue, sizeof sent->failed_queue);
    copy_header(operation, WB_HEADER_RETRIES, sent->retries, sizeof sent->retries);
    sent->deliver_at = operation->deliver_at;
}

static int is_refused(const wb_operation *operation)
{
    if (fake_store.picky && strcmp(operation->destination, fake_store.picky) == 0)
        return fake_store.picky_for-- > 0;
    return fake_store.refused && strcmp(operation->destination, fake_store.refused) == 0;
}

static int send_one(wb_operation *operation)
{
    if (fake_store.silent && strcmp(operation->destination, fake_store.silent) == 0)
        return fake_store.unheard++, WB_IN_DOUBT;
    if (is_refused(operation)) {
        operation->result = WB_REJECT;
        operation->cause = fake_store.refused_cause;
        operation->reason = "refused by the test";
        operation->flags |= fake_store.refused_in_part ? WB_OPERATION_PARTLY_SENT : 0;
        return WB_OK;
    }
    operation->result = WB_OK;
    note_sent(operation);
    return WB_OK;
}

static int send(wb_transport_session *session, wb_operation *const *operations, size_t count,
                int64_t deadline, wb_error *error)
{
    (void)session, (void)deadline;
    fake_store.send_windows++;
    fake_store.sent_beside += fake_store.has_begun;
    fake_store.now += fake_store.window_takes;
    if (fake_store.stop_in_window == fake_store.send_windows)
        *fake_store.stop = 1;
    int r = next_answer(fake_store.send_answers, error), all = WB_OK;
    for (size_t i = 0; i < count && r == WB_OK; i++) {
        int one = send_one(operations[i]);
        all = one != WB_OK ? one : all;
    }
    return all == WB_OK ? r : wb_error_set(error, all, WB_CAUSE_SENDING, 0, "no confirmation came");
}

static const wb_transport_ops transport_ops = { .struct_size = sizeof transport_ops,
                                                .open = open_transport,
                                                .close = close_transport,
                                                .send = send,
                                                .begin = begin_transaction,
                                                .commit = commit_transaction,
                                                .rollback = roll_back,
                                                .native = native_of };

/* ---- set-up ---------------------------------------------------------------------------- */

void fake_delays_reset(wb_pipeline *pipeline)
{
    memset(&fake_store, 0, sizeof fake_store);
    fake_store.now = 1000 * WB_SECOND;
    *pipeline = (wb_pipeline){ .endpoint = "e",
                               .mode = WB_MODE_RECEIVE_ONLY,
                               .transport_ops = &transport_ops,
                               .persistence_ops = &persistence_ops,
                               .origin = wb_origin_make("e", 1, 1000),
                               .recoverability = { .immediate_retries = 5, .error_queue = "error" } };
    pipeline->origin.delays = WB_DELAYS_BY_STORE;
    wb_pipeline_init(pipeline);
    alarm_of_poller = &pipeline->alarm;
    wb_error error;
    (void)wb_pipeline_ask_time(pipeline, NULL, &error);
}

static void add_row(int32_t kind, const char *destination, const char *id, int64_t due)
{
    wb_operation_node node = { .operation = { .struct_size = sizeof(wb_operation),
                                              .kind = kind,
                                              .destination = destination,
                                              .id = id,
                                              .id_size = strlen(id),
                                              .body = "body",
                                              .body_size = 4,
                                              .result = WB_RETRY } };
    const wb_operation_list list = { &node, &node, 1 };
    wb_buffer bytes = { 0 };
    wb_error error;
    wb_operations_encode_start(&bytes);
    (void)wb_operations_encode_group(&bytes, id, strlen(id), &list);
    const wb_delayed message = { .struct_size = sizeof message, .destination = destination,
                                 .destination_size = strlen(destination), .id = id, .id_size = strlen(id),
                                 .due = due, .operation = bytes.data, .operation_size = bytes.size };
    (void)store(NULL, &message, 1, &error);
    fake_store.store_calls = 0;
    wb_buffer_free(&bytes);
}

void fake_delays_add(const char *destination, const char *id, int64_t due)
{
    add_row(WB_OPERATION_SEND, destination, id, due);
}

void fake_delays_add_event(const char *type, const char *id, int64_t due)
{
    add_row(WB_OPERATION_PUBLISH, type, id, due);
}
