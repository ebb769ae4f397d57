/* SPDX-License-Identifier: Apache-2.0
 *
 * A disk that is full is nobody's fault but the server's, wherever it is met:
 * pgsql_disk_test DIRECTORY, that of tests/support/disk, on a server of this test's own. */
#include "config.h"

#include <stdlib.h>

#include "tests/integration/pgsql_fixture.h"

/* More than what is left in a page. */
#define MANY "insert into goods select generate_series(1, 100000)"
#define ONE "insert into goods values (1)"

static const char *directory;

static void disk(const char *verb)
{
    char command[1024];
    (void)snprintf(command, sizeof command, "\"$top_srcdir/tests/support/disk\" %s '%s' >&2", verb,
                   directory);
    assert_int_equal(system(command), 0);
}

static int make_tablespace(void **state)
{
    char statement[1024];
    if (load_plugin(state) != 0)
        return -1;
    (void)snprintf(statement, sizeof statement, "create tablespace small location '%s/space/db'",
                   directory);
    observe(statement);
    return 0;
}

static int set_up(void **state)
{
    (void)state;
    endpoint_install(&orders, "orders");
    observe("create table goods (n int) tablespace small");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    disk("free");
    observe("select pg_terminate_backend(pid, 5000) from pg_stat_activity "
            "where application_name like 'waybill/%'");
    observe("drop table goods, orders_dedup, orders_pending");
    endpoint_destroy(&orders);
    return 0;
}

static void assert_the_servers(int result)
{
    if (result != WB_RETRY || failure.cause != WB_CAUSE_SERVER || !strstr(failure.text, "53100"))
        fail_msg("class %d, cause %d: %s", result, failure.cause, failure.text);
}

static void assert_works_again(wb_storage_session *s)
{
    wb_claim claim = claim_of("later");
    disk("free");
    begin_claims(s, 90, &claim, 1);
    assert_int_equal(claim.duplicate_of, 0);
    assert_int_equal(api->defer(s, 0, MANY, NULL), WB_OK);
    assert_int_equal(ops->check(s, 0, &failure), WB_OK);
    assert_int_equal(commit_batch(s, 90, "x", NULL), WB_OK);
    ops->close(s);
}

/* A handler that does not care finds out all the same, and so does one that goes on. */
static void test_handlers_statement(void **state)
{
    wb_storage_session *s = open_session(&orders);
    size_t item = 5;
    (void)state;
    disk("fill");
    begin_batch(s, 10);
    PGconn *db = api->connection(s, 3);
    PQclear(PQexec(db, ONE));
    PQclear(PQexec(db, "select 1"));
    assert_the_servers(ops->check(s, 3, &failure));
    assert_the_servers(ops->check(s, 4, &failure)); /* no other message's doing either */
    assert_the_servers(commit_batch(s, 10, "x", &item));
    assert_int_equal(item, SIZE_MAX);
    assert_works_again(s);
}

/* What a savepoint took back is not what the transaction failed of in the end. */
static void test_after_a_savepoint(void **state)
{
    wb_storage_session *s = open_session(&orders);
    (void)state;
    disk("fill");
    begin_batch(s, 10);
    PGconn *db = api->connection(s, 3);
    PQclear(PQexec(db, "savepoint a"));
    PQclear(PQexec(db, "select 1 / 0"));
    PQclear(PQexec(db, "rollback to savepoint a"));
    PQclear(PQexec(db, MANY));
    assert_the_servers(ops->check(s, 3, &failure));
    assert_int_equal(ops->rollback(s, &failure), WB_OK);

    begin_batch(s, 11);
    PQclear(PQexec(api->connection(s, 3), "savepoint a"));
    PQclear(PQexec(db, MANY));
    PQclear(PQexec(db, "rollback to savepoint a"));
    assert_int_equal(ops->check(s, 3, &failure), WB_OK);
    PQclear(PQexec(db, "select 1 / 0"));
    assert_int_equal(ops->check(s, 3, &failure), WB_RETRY);
    assert_int_equal(failure.cause, WB_CAUSE_OTHER);
    assert_int_equal(ops->rollback(s, &failure), WB_OK);
    assert_works_again(s);
}

static void test_deferred_statement(void **state)
{
    wb_storage_session *s = open_session(&orders);
    wb_claim claim = claim_of("a");
    size_t item = 5;
    (void)state;
    disk("fill");
    begin_claims(s, 10, &claim, 1);
    assert_int_equal(api->defer(s, 3, MANY, NULL), WB_OK);
    assert_the_servers(commit_batch(s, 10, "x", &item));
    assert_int_equal(item, SIZE_MAX);
    assert_int_equal(observe_number("select count(*) from orders_dedup"), 0);

    begin_claims(s, 11, &claim, 1);
    assert_int_equal(api->defer(s, 3, MANY, NULL), WB_OK);
    assert_int_equal(PQtransactionStatus(api->connection(s, 4)), PQTRANS_INERROR);
    assert_the_servers(ops->check(s, 4, &failure));
    assert_int_equal(ops->rollback(s, &failure), WB_OK);
    assert_works_again(s);
}

/* What COMMIT itself does for the handler: a deferred trigger. Not in doubt. */
static void test_trigger_at_commit(void **state)
{
    wb_storage_session *s = open_session(&orders);
    size_t item = 5;
    (void)state;
    observe("create or replace function fill() returns trigger language plpgsql as $$ begin " MANY
            "; return null; end $$");
    observe("create table ordered (n int)");
    observe("create constraint trigger fill after insert on ordered deferrable initially deferred "
            "for each row execute function fill()");
    disk("fill");
    begin_batch(s, 10);
    assert_int_equal(api->defer(s, 3, "insert into ordered values (1)", NULL), WB_OK);
    assert_the_servers(commit_batch(s, 10, "x", &item));
    assert_int_equal(item, SIZE_MAX);
    assert_int_equal(observe_number("select count(*) from ordered"), 0);
    observe("drop table ordered");
    assert_works_again(s);
}

#define CLAIMS 100 /* of 255 bytes: more than what is left in a page */

/* Our own tables are full. */
static void test_outbox_tables(void **state)
{
    wb_storage_session *s = open_session(&orders);
    static char ids[CLAIMS][255];
    wb_claim claims[CLAIMS];
    wb_begin begin = { .struct_size = sizeof begin, .batch = 11, .claims = claims,
                       .claim_count = CLAIMS };
    char remaining[6000];
    const wb_mark mark = { 10, remaining, sizeof remaining };
    (void)state;
    for (size_t i = 0; i < sizeof remaining; i++)
        remaining[i] = (char)rand();
    for (size_t i = 0; i < CLAIMS; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "%03zu", i);
        claims[i] = (wb_claim){ ids[i], sizeof ids[i], 7 };
    }
    begin_batch(s, 10);
    assert_int_equal(commit_batch(s, 10, "x", NULL), WB_OK);
    observe("alter table orders_pending set tablespace small");
    disk("fill");
    assert_the_servers(ops->mark(s, &mark, 1, &failure));
    begin_batch(s, 11);
    wb_commit commit = { .struct_size = sizeof commit, .batch = 11, .operations = remaining,
                         .operations_size = sizeof remaining };
    assert_the_servers(ops->commit(s, &commit, &failure));
    assert_int_equal(commit.failed_item, SIZE_MAX);
    disk("free");
    observe("alter table orders_dedup set tablespace small");
    disk("fill");
    assert_the_servers(ops->begin(s, &begin, &failure));
    assert_works_again(s);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
        TEST(test_handlers_statement),
        TEST(test_after_a_savepoint),
        TEST(test_deferred_statement),
        TEST(test_trigger_at_commit),
        TEST(test_outbox_tables),
    };
    if (argc != 2)
        return 64;
    directory = argv[1];
    return cmocka_run_group_tests_name("pgsql on a full disk", tests, make_tablespace, NULL);
}
