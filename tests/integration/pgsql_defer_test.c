/* SPDX-License-Identifier: Apache-2.0
 *
 * What handlers write with: deferred statements, the plain connection, and what becomes
 * of those who misuse them. */
#include "config.h"

#include <stdlib.h>

#include "core/base/clock.h"
#include "plugins/common/sql/outbox.h"
#include "tests/integration/pgsql_fixture.h"

#define INSERT "insert into business (item, text) values ($1, $2)"


static int prepared = 1;

static int set_up(void **state)
{
    (void)state;
    endpoint_install(&orders, "orders");
    orders.config.prepare = prepared;
    observe("create table if not exists business "
            "(place bigserial primary key, item int, text text)");
    observe("truncate business");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    endpoint_destroy(&orders);
    return 0;
}

static int set_up_unprepared(void **state)
{
    prepared = 0;
    return set_up(state);
}

static int tear_down_unprepared(void **state)
{
    prepared = 1;
    return tear_down(state);
}

static int defer_row(wb_storage_session *s, size_t item, const char *text)
{
    char number[24];
    (void)snprintf(number, sizeof number, "%zu", item);
    return api->defer(s, item, INSERT, WB_PGSQL_TEXT(number, text));
}

static void exec(PGconn *db, const char *statement)
{
    PGresult *result = PQexec(db, statement);
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        fail_msg("%s: %s", statement, PQresultErrorMessage(result));
    PQclear(result);
}

static void test_deferred_in_order_with_the_batch(void **state)
{
    wb_storage_session *s = open_session(&orders);
    (void)state;
    for (int round = 0; round < 3; round++) { /* unprepared, being prepared, prepared */
        begin_batch(s, 10 + (uint64_t)round);
        for (size_t i = 0; i < 5; i++)
            assert_int_equal(defer_row(s, i, "x"), WB_OK);
        assert_int_equal(ops->check(s, 4, &failure), WB_OK);
        assert_int_equal(observe_number("select count(*) from business"), 5 * round);
        assert_int_equal(commit_batch(s, 10 + (uint64_t)round, "operations", NULL), WB_OK);
    }
    assert_int_equal(observe_number("select count(*) from (select item, lag(item) over (order by "
                                    "place) before from business) t where (before + 1) % 5 = item"),
                     14);
    assert_int_equal(observe_number("select count(*) from orders_pending"), 3);
    ops->close(s);
}

static void test_deferred_is_copied(void **state)
{
    wb_storage_session *s = open_session(&orders);
    char statement[] = INSERT;
    char text[] = "original";
    const char *values[] = { "1", text };
    wb_pgsql_params params = { .count = 2, .values = values };
    (void)state;
    begin_batch(s, 10);
    assert_int_equal(api->defer(s, 0, statement, &params), WB_OK);
    memset(statement, '?', sizeof statement - 1);
    memset(text, '?', sizeof text - 1);
    values[0] = values[1] = "?";
    assert_int_equal(commit_batch(s, 10, NULL, NULL), WB_OK);
    assert_int_equal(observe_number("select count(*) from business where text = 'original'"), 1);
    ops->close(s);
}

static void test_parameters_of_all_kinds(void **state)
{
    wb_storage_session *s = open_session(&orders);
    const char *const values[] = { "\0\0\0\x2a", NULL };
    const char *const bytes[] = { "7", "a b" };
    const int formats[] = { 1, 0 };
    const int both[] = { 0, 1 };
    const int lengths[] = { 4, 0 };
    const int byte_lengths[] = { 0, 3 };
    const unsigned int types[] = { 23, 25 };
    (void)state;
    begin_batch(s, 10);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(api->defer(s, 0, INSERT,
                                    &(wb_pgsql_params){ .count = 2, .values = values,
                                                        .formats = formats, .lengths = lengths,
                                                        .types = types }),
                         WB_OK);
        assert_int_equal(api->defer(s, 0, INSERT,
                                    &(wb_pgsql_params){ .count = 2, .values = bytes,
                                                        .formats = both,
                                                        .lengths = byte_lengths }),
                         WB_OK);
        assert_int_equal(api->defer(s, 0, "insert into business (item) values (1)", NULL), WB_OK);
    }
    if (commit_batch(s, 10, NULL, NULL) != WB_OK)
        fail_msg("%s", failure.text);
    assert_int_equal(
        observe_number("select count(*) from business where item = 42 and text is null"), 3);
    assert_int_equal(
        observe_number("select count(*) from business where item = 7 and text = 'a b'"), 3);
    assert_int_equal(observe_number("select count(*) from business where item = 1"), 3);
    ops->close(s);
}

static void test_malformed_is_refused(void **state)
{
    static const char *const refused[] = { "", "  -- nothing\n ", "/* a /* b */ */", "commit",
                                           " RollBack", "/* x */ begin", "--\nend",
                                           "copy t from stdin",
                                           "savepoint a", "prepare transaction 'x'", "abort",
                                           ";commit" };
    const char *const values[] = { "x" };
    const int binary[] = { 1 };
    wb_storage_session *s = open_session(&orders);
    (void)state;
    assert_int_equal(defer_row(s, 0, "x"), WB_REJECT); /* no transaction */
    begin_batch(s, 10);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        assert_int_equal(api->defer(s, 0, refused[i], NULL), WB_REJECT);
    assert_int_equal(api->defer(s, 0, NULL, NULL), WB_REJECT);
    assert_int_equal(api->defer(s, 0, INSERT, &(wb_pgsql_params){ .count = 1 }), WB_REJECT);
    assert_int_equal(api->defer(s, 0, INSERT, &(wb_pgsql_params){ .count = -1, .values = values }),
                     WB_REJECT);
    assert_int_equal(api->defer(s, 0, INSERT, &(wb_pgsql_params){ .count = 65536,
                                                                  .values = values }),
                     WB_REJECT);
    assert_int_equal(api->defer(s, 0, INSERT,
                                &(wb_pgsql_params){ .count = 1, .values = values,
                                                    .formats = binary }),
                     WB_REJECT);
    assert_int_equal(api->defer(s, 0, "insert into business (text) values ('commit')", NULL),
                     WB_OK);
    assert_int_equal(commit_batch(s, 10, NULL, NULL), WB_OK);
    assert_int_equal(observe_number("select count(*) from business"), 1);
    ops->close(s);
}

static void test_failure_names_its_item(void **state)
{
    static const struct {
        const char *statement;
        int64_t code; /* base 36 */
    } bad[] = {
        { "insert into business (item) values ('x')", 0 },
        { "insert into nowhere values (1)", 0 },
        { "this is not sql", 0 },
        { "select 1/0", 0 },
        { "insert into business values (1, 1), (1, 1)", 0 },
    };
    wb_storage_session *s = open_session(&orders);
    wb_claim claim = claim_of("a");
    size_t item = 0;
    (void)state;
    for (int again = 0; again < 3; again++) /* the second time it fails while being prepared */
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
            begin_claims(s, 10, &claim, 1);
            assert_int_equal(claim.duplicate_of, 0);
            assert_int_equal(defer_row(s, 3, "x"), WB_OK);
            assert_int_equal(api->defer(s, 4, bad[i].statement, NULL), WB_OK);
            assert_int_equal(defer_row(s, 5, "x"), WB_OK);
            assert_int_equal(commit_batch(s, 10, "x", &item), WB_RETRY);
            assert_int_equal(item, 4);
            assert_non_null(strstr(failure.text, "SQLSTATE"));
        }
    assert_int_equal(observe_number("select count(*) from business"), 0);
    assert_int_equal(observe_number("select count(*) from orders_pending"), 0);
    assert_int_equal(observe_number("select count(*) from orders_dedup"), 0);
    begin_batch(s, 11); /* and the session goes on */
    assert_int_equal(defer_row(s, 3, "x"), WB_OK);
    assert_int_equal(commit_batch(s, 11, NULL, &item), WB_OK);
    assert_int_equal(item, SIZE_MAX);
    assert_int_equal(observe_number("select count(*) from business"), 1);
    ops->close(s);
}

/* What fails only when COMMIT runs is nobody's in particular. */
static void test_failure_at_commit(void **state)
{
    wb_storage_session *s = open_session(&orders);
    size_t item = 0;
    (void)state;
    observe("create table if not exists parent (id int primary key)");
    observe("create table if not exists child "
            "(id int references parent deferrable initially deferred)");
    begin_batch(s, 10);
    assert_int_equal(api->defer(s, 4, "insert into child values (1)", NULL), WB_OK);
    assert_int_equal(commit_batch(s, 10, "x", &item), WB_RETRY);
    assert_int_equal(item, SIZE_MAX);
    assert_non_null(strstr(failure.text, "23503"));
    assert_int_equal(observe_number("select count(*) from orders_pending"), 0);
    ops->close(s);
}

/* More than the sockets' buffers hold, both ways: answers are read while statements are
 * still being written. */
static void test_ten_thousand_deferred(void **state)
{
    wb_storage_session *s = open_session(&orders);
    char *text = malloc(4001);
    (void)state;
    memset(text, 'x', 4000);
    text[4000] = '\0';
    begin_batch(s, 10);
    for (size_t i = 0; i < 10000; i++)
        assert_int_equal(api->defer(s, i,
                                    "insert into business (item, text) values (1, $1) "
                                    "returning text, text, text",
                                    WB_PGSQL_TEXT(text)),
                         WB_OK);
    if (commit_batch(s, 10, "x", NULL) != WB_OK)
        fail_msg("%s", failure.text);
    assert_int_equal(observe_number("select count(*) from business where length(text) = 4000"),
                     10000);
    free(text);
    ops->close(s);
}

static void test_many_different_statements(void **state)
{
    wb_storage_session *s = open_session(&orders);
    char statement[128];
    (void)state;
    for (uint64_t round = 0; round < 6; round++) {
        begin_batch(s, 10 + round);
        for (int i = 0; i < 200; i++) { /* more than are kept, and each often */
            (void)snprintf(statement, sizeof statement,
                           "insert into business (item) values (%d)",
                           i % 100 + (int)(round % 3) * 50);
            assert_int_equal(api->defer(s, 0, statement, NULL), WB_OK);
        }
        if (commit_batch(s, 10 + round, "x", NULL) != WB_OK)
            fail_msg("%s", failure.text);
    }
    assert_int_equal(observe_number("select count(*) from business"), 1200);
    begin_batch(s, 20);
    PGresult *kept = PQexec(api->connection(s, 0), "select count(*) from pg_prepared_statements");
    assert_true(atoi(PQgetvalue(kept, 0, 0)) <= 64 + WB_SQL_FREQUENT + 3); /* and ours */
    PQclear(kept);
    ops->close(s);
}

static void test_changed_table_is_prepared_anew(void **state)
{
    wb_storage_session *s = open_session(&orders);
    uint64_t batch = 10;
    (void)state;
    observe("drop table if exists changing");
    observe("create table changing (a int)");
    for (; batch < 13; batch++) {
        begin_batch(s, batch);
        assert_int_equal(api->defer(s, 0, "select * from changing", NULL), WB_OK);
        assert_int_equal(commit_batch(s, batch, NULL, NULL), WB_OK);
    }
    observe("alter table changing add b int");
    begin_batch(s, batch);
    assert_int_equal(api->defer(s, 0, "select * from changing", NULL), WB_OK);
    assert_int_equal(commit_batch(s, batch, NULL, NULL), WB_ABORT);
    begin_batch(s, batch);
    assert_int_equal(api->defer(s, 0, "select * from changing", NULL), WB_OK);
    assert_int_equal(commit_batch(s, batch, NULL, NULL), WB_OK);
    ops->close(s);
}

/* ---- the plain connection ------------------------------------------------------------ */

static void test_plain_connection_sees_what_was_deferred(void **state)
{
    wb_storage_session *s = open_session(&orders);
    (void)state;
    begin_batch(s, 10);
    assert_int_equal(defer_row(s, 0, "first"), WB_OK);
    PGconn *db = api->connection(s, 0);
    assert_non_null(db);
    assert_int_equal(PQisnonblocking(db), 0);
    assert_int_equal(PQpipelineStatus(db), PQ_PIPELINE_OFF);
    exec(db, "update business set text = 'second'");
    assert_int_equal(ops->check(s, 0, &failure), WB_OK);
    assert_int_equal(defer_row(s, 1, "third"), WB_OK);
    assert_int_equal(ops->check(s, 1, &failure), WB_OK);
    assert_int_equal(commit_batch(s, 10, "x", NULL), WB_OK);
    assert_int_equal(observe_number("select count(*) from business where text = 'second'"), 1);
    assert_int_equal(observe_number("select count(*) from business where text = 'third'"), 1);
    ops->close(s);
}

static void test_flushed_failure_is_the_items(void **state)
{
    wb_storage_session *s = open_session(&orders);
    size_t item = 0;
    (void)state;
    begin_batch(s, 10);
    assert_int_equal(api->defer(s, 3, "select 1/0", NULL), WB_OK);
    PGconn *db = api->connection(s, 5);
    assert_int_equal(PQtransactionStatus(db), PQTRANS_INERROR);
    /* not the doing of the handler that looks at it now */
    assert_int_equal(ops->check(s, 5, &failure), WB_ABORT);
    assert_int_equal(ops->check(s, 3, &failure), WB_RETRY);
    assert_non_null(strstr(failure.text, "22012"));
    assert_int_equal(commit_batch(s, 10, "x", &item), WB_RETRY);
    assert_int_equal(item, 3);
    begin_batch(s, 11);
    assert_int_equal(ops->check(s, 3, &failure), WB_OK);
    ops->close(s);
}

static void test_handler_leaves_transaction_failed(void **state)
{
    wb_storage_session *s = open_session(&orders);
    size_t item = 0;
    (void)state;
    begin_batch(s, 10);
    PGconn *db = api->connection(s, 2);
    PQclear(PQexec(db, "select 1/0"));
    PQclear(PQexec(db, "select 1")); /* the first failure counts, not this one's */
    assert_int_equal(ops->check(s, 2, &failure), WB_RETRY);
    assert_non_null(strstr(failure.text, "22012"));
    assert_int_equal(commit_batch(s, 10, "x", &item), WB_RETRY);
    assert_int_equal(item, 2);
    assert_int_equal(observe_number("select count(*) from orders_pending"), 0);
    begin_batch(s, 11);
    db = api->connection(s, 2);
    PQclear(PQexec(db, "do $$ begin raise exception using errcode = '40001'; end $$"));
    assert_int_equal(ops->check(s, 2, &failure), WB_ABORT); /* not the message's fault */
    assert_int_equal(ops->rollback(s, &failure), WB_OK);
    ops->close(s);
}

static void test_handler_recovers_by_savepoint(void **state)
{
    wb_storage_session *s = open_session(&orders);
    (void)state;
    begin_batch(s, 10);
    PGconn *db = api->connection(s, 2);
    exec(db, "savepoint mine");
    PQclear(PQexec(db, "select 1/0"));
    exec(db, "rollback to mine");
    assert_int_equal(ops->check(s, 2, &failure), WB_OK);
    assert_int_equal(defer_row(s, 2, "x"), WB_OK);
    assert_int_equal(commit_batch(s, 10, "x", NULL), WB_OK);
    assert_int_equal(observe_number("select count(*) from business"), 1);
    ops->close(s);
}

/* A savepoint brings the transaction back, but not what was deferred. */
static void test_savepoint_does_not_hide_a_deferred_failure(void **state)
{
    wb_storage_session *s = open_session(&orders);
    size_t item = 0;
    (void)state;
    begin_batch(s, 10);
    exec(api->connection(s, 2), "savepoint mine");
    assert_int_equal(api->defer(s, 2, "select 1/0", NULL), WB_OK);
    exec(api->connection(s, 3), "rollback to mine");
    assert_int_equal(ops->check(s, 3, &failure), WB_ABORT);
    assert_int_equal(commit_batch(s, 10, "x", &item), WB_RETRY);
    assert_int_equal(item, 2);
    assert_int_equal(observe_number("select count(*) from orders_pending"), 0);
    begin_batch(s, 11);
    assert_int_equal(ops->check(s, 2, &failure), WB_OK);
    ops->close(s);
}

/* Messages share a transaction, and its names: who goes back to what another left undoes what is between. */
static void test_savepoint_of_another_message(void **state)
{
    static const char insert[] = "insert into business (item) values (5)";
    wb_storage_session *s = open_session(&orders);
    (void)state;
    begin_batch(s, 10);
    exec(api->connection(s, 1), "savepoint mine");
    assert_int_equal(ops->check(s, 1, &failure), WB_OK);
    exec(api->connection(s, 2), insert);
    assert_int_equal(ops->check(s, 2, &failure), WB_OK);
    exec(api->connection(s, 3), "rollback to savepoint mine; release mine");
    assert_int_equal(ops->check(s, 3, &failure), WB_ABORT);
    assert_int_equal(ops->rollback(s, &failure), WB_OK);

    begin_batch(s, 11); /* released, or one's own, it harms nobody */
    exec(api->connection(s, 1), "savepoint mine; release mine");
    assert_int_equal(ops->check(s, 1, &failure), WB_OK);
    exec(api->connection(s, 2), insert);
    assert_int_equal(ops->check(s, 2, &failure), WB_OK);
    exec(api->connection(s, 3), "savepoint mine");
    exec(api->connection(s, 3), "rollback to mine");
    assert_int_equal(ops->check(s, 3, &failure), WB_OK);
    assert_int_equal(commit_batch(s, 11, "x", NULL), WB_OK);
    assert_int_equal(observe_number("select count(*) from business"), 1);
    ops->close(s);
}

static void test_handler_ends_transaction(void **state)
{
    wb_storage_session *s = open_session(&orders);
    static const char *const ends[] = { "commit", "rollback" };
    size_t item = 0;
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        begin_batch(s, 10);
        PGconn *db = api->connection(s, 2);
        exec(db, ends[i]);
        assert_int_equal(ops->check(s, 2, &failure), WB_REJECT);
        assert_non_null(strstr(failure.text, "the handler ended the transaction"));
        assert_int_equal(commit_batch(s, 10, "x", &item), WB_REJECT);
        assert_int_equal(item, 2);
        assert_int_equal(observe_number("select count(*) from orders_pending"), 0);
    }
    begin_batch(s, 11);
    exec(api->connection(s, 2), "rollback");
    assert_int_equal(ops->rollback(s, &failure), WB_OK);
    begin_batch(s, 12);
    ops->close(s);
}

static void test_handler_leaves_results_unread(void **state)
{
    static const char *const statements[] = { "select 1", "copy business (text) from stdin" };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        wb_storage_session *s = open_session(&orders);
        begin_batch(s, 10);
        PGconn *db = api->connection(s, 2);
        if (i)
            PQclear(PQexec(db, statements[i]));
        else
            assert_int_equal(PQsendQuery(db, statements[i]), 1);
        assert_int_equal(ops->check(s, 2, &failure), WB_REJECT);
        /* nothing can be sent on it any more: the server rolls back when it closes */
        assert_int_equal(ops->rollback(s, &failure), WB_NOT_CONNECTED);
        ops->close(s);
    }
    wb_storage_session *s = open_session(&orders);
    begin_batch(s, 10);
    assert_int_equal(PQenterPipelineMode(api->connection(s, 2)), 1);
    assert_int_equal(ops->check(s, 2, &failure), WB_REJECT);
    ops->close(s);
}

static void test_no_connection_outside_of_a_transaction(void **state)
{
    wb_storage_session *s = open_session(&orders);
    (void)state;
    assert_null(api->connection(s, 0));
    assert_null(ops->interface(s, "mysql.1"));
    ops->close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
#define UNPREPARED(function)                                                                       \
    { "unprepared_" #function, function, set_up_unprepared, tear_down_unprepared, NULL }
        TEST(test_deferred_in_order_with_the_batch),
        UNPREPARED(test_deferred_in_order_with_the_batch),
        TEST(test_deferred_is_copied),
        UNPREPARED(test_deferred_is_copied),
        TEST(test_parameters_of_all_kinds),
        UNPREPARED(test_parameters_of_all_kinds),
        TEST(test_malformed_is_refused),
        TEST(test_failure_names_its_item),
        UNPREPARED(test_failure_names_its_item),
        TEST(test_failure_at_commit),
        TEST(test_ten_thousand_deferred),
        UNPREPARED(test_ten_thousand_deferred),
        TEST(test_many_different_statements),
        TEST(test_changed_table_is_prepared_anew),
        TEST(test_plain_connection_sees_what_was_deferred),
        UNPREPARED(test_plain_connection_sees_what_was_deferred),
        TEST(test_flushed_failure_is_the_items),
        TEST(test_handler_leaves_transaction_failed),
        TEST(test_handler_recovers_by_savepoint),
        TEST(test_savepoint_does_not_hide_a_deferred_failure),
        TEST(test_savepoint_of_another_message),
        TEST(test_handler_ends_transaction),
        TEST(test_handler_leaves_results_unread),
        TEST(test_no_connection_outside_of_a_transaction),
    };
    return cmocka_run_group_tests_name("pgsql handlers' statements", tests, load_plugin, NULL);
}
