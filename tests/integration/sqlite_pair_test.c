/* SPDX-License-Identifier: Apache-2.0
 *
 * Both sqlite plugins together: one shared transaction, and the outbox between them.
 */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/integration/sqlite_fixture.h"

#define BOTH (WB_SESSION_RECEIVE | WB_SESSION_SEND)

/* ---- with the transport ------------------------------------------------------------------- */

static void join_shares_one_transaction(void **state)
{
    fixture *with = *state;
    const wb_incoming *message;
    place at;
    place_open(&at, "orders", NULL, with->data, with->data); /* one file */
    place_install(&at);
    const wb_transport_ops *transport = at.transport_ops;
    wb_transport_session *session = place_session(&at, BOTH);
    wb_storage_session *storage = place_storage(&at);
    place_send_numbers(&at, session, "orders", 0, 1);
    assert_int_equal(place_receive(&at, session, &message, 1, 1000), 1);
    assert_int_equal(with->ops->join(storage, transport->native(session), NULL), WB_ABORT);
    for (int attempt = 0; attempt < 2; attempt++) {
        assert_int_equal(transport->begin(session, NULL), WB_OK);
        assert_int_equal(with->ops->join(storage, transport->native(session), NULL), WB_OK);
        assert_ptr_equal(handle(with, storage), transport->native(session));
        assert_int_equal(run(handle(with, storage), "insert into business values(1,1)"),
                         SQLITE_OK);
        assert_int_equal(with->ops->check(storage, 0, NULL), WB_OK);
        place_send_numbers(&at, session, "error", 0, 1);
        place_acknowledge(&at, session, &message, 1);
        if (attempt == 0)
            assert_int_equal(transport->rollback(session, NULL), WB_OK);
        else
            assert_int_equal(transport->commit(session, NULL), WB_OK);
        assert_int_equal(with->ops->join(storage, NULL, NULL), WB_OK);
        assert_int_equal(test_query(with->data, "select count(*) from business"), attempt);
        assert_int_equal(test_messages(with->data, "error"), attempt);
        assert_int_equal(test_messages(with->data, "orders"), 1 - attempt);
    }
    with->ops->close(storage);
    transport->close(session);
    place_close(&at);
}

static void a_joined_handler_cannot_end_the_transaction(void **state)
{
    fixture *with = *state;
    const wb_incoming *message;
    place at;
    place_open(&at, "orders", NULL, with->data, with->data);
    place_install(&at);
    wb_transport_session *session = place_session(&at, BOTH);
    wb_storage_session *storage = place_storage(&at);
    place_send_numbers(&at, session, "orders", 0, 1);
    assert_int_equal(place_receive(&at, session, &message, 1, 1000), 1);
    assert_int_equal(at.transport_ops->begin(session, NULL), WB_OK);
    assert_int_equal(with->ops->join(storage, at.transport_ops->native(session), NULL), WB_OK);
    (void)run(handle(with, storage), "insert into business values(1,1); commit");
    assert_int_equal(with->ops->check(storage, 0, NULL), WB_REJECT);
    assert_int_equal(at.transport_ops->rollback(session, NULL), WB_OK);
    assert_int_equal(test_query(with->data, "select count(*) from business"), 0);
    assert_int_equal(test_messages(with->data, "orders"), 1);
    with->ops->close(storage); /* without leaving first, and before the transport */
    at.transport_ops->close(session);
    place_close(&at);
}

/* The transport's own statements are not refused for it either. */
static void what_a_joined_handler_leaves_ends_with_its_call(void **state)
{
    fixture *with = *state;
    const wb_incoming *message;
    place at;
    place_open(&at, "orders", NULL, with->data, with->data);
    place_install(&at);
    wb_transport_session *session = place_session(&at, BOTH);
    wb_storage_session *storage = place_storage(&at);
    for (int i = 0; i < LEAVINGS; i++) {
        place_send_numbers(&at, session, "orders", i, 1);
        assert_int_equal(place_receive(&at, session, &message, 1, 1000), 1);
        assert_int_equal(at.transport_ops->begin(session, NULL), WB_OK);
        assert_int_equal(with->ops->join(storage, at.transport_ops->native(session), NULL), WB_OK);
        leave_behind(handle(with, storage), i);
        assert_int_equal(with->ops->check(storage, 0, NULL), WB_OK);
        assert_int_equal(run(handle(with, storage), "insert into business(n) values(null)"), SQLITE_OK);
        leave_behind(handle(with, storage), i);
        assert_int_equal(with->ops->check(storage, 1, NULL), WB_OK);
        place_send_numbers(&at, session, "error", i, 1);
        place_acknowledge(&at, session, &message, 1);
        assert_int_equal(at.transport_ops->commit(session, NULL), WB_OK);
        assert_int_equal(with->ops->join(storage, NULL, NULL), WB_OK);
    }
    assert_int_equal(test_query(with->data, "select count(*) from business"), LEAVINGS);
    assert_int_equal(test_messages(with->data, "error"), LEAVINGS);
    assert_int_equal(test_messages(with->data, "orders"), 0);
    with->ops->close(storage);
    at.transport_ops->close(session);
    place_close(&at);
}

static void leave_refusal(sqlite3 *db, int which)
{
    static const char *const texts[] = { "pragma query_only=1", "pragma count_changes=1", "drop table waybill_claim",
                                         "pragma query_only=1; rollback", NULL };
    if (texts[which])
        (void)run(db, texts[which]);
    else
        (void)sqlite3_set_authorizer(db, deny, NULL);
}

enum { REFUSALS = 5, ENDED = 3 };

/* What is refused for what a handler did is refused no more when it is rolled back. */
static void what_a_joined_handler_has_refused_is_its_own(void **state)
{
    fixture *with = *state;
    const wb_incoming *message;
    place at;
    place_open(&at, "orders", NULL, with->data, with->data);
    place_install(&at);
    wb_transport_session *session = place_session(&at, BOTH);
    wb_storage_session *storage = place_storage(&at);
    place_send_numbers(&at, session, "orders", 0, 1);
    assert_int_equal(place_receive(&at, session, &message, 1, 1000), 1);
    for (int i = 0; i < 2 * REFUSALS; i++) {
        const int which = i / 2, sends = i % 2;
        wb_operation operation = test_send("error", "1", 1, "1", 1), *one = &operation;
        if (sends && which == 2)
            continue; /* nothing is claimed by a send */
        assert_int_equal(at.transport_ops->begin(session, NULL), WB_OK);
        assert_int_equal(with->ops->join(storage, at.transport_ops->native(session), NULL), WB_OK);
        leave_refusal(handle(with, storage), which);
        assert_int_equal(sends ? at.transport_ops->send(session, &one, 1, test_now() + WB_SECOND, &at.error)
                               : which == ENDED ? at.transport_ops->commit(session, &at.error)
                                                : at.transport_ops->acknowledge(session, &message, 1, &at.error),
                         which == ENDED ? WB_ABORT : WB_FATAL);
        assert_int_equal(at.transport_ops->rollback(session, NULL), WB_OK);
        assert_int_equal(with->ops->join(storage, NULL, NULL), WB_OK);
    }
    assert_int_equal(at.transport_ops->begin(session, NULL), WB_OK);
    assert_int_equal(with->ops->join(storage, at.transport_ops->native(session), NULL), WB_OK);
    place_send_numbers(&at, session, "error", 7, 1);
    place_acknowledge(&at, session, &message, 1);
    assert_int_equal(at.transport_ops->commit(session, NULL), WB_OK);
    assert_int_equal(test_messages(with->data, "error"), 1);
    assert_int_equal(test_messages(with->data, "orders"), 0);
    with->ops->close(storage);
    at.transport_ops->close(session);
    place_close(&at);
}

static void close_joined(sqlite3 *db, int with_statements)
{
    for (sqlite3_stmt *each; with_statements && (each = sqlite3_next_stmt(db, NULL));)
        (void)sqlite3_finalize(each);
    assert_int_equal(sqlite3_close_v2(db), SQLITE_OK);
}

/* What is in hand stays there, and nothing keeps others from the file. */
static void a_joined_handler_may_close_the_connection(void **state)
{
    fixture *with = *state;
    const wb_incoming *messages[3];
    place at;
    place_open(&at, "orders", NULL, with->data, with->data);
    place_install(&at);
    wb_transport_session *session = place_session(&at, BOTH);
    wb_storage_session *storage = place_storage(&at);
    place_send_numbers(&at, session, "orders", 0, 3);
    assert_int_equal(place_receive(&at, session, messages, 3, 1000), 3);
    for (int i = 0; i < 6; i++) {
        const int all = i % 2;
        assert_int_equal(at.transport_ops->begin(session, NULL), WB_OK);
        assert_int_equal(with->ops->join(storage, at.transport_ops->native(session), NULL), WB_OK);
        assert_int_equal(run(handle(with, storage), "insert into business values(1,1)"), SQLITE_OK);
        if (i < 4)
            place_send_numbers(&at, session, "error", i, 1); /* statements of a route */
        close_joined(handle(with, storage), all);
        if (all) /* there is nothing that the persistence could be asked about */
            assert_null(at.transport_ops->native(session));
        else
            assert_int_equal(with->ops->check(storage, 0, NULL), WB_REJECT);
        assert_int_equal(at.transport_ops->rollback(session, NULL), WB_OK);
        assert_int_equal(with->ops->join(storage, NULL, NULL), WB_OK);
        test_execute(with->data, "begin immediate; commit");
        assert_int_equal(at.transport_ops->begin(session, NULL), WB_OK);
        place_send_numbers(&at, session, "error", i, 1);
        if (all)
            place_acknowledge(&at, session, &messages[i / 2], 1);
        assert_int_equal(at.transport_ops->commit(session, NULL), WB_OK);
        assert_int_equal(test_messages(with->data, "error"), i + 1);
        assert_int_equal(test_messages(with->data, "orders"), 3 - (i + 1) / 2);
    }
    assert_int_equal(test_query(with->data, "select count(*) from business"), 0);
    close_joined(at.transport_ops->native(session), 1); /* and its end */
    with->ops->close(storage);
    at.transport_ops->close(session);
    place_close(&at);
}

/* A transaction that was undone for them keeps nobody from the file, and the next one waits for others as ever. */
static void what_a_joined_handler_leaves_ends_with_its_rollback(void **state)
{
    fixture *with = *state;
    const wb_incoming *message;
    pthread_t thread;
    sqlite3 *other = NULL;
    place at;
    place_open(&at, "orders", NULL, with->data, with->data);
    place_install(&at);
    wb_transport_session *session = place_session(&at, BOTH);
    wb_storage_session *storage = place_storage(&at);
    place_send_numbers(&at, session, "orders", 0, 1);
    assert_int_equal(place_receive(&at, session, &message, 1, 1000), 1);
    assert_int_equal(sqlite3_open(with->data, &other), SQLITE_OK);
    for (int i = 0; i <= LEAVINGS; i++) {
        assert_int_equal(at.transport_ops->begin(session, NULL), WB_OK);
        assert_int_equal(with->ops->join(storage, at.transport_ops->native(session), NULL), WB_OK);
        (void)sqlite3_busy_timeout(handle(with, storage), 0);
        if (i == LEAVINGS)
            (void)sqlite3_set_authorizer(handle(with, storage), deny, NULL);
        else
            leave_behind(handle(with, storage), i);
        assert_int_equal(at.transport_ops->rollback(session, NULL), WB_OK);
        assert_int_equal(with->ops->join(storage, NULL, NULL), WB_OK);
        assert_int_equal(run(other, "begin immediate"), SQLITE_OK);
        assert_int_equal(pthread_create(&thread, NULL, let_go, other), 0);
        assert_int_equal(at.transport_ops->begin(session, NULL), WB_OK);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(at.transport_ops->rollback(session, NULL), WB_OK);
    }
    assert_int_equal(test_messages(with->data, "orders"), 1);
    (void)sqlite3_close(other);
    with->ops->close(storage);
    at.transport_ops->close(session);
    place_close(&at);
}

/* Nor does what SQLite compiled to do nothing, where nobody asked check() before it was run. */
static void what_was_compiled_for_a_joined_handler_ends_with_its_rollback(void **state)
{
    fixture *with = *state;
    place at;
    place_open(&at, "orders", NULL, with->data, with->data);
    place_install(&at);
    wb_transport_session *session = place_session(&at, BOTH);
    wb_storage_session *storage = place_storage(&at);
    place_send_numbers(&at, session, "error", 0, 1);
    assert_int_equal(at.transport_ops->begin(session, NULL), WB_OK);
    assert_int_equal(with->ops->join(storage, at.transport_ops->native(session), NULL), WB_OK);
    (void)sqlite3_set_authorizer(handle(with, storage), ignore, NULL);
    place_send_numbers(&at, session, "error", 1, 1);
    assert_int_equal(at.transport_ops->rollback(session, NULL), WB_OK);
    assert_int_equal(with->ops->join(storage, NULL, NULL), WB_OK);
    place_send_numbers(&at, session, "error", 2, 1);
    assert_int_equal(test_messages(with->data, "error"), 2);
    with->ops->close(storage);
    at.transport_ops->close(session);
    place_close(&at);
}

/* One batch in the order of the pipeline, receive_only with the outbox. */
static void one_batch(const fixture *with, place *at, wb_transport_session *session,
                      wb_storage_session *storage, uint64_t batch)
{
    const wb_incoming *messages[10];
    wb_claim claims[10];
    size_t count = place_receive(at, session, messages, 10, 1000);
    char sql[80];
    assert_int_equal(count, 10);
    for (size_t i = 0; i < count; i++)
        claims[i] = (wb_claim){ .id = messages[i]->id, .id_size = messages[i]->id_size };
    begin(with, storage, batch, claims, count);
    for (size_t i = 0; i < count; i++) {
        if (claims[i].duplicate_of)
            continue;
        (void)snprintf(sql, sizeof sql, "insert into business(n) values(%d)",
                       test_number(messages[i]));
        assert_int_equal(run(handle(with, storage), sql), SQLITE_OK);
        assert_int_equal(with->ops->check(storage, i, NULL), WB_OK);
    }
    assert_int_equal(commit(with, storage, batch, "events"), WB_OK);
    place_send_numbers(at, session, "error", (int)batch, 1);
    mark(with, storage, batch, NULL);
    place_acknowledge(at, session, messages, count);
}

static void the_outbox_works_on(const fixture *with, const char *queues, const char *data)
{
    place at;
    place_open(&at, "orders", NULL, queues, data);
    place_install(&at);
    wb_transport_session *session = place_session(&at, BOTH);
    wb_storage_session *storage = place_storage(&at);
    place_send_numbers(&at, session, "orders", 0, 20);
    place_send_numbers(&at, session, "orders", 5, 10); /* duplicates */
    for (uint64_t batch = 1; batch <= 3; batch++)
        one_batch(with, &at, session, storage, batch);
    at.transport_ops->close(session);
    with->ops->close(storage);
    place_close(&at);
    assert_int_equal(test_query(data, "select count(*) from business"), 20);
    assert_int_equal(test_query(data, "select count(*) from waybill_orders_pending"), 0);
    assert_int_equal(test_messages(queues, "orders"), 0);
    assert_int_equal(test_messages(queues, "error"), 3);
}

static void the_outbox_works_on_one_file(void **state)
{
    fixture *with = *state;
    the_outbox_works_on(with, with->data, with->data);
}

static void the_outbox_works_on_two_files(void **state)
{
    fixture *with = *state;
    the_outbox_works_on(with, with->queues, with->data);
}

/* ---- sending at once, while this thread has the file -------------------------------------- */

static int send_now(place *at, wb_transport_session *session, int milliseconds,
                    wb_operation *operation)
{
    wb_operation *window = operation;
    *operation = test_send("error", "now", 3, "now", 3);
    return at->transport_ops->send(session, &window, 1, test_now() + milliseconds * WB_MILLISECOND,
                                   &at->error);
}

typedef struct elsewhere {
    place *at;
    wb_transport_session *session;
    int result;
} elsewhere;

static void *send_elsewhere(void *argument)
{
    elsewhere *mine = argument;
    wb_operation operation;
    mine->result = send_now(mine->at, mine->session, 50, &operation);
    return NULL;
}

static void nobody_waits_for_a_lock_of_ones_own(void **state)
{
    const fixture *with = *state;
    place at;
    wb_operation operation;
    wb_claim claim = { .id = "m", .id_size = 1 };
    pthread_t thread;
    place_open(&at, "orders", NULL, with->data, with->data); /* one file */
    place_install(&at);
    wb_transport_session *session = place_session(&at, BOTH);
    wb_storage_session *storage = place_storage(&at);
    begin(with, storage, 1, &claim, 1);
    int64_t before = test_now();
    assert_int_equal(send_now(&at, session, 10000, &operation), WB_OK);
    assert_true(test_now() - before < 2 * WB_SECOND);
    assert_int_equal(operation.result, WB_REJECT);
    assert_non_null(strstr(operation.reason, "without WB_IMMEDIATE"));
    elsewhere other = { &at, session, WB_OK }; /* another thread's lock is waited for */
    assert_int_equal(pthread_create(&thread, NULL, send_elsewhere, &other), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(other.result, WB_RETRY);
    assert_int_equal(commit(with, storage, 1, NULL), WB_OK);
    assert_int_equal(send_now(&at, session, 10000, &operation), WB_OK);
    assert_int_equal(operation.result, WB_OK);
    assert_int_equal(test_messages(with->data, "error"), 1);
    at.transport_ops->close(session);
    with->ops->close(storage);
    place_close(&at);
}

static void another_file_of_this_thread_is_in_nobodys_way(void **state)
{
    fixture *with = *state;
    wb_operation operation;
    wb_claim claim = { .id = "m", .id_size = 1 };
    wb_transport_session *session = place_session(&with->at, BOTH);
    wb_storage_session *storage = place_storage(&with->at);
    begin(with, storage, 1, &claim, 1);
    assert_int_equal(send_now(&with->at, session, 10000, &operation), WB_OK);
    assert_int_equal(operation.result, WB_OK);
    assert_int_equal(commit(with, storage, 1, NULL), WB_OK);
    with->at.transport_ops->close(session);
    with->ops->close(storage);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(join_shares_one_transaction),
        CASE(a_joined_handler_cannot_end_the_transaction),
        CASE(what_a_joined_handler_leaves_ends_with_its_call),
        CASE(what_a_joined_handler_leaves_ends_with_its_rollback),
        CASE(what_was_compiled_for_a_joined_handler_ends_with_its_rollback),
        CASE(what_a_joined_handler_has_refused_is_its_own),
        CASE(a_joined_handler_may_close_the_connection),
        CASE(the_outbox_works_on_one_file),
        CASE(the_outbox_works_on_two_files),
        CASE(nobody_waits_for_a_lock_of_ones_own),
        CASE(another_file_of_this_thread_is_in_nobodys_way),
    };
    return cmocka_run_group_tests_name("sqlite pair", tests, NULL, NULL);
}
