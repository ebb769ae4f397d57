/* SPDX-License-Identifier: Apache-2.0
 *
 * The sqlite plugins on a full disk, and on a file that others keep: it is the server's fault
 * in every call, nothing is refused for it, and all goes on when there is room.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/integration/sqlite_disk.h"
#include "tests/integration/sqlite_fixture.h"

#define BOTH (WB_SESSION_RECEIVE | WB_SESSION_SEND)
#define DISK_SIZE ((size_t)48 << 20)

/* More than what SQLite keeps in memory: the statement itself meets the full disk. */
#define SPILL "insert into blobs values(zeroblob(6000000))"
#define LITTLE "insert into blobs values(zeroblob(200000))"

/* One file for queues and data ("data"), or two. */
static void open_place(fixture *with, const char *queues, const char *data, int mode)
{
    place_open(&with->at, "orders", NULL, queues, data);
    with->at.info.mode = mode;
    place_install(&with->at);
    with->ops = with->at.persistence_ops;
}

static char disk[] = "/tmp/waybill-disk-XXXXXX";

static int mount_disk(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(disk));
    disk_mount(disk, DISK_SIZE);
    return 0;
}

static int leave_disk(void **state)
{
    (void)state;
    disk_unmount(disk);
    return rmdir(disk);
}

static int set_up_disk(void **state)
{
    fixture *made = calloc(1, sizeof *made);
    (void)setenv("TMPDIR", disk, 1);
    made->directory = test_directory();
    made->queues = test_file(made->directory, "queues.db");
    made->data = test_file(made->directory, "data.db");
    test_execute(made->data, "pragma journal_mode=wal; create table blobs(b);"
                             "create table business(id integer primary key, n integer unique)");
    *state = made;
    return 0;
}

static int tear_down_disk(void **state)
{
    fixture *made = *state;
    disk_free(disk);
    return tear_down((void **)&made);
}

/* Log that was used before can be written again without room: cut it off first. */
static void cut_logs(const fixture *with)
{
    test_execute(with->data, "pragma wal_checkpoint(truncate)");
    if (access(with->queues, F_OK) == 0)
        test_execute(with->queues, "pragma wal_checkpoint(truncate)");
}

static void fill_disk(const fixture *with)
{
    cut_logs(with);
    disk_fill(disk);
}

#define ASSERT_SERVERS(with, call)                                                                 \
    do {                                                                                           \
        assert_int_equal((call), WB_RETRY);                                                        \
        if ((with)->at.error.cause != WB_CAUSE_SERVER)                                             \
            fail_msg("cause %d: %s", (with)->at.error.cause, (with)->at.error.text);               \
    } while (0)

static int commit_plain(fixture *with, wb_storage_session *session)
{
    wb_commit asked = { .struct_size = sizeof asked };
    return with->ops->commit(session, &asked, &with->at.error);
}

/* ---- the persistence --------------------------------------------------------------- */

static void a_full_disk_at_commit_is_the_servers(void **state)
{
    fixture *with = *state;
    wb_claim claim = { .id = "a", .id_size = 1 };
    open_place(with, with->queues, with->data, WB_MODE_RECEIVE_ONLY);
    wb_storage_session *session = place_storage(&with->at);
    for (uint64_t batch = 7; batch < 10; batch++) {
        cut_logs(with);
        begin(with, session, batch, &claim, 1);
        assert_int_equal(claim.duplicate_of, 0);
        assert_int_equal(run(handle(with, session), LITTLE), SQLITE_OK);
        assert_int_equal(with->ops->check(session, 0, &with->at.error), WB_OK);
        disk_fill(disk);
        wb_commit asked = { .struct_size = sizeof asked,
                            .batch = batch,
                            .operations = "operations",
                            .operations_size = 10 };
        ASSERT_SERVERS(with, with->ops->commit(session, &asked, &with->at.error));
        assert_true(asked.failed_item == SIZE_MAX);
        disk_free(disk);
    }
    begin(with, session, 10, &claim, 1);
    assert_int_equal(claim.duplicate_of, 0);
    assert_int_equal(run(handle(with, session), LITTLE), SQLITE_OK);
    assert_int_equal(commit(with, session, 10, "operations"), WB_OK);
    assert_int_equal(test_query(with->data, "select count(*) from blobs"), 1);
    with->ops->close(session);
}

/* What handlers do after a statement of theirs met the full disk. */
static const char *const afterwards[] = {
    "",
    "select count(*) from business",
    "insert into business(n) values(1)",
    "select 1 from nowhere",
    "begin immediate; insert into business(n) values(2); commit",
    "rollback",
};

static void a_handlers_full_disk_is_seen(void **state)
{
    fixture *with = *state;
    open_place(with, with->queues, with->data, WB_MODE_RECEIVE_ONLY);
    wb_storage_session *session = place_storage(&with->at);
    for (size_t i = 0; i < sizeof afterwards / sizeof afterwards[0]; i++) {
        cut_logs(with);
        begin(with, session, 0, NULL, 0);
        disk_fill(disk);
        assert_int_equal(run(handle(with, session), SPILL), SQLITE_FULL);
        (void)run(handle(with, session), afterwards[i]);
        ASSERT_SERVERS(with, with->ops->check(session, 0, &with->at.error));
        ASSERT_SERVERS(with, commit_plain(with, session));
        assert_int_equal(with->ops->rollback(session, NULL), WB_OK);
        disk_free(disk);
        begin(with, session, 0, NULL, 0);
        assert_int_equal(run(handle(with, session), SPILL), SQLITE_OK);
        assert_int_equal(with->ops->check(session, 0, &with->at.error), WB_OK);
        if (i == 0)
            assert_int_equal(commit(with, session, 0, NULL), WB_OK);
        else
            assert_int_equal(with->ops->rollback(session, NULL), WB_OK);
    }
    assert_int_equal(test_query(with->data, "select count(*) from blobs"), 1);
    assert_int_equal(test_query(with->data, "select count(*) from business"), 0);
    with->ops->close(session);
}

static void the_handlers_own_errors_stay_its_own(void **state)
{
    fixture *with = *state;
    static const char *const wrong[] = {
        "insert into business values(1,1); insert into business values(1,1)",
        "select 1 from nowhere",
        "insert into blobs values(zeroblob(3000000000))",
        "attach '/nowhere/such.db' as other",
    };
    open_place(with, with->queues, with->data, WB_MODE_RECEIVE_ONLY);
    wb_storage_session *session = place_storage(&with->at);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        begin(with, session, 0, NULL, 0);
        assert_int_not_equal(run(handle(with, session), wrong[i]), SQLITE_OK);
        assert_int_equal(with->ops->check(session, 0, &with->at.error), WB_OK);
        assert_int_equal(with->ops->rollback(session, NULL), WB_OK);
    }
    begin(with, session, 0, NULL, 0);
    assert_int_equal(run(handle(with, session), "rollback"), SQLITE_OK);
    assert_int_equal(with->ops->check(session, 0, &with->at.error), WB_REJECT);
    with->ops->close(session);
}

/* SQLite calls a statement that still runs busy as well. */
static void a_busy_statement_of_the_handler_is_its_own(void **state)
{
    fixture *with = *state;
    sqlite3_stmt *running = NULL;
    open_place(with, with->queues, with->data, WB_MODE_RECEIVE_ONLY);
    wb_storage_session *session = place_storage(&with->at);
    begin(with, session, 0, NULL, 0);
    assert_int_equal(sqlite3_prepare_v2(handle(with, session),
                                        "insert into business(n) values(1),(2) returning n", -1,
                                        &running, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(running), SQLITE_ROW);
    assert_int_equal(run(handle(with, session), "savepoint mine"), SQLITE_BUSY);
    assert_int_equal(with->ops->check(session, 0, &with->at.error), WB_OK);
    assert_int_equal(commit(with, session, 0, NULL), WB_OK);
    with->ops->close(session);
}

static void a_handlers_locked_file_is_the_servers(void **state)
{
    fixture *with = *state;
    char sql[400];
    sqlite3 *other = NULL;
    char *path = test_file(with->directory, "other.db");
    test_execute(path, "create table t(a)");
    open_place(with, with->queues, with->data, WB_MODE_RECEIVE_ONLY);
    test_config_set(test_plugin("persistence"), with->at.persistence_config, "busy_timeout",
                    50 * WB_MILLISECOND);
    wb_storage_session *session = place_storage(&with->at);
    begin(with, session, 0, NULL, 0);
    (void)snprintf(sql, sizeof sql, "attach '%s' as other", path);
    assert_int_equal(run(handle(with, session), sql), SQLITE_OK);
    assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
    assert_int_equal(run(other, "begin exclusive"), SQLITE_OK);
    assert_int_equal(run(handle(with, session), "insert into other.t values(1)"), SQLITE_BUSY);
    ASSERT_SERVERS(with, with->ops->check(session, 0, &with->at.error));
    assert_int_equal(with->ops->rollback(session, NULL), WB_OK);
    (void)sqlite3_close(other);
    free(path);
    with->ops->close(session);
}

static int visit_nothing(void *argument, const wb_pending *pending)
{
    (void)argument;
    (void)pending;
    return WB_OK;
}

/* Marks and cleanup write as well; what only reads goes on. */
static void housekeeping_waits_for_room(void **state)
{
    fixture *with = *state;
    size_t deleted = 0;
    static char operations[100000];
    memset(operations, 'x', sizeof operations - 1);
    open_place(with, with->queues, with->data, WB_MODE_RECEIVE_ONLY);
    wb_storage_session *session = place_storage(&with->at);
    wb_mark some = { .batch = 1, .remaining = operations, .remaining_size = sizeof operations - 1 };
    begin(with, session, 1, &(wb_claim){ .id = "a", .id_size = 1 }, 1);
    assert_int_equal(commit(with, session, 1, operations), WB_OK);
    fill_disk(with);
    for (int i = 0; i < 3; i++) {
        memset(operations, 'a' + i, sizeof operations - 1); /* what stays is not written */
        ASSERT_SERVERS(with, with->ops->mark(session, &some, 1, &with->at.error));
    }
    wb_begin asked = { .struct_size = sizeof asked, .marks = &some, .mark_count = 1 };
    ASSERT_SERVERS(with, with->ops->begin(session, &asked, &with->at.error));
    assert_int_equal(with->ops->next_pending(session, 0, UINT64_MAX, visit_nothing, NULL, NULL),
                     WB_OK);
    disk_free(disk);
    some.remaining = NULL;
    assert_int_equal(with->ops->mark(session, &some, 1, NULL), WB_OK);
    assert_int_equal(with->ops->clean_up(session, 2, 10, &deleted, NULL), WB_OK);
    assert_int_equal(deleted, 1);
    with->ops->close(session);
}

/* ---- the transport ----------------------------------------------------------------- */

/* Whatever is sent is large, so that the log must grow. */
static void send_until_full(fixture *with, wb_transport_session *session, int *ret_sent)
{
    static char body[100000];
    int result = WB_OK;
    *ret_sent = 0;
    while (result == WB_OK) {
        (void)snprintf(body, sizeof body, "%d", *ret_sent);
        wb_operation operation = test_send("orders", body, strlen(body), body, sizeof body);
        wb_operation lost = test_send("nobody", "x", 1, "x", 1);
        wb_operation *window[] = { &operation, &lost };
        result = with->at.transport_ops->send(session, window, 2, WB_NEVER, &with->at.error);
        assert_int_equal(operation.result, result);
        assert_int_equal(lost.result, result == WB_OK ? WB_REJECT : lost.result);
        *ret_sent += result == WB_OK;
    }
    ASSERT_SERVERS(with, result);
}

static void the_queue_waits_for_room(fixture *with, int mode)
{
    int sent;
    const wb_incoming *messages[100];
    open_place(with, with->queues, with->data, mode);
    const wb_transport_ops *ops = with->at.transport_ops;
    wb_transport_session *session = place_session(&with->at, BOTH);
    fill_disk(with);
    send_until_full(with, session, &sent);
    disk_free(disk);
    place_send_numbers(&with->at, session, "orders", sent, 5);
    fill_disk(with);
    size_t count = 0;
    int taken = 0;
    int result = WB_OK;
    while (result == WB_OK && taken < sent + 5) {
        result = ops->receive(session, test_now() + WB_SECOND, messages, 1, &count,
                              &with->at.error);
        if (result == WB_OK && count) {
            assert_int_equal(test_number(messages[0]), taken++);
            assert_int_equal(messages[0]->delivery_count, 0);
            assert_int_equal(ops->acknowledge(session, messages, 1, &with->at.error), WB_OK);
        }
    }
    ASSERT_SERVERS(with, result);
    disk_free(disk);
    while (taken < sent + 5) {
        assert_int_equal(place_receive(&with->at, session, messages, 1, 1000), 1);
        assert_int_equal(test_number(messages[0]), taken++);
        assert_int_equal(messages[0]->delivery_count, 0);
        place_acknowledge(&with->at, session, messages, 1);
    }
    ops->close(session);
    assert_int_equal(test_messages(with->queues, "orders"), 0);
}

static void the_queue_waits_for_room_in_receive_only(void **state)
{
    the_queue_waits_for_room(*state, WB_MODE_RECEIVE_ONLY);
}

static void the_queue_waits_for_room_in_none(void **state)
{
    the_queue_waits_for_room(*state, WB_MODE_NONE);
}

/* Of two that came together one is acknowledged, and its row cannot be deleted at first. */
static void what_stays_in_hand_stays_in_the_queue(void **state)
{
    fixture *with = *state;
    const wb_incoming *messages[2], *none;
    size_t count;
    open_place(with, with->queues, with->data, WB_MODE_RECEIVE_ONLY);
    const wb_transport_ops *ops = with->at.transport_ops;
    wb_transport_session *session = place_session(&with->at, BOTH);
    place_send_numbers(&with->at, session, "orders", 0, 2);
    assert_int_equal(place_receive(&with->at, session, messages, 2, 1000), 2);
    fill_disk(with);
    place_acknowledge(&with->at, session, messages, 1);
    ASSERT_SERVERS(with, ops->receive(session, test_now() + WB_SECOND, &none, 1, &count, &with->at.error));
    disk_free(disk);
    assert_int_equal(place_receive(&with->at, session, &none, 1, 0), 0);
    assert_int_equal(test_messages(with->queues, "orders"), 1);
    assert_int_equal(test_number(messages[1]), 1);
    ops->close(session);
    assert_int_equal(test_messages(with->queues, "orders"), 1);
}

/* One attempt of a batch of two in the transport's own transaction, on a disk that is
 * filled before the commit. */
static void attempt(fixture *with, wb_transport_session *session, const wb_incoming **messages,
                    int expected)
{
    const wb_transport_ops *ops = with->at.transport_ops;
    static char body[300000];
    wb_operation operations[] = { test_send("error", "e", 1, body, sizeof body),
                                  test_send("nobody", "f", 1, body, 1),
                                  test_send("error", "g", 1, body, 1) };
    wb_operation *window[] = { &operations[0], &operations[1], &operations[2] };
    assert_int_equal(ops->begin(session, &with->at.error), WB_OK);
    assert_int_equal(ops->send(session, window, 3, WB_NEVER, &with->at.error), WB_OK);
    assert_int_equal(operations[0].result, WB_OK);
    assert_int_equal(operations[1].result, WB_REJECT);
    assert_int_equal(operations[1].cause, WB_CAUSE_UNROUTABLE);
    assert_int_equal(operations[2].result, WB_OK);
    assert_int_equal(ops->acknowledge(session, messages, 2, &with->at.error), WB_OK);
    if (expected != WB_OK)
        disk_fill(disk);
    if (expected == WB_RETRY)
        ASSERT_SERVERS(with, ops->commit(session, &with->at.error));
    else
        assert_int_equal(ops->commit(session, &with->at.error), WB_OK);
    disk_free(disk);
}

static void a_transaction_can_be_repeated(void **state)
{
    fixture *with = *state;
    const wb_incoming *messages[2];
    open_place(with, with->queues, with->data, WB_MODE_SENDS_ATOMIC);
    wb_transport_session *session = place_session(&with->at, BOTH);
    place_send_numbers(&with->at, session, "orders", 0, 2);
    assert_int_equal(place_receive(&with->at, session, messages, 2, 1000), 2);
    for (int i = 0; i < 3; i++) {
        cut_logs(with);
        attempt(with, session, messages, WB_RETRY);
        assert_int_equal(test_messages(with->queues, "orders"), 2);
        assert_int_equal(test_messages(with->queues, "error"), 0);
        assert_int_equal(test_number(messages[1]), 1); /* still in hand */
    }
    assert_int_equal(with->at.transport_ops->begin(session, NULL), WB_OK);
    place_acknowledge(&with->at, session, messages, 2);
    assert_int_equal(with->at.transport_ops->rollback(session, NULL), WB_OK);
    attempt(with, session, messages, WB_OK);
    assert_int_equal(test_messages(with->queues, "orders"), 0);
    assert_int_equal(test_messages(with->queues, "error"), 2);
    assert_int_equal(test_query(with->queues, "select count(*) from waybill_claim"), 0);
    with->at.transport_ops->close(session);
}

/* ---- both on one file -------------------------------------------------------------- */

static void a_joined_handlers_full_disk_is_seen(void **state)
{
    fixture *with = *state;
    const wb_incoming *message;
    open_place(with, with->data, with->data, WB_MODE_TRANSACTION_SCOPE);
    const wb_transport_ops *ops = with->at.transport_ops;
    wb_transport_session *session = place_session(&with->at, BOTH);
    wb_storage_session *storage = place_storage(&with->at);
    place_send_numbers(&with->at, session, "orders", 0, 1);
    assert_int_equal(place_receive(&with->at, session, &message, 1, 1000), 1);
    for (size_t i = 0; i < sizeof afterwards / sizeof afterwards[0]; i++) {
        cut_logs(with);
        assert_int_equal(ops->begin(session, &with->at.error), WB_OK);
        assert_int_equal(with->ops->join(storage, ops->native(session), NULL), WB_OK);
        disk_fill(disk);
        assert_int_equal(run(handle(with, storage), SPILL), SQLITE_FULL);
        (void)run(handle(with, storage), afterwards[i]);
        ASSERT_SERVERS(with, with->ops->check(storage, 0, &with->at.error));
        wb_operation operation = test_send("error", "e", 1, "x", 1);
        wb_operation *window[] = { &operation };
        ASSERT_SERVERS(with, ops->send(session, window, 1, WB_NEVER, &with->at.error));
        ASSERT_SERVERS(with, ops->commit(session, &with->at.error));
        assert_int_equal(with->ops->join(storage, NULL, NULL), WB_OK);
        disk_free(disk);
    }
    assert_int_equal(ops->begin(session, &with->at.error), WB_OK);
    assert_int_equal(with->ops->join(storage, ops->native(session), NULL), WB_OK);
    assert_int_equal(run(handle(with, storage), SPILL), SQLITE_OK);
    assert_int_equal(with->ops->check(storage, 0, &with->at.error), WB_OK);
    place_acknowledge(&with->at, session, &message, 1);
    assert_int_equal(ops->commit(session, NULL), WB_OK);
    assert_int_equal(with->ops->join(storage, NULL, NULL), WB_OK);
    assert_int_equal(test_query(with->data, "select count(*) from blobs"), 1);
    assert_int_equal(test_query(with->data, "select count(*) from business"), 0);
    assert_int_equal(test_messages(with->data, "orders"), 0);
    with->ops->close(storage);
    ops->close(session);
}

/* ---- a file that others keep ------------------------------------------------------- */

static void a_busy_file_is_the_servers_in_every_call(void **state)
{
    fixture *with = *state;
    const wb_incoming *message;
    open_place(with, with->data, with->data, WB_MODE_SENDS_ATOMIC);
    const wb_transport_ops *ops = with->at.transport_ops;
    test_config_set(test_plugin("persistence"), with->at.persistence_config, "busy_timeout",
                    20 * WB_MILLISECOND);
    test_config_set(test_plugin("transport"), with->at.transport_config, "busy_timeout",
                    20 * WB_MILLISECOND);
    wb_transport_session *session = place_session(&with->at, BOTH);
    wb_transport_session *keeper = place_session(&with->at, BOTH);
    wb_storage_session *storage = place_storage(&with->at);
    place_send_numbers(&with->at, session, "orders", 0, 1);
    assert_int_equal(place_receive(&with->at, session, &message, 1, 1000), 1);
    wb_begin asked = { .struct_size = sizeof asked };
    wb_mark one = { .batch = 1 };
    sqlite3 *other = NULL;
    assert_int_equal(sqlite3_open(with->data, &other), SQLITE_OK);
    assert_int_equal(run(other, "begin immediate"), SQLITE_OK);
    wb_operation operation = test_send("error", "e", 1, "x", 1);
    wb_operation *window[] = { &operation };
    ASSERT_SERVERS(with, ops->send(session, window, 1, WB_NEVER, &with->at.error));
    ASSERT_SERVERS(with, ops->begin(session, &with->at.error));
    ASSERT_SERVERS(with, with->ops->begin(storage, &asked, &with->at.error));
    ASSERT_SERVERS(with, with->ops->mark(storage, &one, 1, &with->at.error));
    assert_int_equal(run(other, "rollback"), SQLITE_OK);
    (void)sqlite3_close(other);
    assert_int_equal(ops->begin(session, &with->at.error), WB_OK);
    place_acknowledge(&with->at, session, &message, 1);
    assert_int_equal(ops->commit(session, &with->at.error), WB_OK);
    ops->close(keeper);
    with->ops->close(storage);
    ops->close(session);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up_disk, tear_down_disk)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_full_disk_at_commit_is_the_servers),
        CASE(a_handlers_full_disk_is_seen),
        CASE(the_handlers_own_errors_stay_its_own),
        CASE(a_busy_statement_of_the_handler_is_its_own),
        CASE(a_handlers_locked_file_is_the_servers),
        CASE(housekeeping_waits_for_room),
        CASE(the_queue_waits_for_room_in_receive_only),
        CASE(the_queue_waits_for_room_in_none),
        CASE(what_stays_in_hand_stays_in_the_queue),
        CASE(a_transaction_can_be_repeated),
        CASE(a_joined_handlers_full_disk_is_seen),
        CASE(a_busy_file_is_the_servers_in_every_call),
    };
    return cmocka_run_group_tests_name("sqlite full disk", tests, mount_disk, leave_disk);
}
