/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose fault an error is, wherever it is met: in a statement of a handler's own, deferred, sent
 * ahead for the plain connection, or at COMMIT. */
#include "config.h"

#include <limits.h>

#include "tests/integration/pgsql_fixture.h"


typedef struct fault {
    const char *sqlstate;
    int result, cause;
} fault;

/* What a server reports while the session lives, as a foreign server's wrapper passes it on, too. */
static const fault faults[] = {
    { "08006", WB_RETRY, WB_CAUSE_OTHER },  { "0A000", WB_RETRY, WB_CAUSE_OTHER },
    { "22012", WB_RETRY, WB_CAUSE_OTHER },  { "23503", WB_RETRY, WB_CAUSE_OTHER },
    { "23505", WB_RETRY, WB_CAUSE_OTHER },  { "25006", WB_RETRY, WB_CAUSE_OTHER },
    { "26000", WB_RETRY, WB_CAUSE_OTHER },  { "42P01", WB_RETRY, WB_CAUSE_OTHER },
    { "54000", WB_RETRY, WB_CAUSE_OTHER },  { "55006", WB_RETRY, WB_CAUSE_OTHER },
    { "P0001", WB_RETRY, WB_CAUSE_OTHER },  { "XX000", WB_RETRY, WB_CAUSE_OTHER },
    { "40001", WB_ABORT, WB_CAUSE_OTHER },  { "40P01", WB_ABORT, WB_CAUSE_OTHER },
    { "53100", WB_RETRY, WB_CAUSE_SERVER }, { "53200", WB_RETRY, WB_CAUSE_SERVER },
    { "53300", WB_RETRY, WB_CAUSE_SERVER }, { "55P03", WB_RETRY, WB_CAUSE_SERVER },
    { "57014", WB_RETRY, WB_CAUSE_SERVER }, { "57P01", WB_RETRY, WB_CAUSE_SERVER },
    { "58030", WB_RETRY, WB_CAUSE_SERVER },
};
#define FAULT_COUNT (sizeof faults / sizeof faults[0])

static int set_up(void **state)
{
    (void)state;
    endpoint_install(&orders, "orders");
    observe("create or replace function fail(code text) returns void language plpgsql as $$ begin "
            "raise exception using errcode = code, message = 'as asked'; end $$");
    observe("create or replace function fail_later() returns trigger language plpgsql as $$ begin "
            "perform fail(new.code); return null; end $$");
    observe("create table later (code text)");
    observe("create constraint trigger later after insert on later deferrable initially deferred "
            "for each row execute function fail_later()");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    observe("select pg_terminate_backend(pid, 5000) from pg_stat_activity "
            "where application_name like 'waybill/%' and datname = current_database()");
    observe("drop table later");
    endpoint_destroy(&orders);
    return 0;
}

static void assert_fault(const char *where, const fault *wanted, int result)
{
    if (result != wanted->result || failure.cause != wanted->cause)
        fail_msg("%s at %s: class %d, cause %d: %s", wanted->sqlstate, where, result, failure.cause,
                 failure.text);
    assert_non_null(strstr(failure.text, wanted->sqlstate));
}

/* Whose is the failure of item 3's statement? The server's is nobody's. */
static size_t item_of(const fault *f)
{
    return f->cause == WB_CAUSE_SERVER ? SIZE_MAX : 3;
}

static const char *ask(const char *before, const fault *f)
{
    static char text[128];
    (void)snprintf(text, sizeof text, "%s('%s')", before, f->sqlstate);
    return text;
}

static void test_handlers_statement(void **state)
{
    wb_storage_session *s = open_session(&orders);
    size_t item;
    (void)state;
    for (const fault *f = faults; f < faults + FAULT_COUNT; f++) {
        begin_batch(s, 10);
        PGconn *db = api->connection(s, 3);
        PQclear(PQexec(db, ask("select fail", f)));
        PQclear(PQexec(db, "select 1"));
        assert_fault("check", f, ops->check(s, 3, &failure));
        assert_fault("commit", f, commit_batch(s, 10, "x", &item));
        assert_int_equal(item, item_of(f));
    }
    begin_batch(s, 11); /* the session lives */
    assert_int_equal(commit_batch(s, 11, "x", NULL), WB_OK);
    ops->close(s);
}

static void test_deferred_statement(void **state)
{
    wb_storage_session *s = open_session(&orders);
    size_t item;
    (void)state;
    for (const fault *f = faults; f < faults + FAULT_COUNT; f++) {
        begin_batch(s, 10);
        assert_int_equal(api->defer(s, 2, "select 1", NULL), WB_OK);
        assert_int_equal(api->defer(s, 3, ask("select fail", f), NULL), WB_OK);
        assert_fault("commit", f, commit_batch(s, 10, "x", &item));
        assert_int_equal(item, item_of(f));

        begin_batch(s, 11);
        assert_int_equal(api->defer(s, 3, ask("select fail", f), NULL), WB_OK);
        assert_int_equal(PQtransactionStatus(api->connection(s, 4)), PQTRANS_INERROR);
        assert_fault("check of its item", f, ops->check(s, 3, &failure));
        const int of_another = ops->check(s, 4, &failure);
        assert_int_equal(of_another, item_of(f) == 3 ? WB_ABORT : WB_RETRY);
        assert_int_equal(ops->rollback(s, &failure), WB_OK);
    }
    assert_int_equal(observe_number("select count(*) from orders_pending"), 0);
    ops->close(s);
}

/* An error answered to COMMIT has rolled back for sure, and the code says whose it is: not in
 * doubt, and not our own statement's either. */
static void test_at_commit(void **state)
{
    wb_storage_session *s = open_session(&orders);
    wb_claim claim = claim_of("a");
    size_t item;
    (void)state;
    for (const fault *f = faults; f < faults + FAULT_COUNT; f++) {
        begin_claims(s, 10, &claim, 1);
        assert_int_equal(claim.duplicate_of, 0);
        assert_int_equal(api->defer(s, 3, ask("insert into later values", f), NULL), WB_OK);
        assert_fault("commit", f, commit_batch(s, 10, "x", &item));
        assert_int_equal(item, SIZE_MAX);
    }
    assert_int_equal(observe_number("select count(*) from orders_dedup"), 0);
    ops->close(s);
}

/* A unique constraint of the handler's that is looked at when it commits: the same every time,
 * so that it must count. */
static void test_deferred_unique(void **state)
{
    wb_storage_session *s = open_session(&orders);
    (void)state;
    observe("create table only_one (n int unique deferrable initially deferred)");
    begin_batch(s, 10);
    assert_int_equal(api->defer(s, 3, "insert into only_one values (1), (1)", NULL), WB_OK);
    assert_int_equal(commit_batch(s, 10, "x", NULL), WB_RETRY);
    assert_int_equal(failure.cause, WB_CAUSE_OTHER);
    observe("drop table only_one");
    ops->close(s);
}

/* NOWAIT, and a neighbour is there. */
static void test_lock_of_a_neighbour(void **state)
{
    wb_storage_session *s = open_session(&orders);
    wb_storage_session *neighbour = open_session(&orders);
    (void)state;
    observe("insert into orders_pending values (1, 'x')");
    begin_batch(neighbour, 10);
    PQclear(PQexec(api->connection(neighbour, 0), "select from orders_pending for update"));
    begin_batch(s, 11);
    PQclear(PQexec(api->connection(s, 3), "select from orders_pending for update nowait"));
    assert_int_equal(ops->check(s, 3, &failure), WB_RETRY);
    assert_int_equal(failure.cause, WB_CAUSE_SERVER);
    ops->close(neighbour);
    ops->close(s);
}

/* Overlooked, the handler's message would be committed without its statement. */
static void test_no_memory_for_a_deferred_statement(void **state)
{
    static const char *values[1000];
    static int lengths[1000], formats[1000];
    wb_storage_session *s = open_session(&orders);
    size_t item;
    (void)state;
    for (int i = 0; i < 1000; i++) {
        values[i] = "x"; /* not read: there is no place for it */
        lengths[i] = INT_MAX;
        formats[i] = 1;
    }
    const wb_pgsql_params params = { 1000, formats, lengths, NULL, values };
    for (int overlooked_for = 0; overlooked_for < 2; overlooked_for++) {
        begin_batch(s, 10);
        assert_int_equal(api->defer(s, 3, "select 1", &params), WB_RETRY);
        if (overlooked_for)
            PQclear(PQexec(api->connection(s, 3), "select 1"));
        assert_int_equal(ops->check(s, 3, &failure), WB_RETRY);
        assert_int_equal(failure.cause, WB_CAUSE_SERVER);
        assert_int_equal(commit_batch(s, 10, "x", &item), WB_RETRY);
        assert_int_equal(failure.cause, WB_CAUSE_SERVER);
        assert_int_equal(item, SIZE_MAX);
    }
    begin_batch(s, 11);
    assert_int_equal(commit_batch(s, 11, "x", NULL), WB_OK);
    ops->close(s);
}

static void test_operations_over_the_limit(void **state)
{
    wb_storage_session *s = open_session(&orders);
    wb_commit commit = { .struct_size = sizeof commit, .batch = 10, .operations = "not read",
                         .operations_size = 1000000001 };
    (void)state;
    begin_batch(s, 10);
    assert_int_equal(ops->commit(s, &commit, &failure), WB_REJECT);
    assert_int_equal(commit.failed_item, SIZE_MAX);
    assert_int_equal(failure.cause, WB_CAUSE_TOO_LARGE);
    assert_non_null(strstr(failure.text, "1000000001 bytes of outgoing operations"));
    begin_batch(s, 11); /* that commit's, not the session's */
    assert_int_equal(commit_batch(s, 11, "x", NULL), WB_OK);
    ops->close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
        TEST(test_handlers_statement),
        TEST(test_deferred_statement),
        TEST(test_at_commit),
        TEST(test_deferred_unique),
        TEST(test_lock_of_a_neighbour),
        TEST(test_no_memory_for_a_deferred_statement),
        TEST(test_operations_over_the_limit),
    };
    return cmocka_run_group_tests_name("pgsql faults", tests, load_plugin, NULL);
}
