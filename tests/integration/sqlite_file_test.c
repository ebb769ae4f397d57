/* SPDX-License-Identifier: Apache-2.0
 *
 * The sqlite transport and its files: modes, sizes, what is flushed to disk, what is missing or
 * damaged, and what happens when somebody meddles with them.
 */
#include "config.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/integration/sqlite_support.h"

#define BOTH (WB_SESSION_RECEIVE | WB_SESSION_SEND)

typedef struct fixture {
    char *directory;
    char *file;
    place orders;
} fixture;

static int set_up(void **state)
{
    fixture *made = calloc(1, sizeof *made);
    made->directory = test_directory();
    made->file = test_file(made->directory, "queues.db");
    place_open(&made->orders, "orders", NULL, made->file, NULL);
    place_install(&made->orders);
    *state = made;
    return 0;
}

static int tear_down(void **state)
{
    fixture *made = *state;
    place_close(&made->orders);
    free(made->file);
    test_remove(made->directory);
    free(made);
    return 0;
}

/* ---- meddling -------------------------------------------------------------------------- */

static void a_stolen_claim_is_noticed(void **state)
{
    fixture *with = *state;
    const wb_incoming *message;
    wb_transport_session *session = place_session(&with->orders, BOTH);
    place_send_numbers(&with->orders, session, "orders", 0, 1);
    assert_int_equal(place_receive(&with->orders, session, &message, 1, 1000), 1);
    test_execute(with->file, "update waybill_claim set session=99");
    assert_int_equal(with->orders.transport_ops->begin(session, &with->orders.error),
                     WB_NOT_CONNECTED);
    with->orders.transport_ops->close(session);
}

static void a_deleted_sessions_file_is_noticed(void **state)
{
    fixture *with = *state;
    const wb_incoming *message;
    size_t count = 0;
    char *path = test_file(with->directory, "queues.db-sessions");
    wb_transport_session *session = place_session(&with->orders, BOTH);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(with->orders.transport_ops->receive(session, test_now() + 3 * WB_SECOND,
                                                         &message, 1, &count,
                                                         &with->orders.error),
                     WB_NOT_CONNECTED);
    free(path);
    with->orders.transport_ops->close(session);
}

/* ---- the file -------------------------------------------------------------------------- */

static off_t size_of(const char *directory, const char *name)
{
    struct stat status;
    char *path = test_file(directory, name);
    off_t size = stat(path, &status) == 0 ? status.st_size : -1;
    free(path);
    return size;
}

static void the_log_is_bounded_and_cut_back_when_idle(void **state)
{
    fixture *with = *state;
    static char body[4000];
    const wb_incoming *messages[100];
    wb_operation operations[100];
    wb_transport_session *session = place_session(&with->orders, BOTH);
    for (int round = 0; round < 120; round++) {
        for (size_t i = 0; i < 100; i++)
            operations[i] = test_send("orders", "i", 1, body, sizeof body);
        place_send(&with->orders, session, operations, 100);
        assert_int_equal(place_receive(&with->orders, session, messages, 100, 1000), 100);
        place_acknowledge(&with->orders, session, messages, 100);
        assert_in_range(size_of(with->directory, "queues.db-wal"), 0, 32 << 20);
    }
    assert_int_equal(place_receive(&with->orders, session, messages, 100, 1500), 0);
    assert_int_equal(size_of(with->directory, "queues.db-wal"), 0);
    assert_in_range(size_of(with->directory, "queues.db"), 0, 8 << 20);
    with->orders.transport_ops->close(session);
}

static void files_are_the_owners_only(void **state)
{
    fixture *with = *state;
    static const char *const names[] = { "queues.db", "queues.db-sessions", "queues.db-wal",
                                         "queues.db-shm" };
    wb_transport_session *session = place_session(&with->orders, BOTH);
    place_send_numbers(&with->orders, session, "orders", 0, 1);
    for (size_t i = 0; i < 4; i++) {
        struct stat status;
        char *path = test_file(with->directory, names[i]);
        assert_int_equal(stat(path, &status), 0);
        assert_int_equal(status.st_mode & 0777, 0600);
        free(path);
    }
    with->orders.transport_ops->close(session);
}

static void expect_failure(place *at, int verify, int cause, const char *text)
{
    int result = verify ? at->transport_ops->verify(at->transport, &at->error)
                        : at->transport_ops->install(at->transport, &at->error);
    assert_int_equal(result, WB_FATAL);
    assert_int_equal(at->error.cause, cause);
    if (!strstr(at->error.text, text))
        fail_msg("\"%s\" does not say \"%s\"", at->error.text, text);
}

static void what_is_missing_is_named(void **state)
{
    fixture *with = *state;
    place other;
    static const char *const more[] = { "Sales.More", NULL };
    char *away = test_file(with->directory, "no");
    char *nowhere = test_file(with->directory, "no/such.db");
    char *absent = test_file(with->directory, "absent.db");
    char *text = test_file(with->directory, "text.db");
    test_execute(text, "create table t(a)");
    assert_int_equal(mkdir(away, 0700), 0);
    place_open(&other, "orders", NULL, nowhere, NULL);
    assert_int_equal(rmdir(away), 0);
    expect_failure(&other, 0, WB_CAUSE_MISSING, "create it");
    expect_failure(&other, 1, WB_CAUSE_MISSING, "create it");
    place_close(&other);
    place_open(&other, "orders", NULL, absent, NULL);
    expect_failure(&other, 1, WB_CAUSE_MISSING, "waybill install");
    place_close(&other);
    place_open(&other, "orders", NULL, text, NULL);
    expect_failure(&other, 1, WB_CAUSE_MISMATCH, "waybill install");
    place_close(&other);
    place_open(&other, "unknown", NULL, with->file, NULL);
    expect_failure(&other, 1, WB_CAUSE_MISSING, "\"unknown\"");
    place_close(&other);
    place_open(&other, "orders", more, with->file, NULL);
    expect_failure(&other, 1, WB_CAUSE_MISSING, "\"Sales.More\"");
    place_close(&other);
    test_execute(with->file, "update waybill_schema set version=99");
    expect_failure(&with->orders, 0, WB_CAUSE_MISMATCH, "newer waybill");
    free(nowhere);
    free(away);
    free(absent);
    free(text);
}

static void a_file_that_is_no_database_is_refused(void **state)
{
    fixture *with = *state;
    place other;
    char *path = test_file(with->directory, "garbage.db");
    FILE *file = fopen(path, "w");
    for (int i = 0; i < 1000; i++)
        (void)fputs("this is not a database\n", file);
    (void)fclose(file);
    place_open(&other, "orders", NULL, path, NULL);
    expect_failure(&other, 0, WB_CAUSE_MISMATCH, "garbage.db");
    expect_failure(&other, 1, WB_CAUSE_MISMATCH, "garbage.db");
    place_close(&other);
    free(path);
}

static void one_file_has_one_name(void **state)
{
    fixture *with = *state;
    char first[PATH_MAX];
    char second[PATH_MAX];
    const wb_plugin *transport = test_plugin("transport");
    const wb_plugin *persistence = test_plugin("persistence");
    char *link = test_file(with->directory, "link.db");
    assert_int_equal(symlink(with->file, link), 0);
    void *one = test_config(transport, with->file);
    void *two = test_config(persistence, link);
    const wb_transport_ops *transport_ops = transport->ops;
    const wb_persistence_ops *persistence_ops = persistence->ops;
    assert_int_equal(transport_ops->shared_resource(one, first, sizeof first), WB_OK);
    assert_int_equal(persistence_ops->shared_resource(two, second, sizeof second), WB_OK);
    assert_string_equal(first, second);
    assert_int_equal(transport_ops->shared_resource(one, first, 5), WB_REJECT);
    free(one);
    free(two);
    free(link);
}

/* ---- what is flushed to disk ----------------------------------------------------------- */

static int flushes;

/* for SQLite, too */
__attribute__((visibility("default"))) int fdatasync(int file)
{
    flushes++;
    return (int)syscall(SYS_fdatasync, file);
}

/* A letter an operation: "d" is durable, "n" may be kept in memory only. */
static void send_window(fixture *with, wb_transport_session *session, const char *window)
{
    wb_operation operations[4];
    const size_t count = strlen(window);
    assert_in_range(count, 1, 4);
    for (size_t i = 0; i < count; i++) {
        operations[i] = test_send("orders", "i", 1, "x", 1);
        if (window[i] == 'n')
            operations[i].flags |= WB_OPERATION_NON_PERSISTENT;
    }
    place_send(&with->orders, session, operations, count);
}

/* One durable operation is enough, wherever it stands and whatever was sent before. */
static void assert_flushes(fixture *with, int of_durable)
{
    static const char *const windows[] = { "d", "n", "nd", "nn", "dn", "n", "dd", "nnn", "nnnd", "dnnn", "ndnn" };
    wb_transport_session *session = place_session(&with->orders, BOTH);
    send_window(with, session, "d"); /* begins the log */
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++) {
        flushes = 0;
        send_window(with, session, windows[i]);
        if ((flushes != 0) != (of_durable && strchr(windows[i], 'd')))
            fail_msg("\"%s\" was flushed %d times", windows[i], flushes);
    }
    with->orders.transport_ops->close(session);
}

static void what_was_confirmed_survives_a_power_loss(void **state)
{
    assert_flushes(*state, 1);
}

static void unless_that_is_not_wanted(void **state)
{
    fixture *with = *state;
    test_config_set(test_plugin("transport"), with->orders.transport_config, "synchronous", 1);
    assert_flushes(with, 0);
}

/* Lost, it is received again; but what is a part of a transaction is as durable as the rest of it. */
static void what_was_received_is_flushed_in_transactions_only(void **state)
{
    fixture *with = *state;
    const wb_transport_ops *ops = with->orders.transport_ops;
    const wb_incoming *messages[2];
    wb_transport_session *session = place_session(&with->orders, BOTH);
    place_send_numbers(&with->orders, session, "orders", 0, 6); /* begins the log */
    flushes = 0;
    assert_int_equal(place_receive(&with->orders, session, messages, 2, 1000), 2);
    place_acknowledge(&with->orders, session, messages, 1);
    assert_int_equal(ops->give_back(session, &messages[1], 1, &with->orders.error), WB_OK);
    assert_int_equal(place_receive(&with->orders, session, messages, 2, 1000), 2);
    place_acknowledge(&with->orders, session, messages, 1);
    assert_int_equal(ops->begin(session, &with->orders.error), WB_OK);
    assert_int_equal(flushes, 0);
    send_window(with, session, "n");
    place_acknowledge(&with->orders, session, &messages[1], 1);
    assert_int_equal(ops->commit(session, &with->orders.error), WB_OK);
    assert_int_not_equal(flushes, 0);
    ops->close(session);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_stolen_claim_is_noticed),
        CASE(a_deleted_sessions_file_is_noticed),
        CASE(the_log_is_bounded_and_cut_back_when_idle),
        CASE(files_are_the_owners_only),
        CASE(what_is_missing_is_named),
        CASE(a_file_that_is_no_database_is_refused),
        CASE(one_file_has_one_name),
        CASE(what_was_confirmed_survives_a_power_loss),
        CASE(unless_that_is_not_wanted),
        CASE(what_was_received_is_flushed_in_transactions_only),
    };
    return cmocka_run_group_tests_name("sqlite files", tests, NULL, NULL);
}
