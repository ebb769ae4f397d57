/* SPDX-License-Identifier: Apache-2.0
 *
 * What handlers may do to the session: PostgreSQL's words for it, and what only it has. */
#include "config.h"

#include "tests/integration/pgsql_fixture.h"
#include "tests/integration/proxy.h"
#include "tests/integration/sql_session_test.h"

#include <stdlib.h>

const session_ending endings[] = {
    { { "commit" }, 1, 0, 0 },
    { { "rollback" }, 0, 0, 0 },
    { { "commit; begin" }, 1, 0, 0 },
    { { "commit", "begin" }, 1, 0, 0 },
    { { "end; start transaction" }, 1, 0, 0 },
    { { "commit and chain" }, 1, 0, 0 },
    { { "commit", "do $$ begin perform 1; commit; perform 2; end $$", "begin" }, 1, 0, 0 },
    { { "rollback; begin" }, 0, 1, 0 },
    { { "abort", "begin isolation level serializable" }, 0, 1, 0 },
    { { "rollback and chain" }, 0, 1, 0 },
    { { "savepoint mine", "rollback to mine", "rollback; begin" }, 0, 1, 0 },
};
const size_t ending_count = sizeof endings / sizeof endings[0];

const char *const savepoints[] = {
    "savepoint mine",
    "insert into business values (5)",
    "rollback to mine",
    "release mine",
    "savepoint theirs; rollback to savepoint theirs; insert into business values (6)",
    "do $$ begin begin perform 1/0; exception when others then null; end; end $$",
    "begin", /* a warning */
};
const size_t savepoint_count = sizeof savepoints / sizeof savepoints[0];

#define IS(expression) "select (" expression ")::int"
#define HAS(name, value) IS("current_setting('" name "') = '" value "'")

const session_setting settings[] = {
    { "set search_path = nowhere", HAS("search_path", "nowhere") },
    { "select set_config('search_path', 'elsewhere', false)", HAS("search_path", "elsewhere") },
    { "set statement_timeout = '11s'", HAS("statement_timeout", "11s") },
    { "set lock_timeout = '12s'", HAS("lock_timeout", "12s") },
    { "set role anybody", IS("current_user = 'anybody'") },
    { "set session authorization anybody", IS("session_user = 'anybody'") },
    { "set client_encoding = latin1", HAS("client_encoding", "LATIN1") },
    { "set time zone 'Asia/Kathmandu'", HAS("TimeZone", "Asia/Kathmandu") },
    { "set datestyle = german", HAS("DateStyle", "German, DMY") },
    { "set standard_conforming_strings = off", HAS("standard_conforming_strings", "off") },
    { "set bytea_output = escape", HAS("bytea_output", "escape") },
    { "set default_transaction_isolation = serializable",
      HAS("default_transaction_isolation", "serializable") },
    { "set default_transaction_read_only = on", HAS("default_transaction_read_only", "on") },
    { "set synchronous_commit = off", HAS("synchronous_commit", "off") },
    { "set row_security = off", HAS("row_security", "off") },
    { "set session_replication_role = replica", HAS("session_replication_role", "replica") },
    { "set enable_indexscan = off", HAS("enable_indexscan", "off") },
    { "set my.tenant = '7'", IS("coalesce(current_setting('my.tenant', true), '') = '7'") },
    { "set application_name = 'mine'", HAS("application_name", "mine") },
    { "reset lock_timeout", HAS("lock_timeout", "0") },
};
const size_t setting_count = sizeof settings / sizeof settings[0];

void make_settings(void)
{
    observe("do $$ begin create role anybody; exception when duplicate_object then end $$");
}

/* Others may use the role: it goes with the server. */
void drop_settings(void)
{
}

const char *run_all(wb_storage_session *session, size_t item, const char *const texts[3])
{
    for (size_t i = 0; i < 3 && texts[i]; i++)
        if (query_plain(session, item, texts[i]) != 0)
            return texts[i];
    return NULL;
}

long long query_number(wb_storage_session *session, size_t item, const char *query)
{
    PGresult *result = PQexec(api->connection(session, item), query);
    if (PQresultStatus(result) != PGRES_TUPLES_OK)
        fail_msg("%s: %s", query, PQresultErrorMessage(result));
    long long number = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    return number;
}

proxy *start_proxy(pgsql_config *config)
{
    proxy *way = proxy_start(getenv("PGHOST"), atoi(getenv("PGPORT")));
    config->port = proxy_port(way);
    config->sslmode = 1; /* disable */
    return way;
}

/* ---- what only PostgreSQL has ------------------------------------------------------------- */

static int set_up_unprepared(void **state)
{
    set_up_session(state);
    orders.config.prepare = 0;
    return 0;
}

/* Behind a pooler the server's session goes on to others: user and role go back all the same. */
static void test_role_behind_a_pooler(void **state)
{
    wb_storage_session *s = open_session(&orders);
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        begin_batch(s, 10 + i);
        assert_int_equal(query_plain(s, 0, i ? "set session authorization anybody"
                                             : "set role anybody"), 0);
        assert_int_equal(commit_batch(s, 10 + i, "x", NULL), WB_OK);
        begin_batch(s, 20 + i);
        assert_int_equal(query_number(s, 0, IS("current_user = 'anybody'")), 0);
        assert_int_equal(query_number(s, 0, HAS("lock_timeout", "30s")), 1);
        assert_int_equal(commit_batch(s, 20 + i, "x", NULL), WB_OK);
    }
    ops->close(s);
}

/* Of what another handler deferred not even the text would be the same. */
static void test_encoding_of_what_is_deferred(void **state)
{
    static const char text[] = "insert into texts values ('\xc3\xa9', $1)";
    wb_storage_session *s = open_session(&orders);
    (void)state;
    observe("create table if not exists texts (a text, b text)");
    observe("truncate texts");
    for (size_t i = 0; i < 2; i++) {
        begin_batch(s, 10 + i);
        if (i)
            assert_int_equal(PQsetClientEncoding(api->connection(s, 0), "LATIN1"), 0);
        else
            assert_int_equal(query_plain(s, 0, "set client_encoding = latin1"), 0);
        assert_int_equal(api->defer(s, 1, text, WB_PGSQL_TEXT("\xc3\xa9")), WB_OK);
        if (i) /* sent before the connection is given out again */
            assert_int_equal(query_plain(s, 2, "select 1"), 0);
        assert_int_equal(commit_batch(s, 10 + i, "x", NULL), WB_OK);
    }
    assert_int_equal(
        observe_number("select count(*) from texts where a = U&'\\00E9' and b = a"), 2);
    ops->close(s);
}

enum { NEVER_ASKED, ASKED_BEFORE, ASKED_BEHIND, ASKINGS };

/* Who asks for the connection: nobody, one of a batch before, or the first of all behind what was deferred. */
static void try_deferred(const session_setting *setting, int asked)
{
    wb_storage_session *s = open_session(&orders), *other = open_session(&orders);

    observe("truncate orders_pending, orders_dedup");
    begin_batch(other, 8);
    const long long before = query_number(other, 0, setting->query);
    assert_int_equal(ops->rollback(other, &failure), WB_OK);
    begin_batch(s, 9);
    if (asked == ASKED_BEFORE)
        assert_int_equal(query_number(s, 0, setting->query), before);
    assert_int_equal(commit_batch(s, 9, "x", NULL), WB_OK);
    begin_batch(s, 10);
    assert_int_equal(api->defer(s, 0, setting->set, NULL), WB_OK);
    if (asked == ASKED_BEHIND)
        assert_int_not_equal(query_number(s, 0, setting->query), before);
    if (commit_batch(s, 10, "x", NULL) != WB_OK)
        fail_msg("%s: %s", setting->set, failure.text);
    assert_int_equal(observe_number("select count(*) from orders_pending"), 2);
    begin_batch(s, 11);
    const long long after = query_number(s, 1, setting->query);
    if (after != before)
        fail_msg("deferred, %s: %lld in the next batch, %lld before; asked: %d", setting->set, after, before, asked);
    assert_int_equal(commit_batch(s, 11, "x", NULL), WB_OK);
    ops->close(other);
    ops->close(s);
}

static void test_deferred_settings_do_not_reach_the_next_batch(void **state)
{
    (void)state;
    for (size_t i = 0; i < setting_count; i++)
        for (int asked = 0; asked < ASKINGS; asked++)
            try_deferred(&settings[i], asked);
}

/* Settings that no statement names, and the character set, which is the neighbours', too. */
static void test_what_deferred_statements_set(void **state)
{
    static const char *const ways[] = {
        "set client_encoding = latin1", "select set_config('client_encoding', 'latin1', false)",
        "do $$ begin set client_encoding = latin1; set lock_timeout = 9; end $$",
        "select set_them()",
    };
    static const char text[] = "insert into texts values ('\xc3\xa9', $1)";
    (void)state;
    observe("create table if not exists texts (a text, b text)");
    observe("create or replace function set_them() returns void language plpgsql as "
            "$$ begin set lock_timeout = 9; set my.tenant = '7'; end $$");
    observe("truncate texts");
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        wb_storage_session *s = open_session(&orders);
        for (uint64_t batch = 10; batch < 13; batch++) { /* from the second on it is prepared */
            begin_batch(s, batch + 3 * i);
            assert_int_equal(api->defer(s, 0, ways[i], NULL), WB_OK);
            assert_int_equal(api->defer(s, 1, text, WB_PGSQL_TEXT("\xc3\xa9")), WB_OK);
            if (commit_batch(s, batch + 3 * i, "x", NULL) != WB_OK)
                fail_msg("%s: %s", ways[i], failure.text);
        }
        begin_batch(s, 30);
        assert_int_equal(query_number(s, 0, HAS("lock_timeout", "30s")), 1);
        assert_int_equal(query_number(s, 0, IS("coalesce(current_setting('my.tenant', true), '') = '7'")), 0);
        assert_int_equal(query_number(s, 0, HAS("client_encoding", "UTF8")), 1);
        assert_int_equal(ops->rollback(s, &failure), WB_OK);
        ops->close(s);
    }
    assert_int_equal(observe_number("select count(*) from texts where a = U&'\\00E9' and b = a"), 12);
}

/* The first connection a handler of the session gets is in a failed transaction: nothing could be
 * asked before. */
static void test_settings_of_a_failed_transaction(void **state)
{
    wb_storage_session *s = open_session(&orders);
    (void)state;
    begin_batch(s, 10);
    assert_int_equal(api->defer(s, 0, "select 1/0", NULL), WB_OK);
    PQclear(PQexec(api->connection(s, 1), "rollback"));
    assert_int_equal(query_plain(s, 1, "set role anybody"), 0);
    assert_int_equal(query_plain(s, 1, "set time zone 'Asia/Kathmandu'"), 0);
    assert_int_equal(query_plain(s, 1, "begin"), 0);
    assert_int_equal(ops->check(s, 0, &failure), WB_RETRY);
    assert_int_equal(ops->rollback(s, &failure), WB_OK);
    for (uint64_t batch = 11; batch < 13; batch++) {
        begin_batch(s, batch);
        assert_int_equal(query_number(s, 0, IS("current_user = 'anybody'")), 0);
        assert_int_equal(query_number(s, 0, HAS("TimeZone", "Asia/Kathmandu")), 0);
        assert_int_equal(query_number(s, 0, HAS("lock_timeout", "30s")), 1);
        assert_int_equal(commit_batch(s, batch, "x", NULL), WB_OK);
    }
    ops->close(s);
}

/* What the session is set to by us, and not by its role, is there behind RESET ALL, too. */
static void test_own_settings_stay(void **state)
{
    (void)state;
    alter_role("set default_transaction_isolation = 'serializable'");
    alter_role("set lock_timeout = '7s'");
    wb_storage_session *s = open_session(&orders);
    alter_role("reset default_transaction_isolation");
    alter_role("reset lock_timeout");
    for (uint64_t batch = 10; batch < 13; batch++) {
        begin_batch(s, batch);
        assert_int_equal(
            query_number(s, 0, HAS("default_transaction_isolation", "read committed")), 1);
        assert_int_equal(query_number(s, 0, HAS("lock_timeout", "30s")), 1);
        assert_int_equal(commit_batch(s, batch, "x", NULL), WB_OK);
    }
    ops->close(s);
}

/* The user goes back first: that sets the role to none. */
static void test_roles_of_the_account_stay(void **state)
{
    (void)state;
    observe("grant postgres to anybody");
    alter_role("set role = 'anybody'");
    wb_storage_session *s = open_session(&orders);
    alter_role("reset role");
    for (uint64_t batch = 10; batch < 13; batch++) {
        begin_batch(s, batch);
        assert_int_equal(query_number(s, 0, IS("current_user = 'anybody'")), 1);
        assert_int_equal(query_plain(s, 0, "set role none"), 0);
        assert_int_equal(commit_batch(s, batch, "x", NULL), WB_OK);
    }
    ops->close(s);
}

/* What goes before BEGIN is a transaction of its own, and BEGIN is executed whatever became of it. */
static void test_marks_that_fail_before_begin(void **state)
{
    wb_storage_session *s = open_session(&orders), *other = open_session(&orders);
    const wb_mark mark = { 5, NULL, 0 };
    wb_claim claim = claim_of("a");
    (void)state;
    begin_batch(s, 5);
    assert_int_equal(commit_batch(s, 5, "x", NULL), WB_OK);
    observe("create function refuse() returns trigger language plpgsql as $$ begin raise 'not now'; end $$; "
            "create trigger refuse before delete on orders_pending for each row execute function refuse()");
    wb_begin begin = { .struct_size = sizeof begin, .marks = &mark, .mark_count = 1, .batch = 10, .claims = &claim,
                       .claim_count = 1 };
    assert_int_equal(ops->begin(s, &begin, &failure), WB_RETRY);
    assert_non_null(strstr(failure.text, "not now"));
    claim.duplicate_of = 0;
    begin_claims(other, 11, &claim, 1); /* nobody holds it */
    assert_int_equal(claim.duplicate_of, 0);
    assert_int_equal(commit_batch(other, 11, NULL, NULL), WB_OK);
    observe("drop trigger refuse on orders_pending; drop function refuse()");
    begin_batch(s, 12);
    assert_int_equal(commit_batch(s, 12, "x", NULL), WB_OK);
    assert_int_equal(observe_number("select count(*) from orders_pending"), 2);
    ops->close(other);
    ops->close(s);
}

/* What a handler left in the session cannot be taken back: nothing is begun on it, this time or the next. */
static void test_settings_that_cannot_be_put_back(void **state)
{
    char role[100], statement[200];
    (void)state;
    (void)snprintf(role, sizeof role, "of_%.60s", getenv("PGDATABASE"));
    (void)snprintf(statement, sizeof statement, "create role \"%s\"", role);
    observe(statement);
    (void)snprintf(statement, sizeof statement, "grant postgres to \"%s\"", role);
    observe(statement);
    (void)snprintf(statement, sizeof statement, "set role = '%s'", role);
    alter_role(statement);
    wb_storage_session *s = open_session(&orders);
    alter_role("reset role");
    begin_batch(s, 10);
    assert_int_equal(query_plain(s, 0, "commit"), 0);
    assert_int_equal(query_plain(s, 0, "set synchronous_commit = off"), 0);
    assert_int_equal(ops->check(s, 0, &failure), WB_REJECT);
    assert_int_equal(ops->rollback(s, &failure), WB_OK);
    (void)snprintf(statement, sizeof statement, "drop role \"%s\"", role);
    observe(statement);
    for (uint64_t batch = 11; batch < 14; batch++) {
        wb_begin begin = { .struct_size = sizeof begin, .batch = batch };
        assert_int_equal(ops->begin(s, &begin, &failure), WB_FATAL);
    }
    ops->close(s);
}

/* A tag says ROLLBACK in either case: who went back to a savepoint must not pay for who ended the
 * transaction. */
static void test_one_of_two_ended_it(void **state)
{
    wb_storage_session *s = open_session(&orders);
    wb_claim claim = claim_of("a");
    size_t item = 0;
    (void)state;
    begin_claims(s, 10, &claim, 1);
    assert_int_equal(query_plain(s, 1, "savepoint mine; rollback to mine; rollback to mine; release mine"), 0);
    assert_int_equal(query_plain(s, 2, "rollback; begin"), 0);
    assert_int_equal(ops->check(s, 2, &failure), WB_OK);
    assert_int_equal(commit_batch(s, 10, "x", &item), WB_REJECT);
    assert_int_equal(item, SIZE_MAX);
    assert_int_equal(observe_number("select count(*) from orders_pending"), 0);
    ops->close(s);
}

static void test_who_is_named_each_time(void **state)
{
    wb_storage_session *s = open_session(&orders);
    (void)state;
    for (size_t i = 3; i < 6; i++) {
        size_t item = 0;
        begin_batch(s, 10);
        assert_int_equal(query_plain(s, i, "rollback; begin"), 0);
        assert_int_equal(commit_batch(s, 10, "x", &item), WB_REJECT);
        assert_int_equal(item, i);
    }
    ops->close(s);
}

/* It takes the claims along: nobody can have them before somebody decides. */
static void test_prepared_transaction(void **state)
{
    wb_storage_session *s = open_session(&orders);
    wb_claim claim = claim_of("a");
    (void)state;
    begin_claims(s, 10, &claim, 1);
    assert_int_equal(query_plain(s, 1, "prepare transaction 'mine'"), 0);
    assert_int_equal(query_plain(s, 1, "begin"), 0);
    assert_int_equal(ops->check(s, 1, &failure), WB_REJECT);
    assert_int_equal(commit_batch(s, 10, "x", NULL), WB_REJECT);
    assert_int_equal(observe_number("select count(*) from orders_pending"), 0);
    observe("rollback prepared 'mine'");
    begin_claims(s, 11, &claim, 1);
    assert_int_equal(claim.duplicate_of, 0);
    assert_int_equal(commit_batch(s, 11, "x", NULL), WB_OK);
    ops->close(s);
}

/* The server is not to blame for it, nor the connection: STORE or RELEASE are the first to write. */
static const char *const read_only[] = {
    "set transaction read only",
    "select set_config('transaction_read_only', 'on', false)",
    "set local transaction_read_only = on",
};

static void check_read_only(wb_storage_session *s, const char *statement, size_t users, int stores)
{
    wb_claim claims[] = { claim_of("a"), claim_of("b") };
    wb_commit commit = { .struct_size = sizeof commit, .batch = 10, .released = claims };
    begin_claims(s, 10, claims, 2);
    for (size_t item = 3; item < 3 + users; item++) {
        assert_int_equal(query_plain(s, item, statement), 0);
        assert_int_equal(ops->check(s, item, &failure), WB_OK);
    }
    commit.operations = stores ? "x" : NULL;
    commit.operations_size = stores ? 1 : 0;
    commit.released_count = stores ? 0 : 1;
    const int result = ops->commit(s, &commit, &failure);
    if (result != WB_RETRY || failure.cause != WB_CAUSE_OTHER ||
        commit.failed_item != (users == 1 ? 3 : SIZE_MAX))
        fail_msg("%s: class %d, cause %d, item %zu: %s", statement, result, failure.cause,
                 commit.failed_item, failure.text);
    assert_non_null(strstr(failure.text, "read only"));
    assert_non_null(strstr(failure.text, "25006"));
    begin_claims(s, 10, claims, 2); /* the session lives, and nothing is left of it */
    assert_int_equal(claims[0].duplicate_of, 0);
    commit.operations = "x";
    commit.operations_size = commit.released_count = 1;
    assert_int_equal(ops->commit(s, &commit, &failure), WB_OK);
    observe("delete from orders_dedup");
    observe("delete from orders_pending");
}

static void test_read_only_transactions(void **state)
{
    wb_storage_session *s = open_session(&orders);
    (void)state;
    for (size_t i = 0; i < sizeof read_only / sizeof read_only[0]; i++)
        for (size_t users = 1; users < 3; users++)
            for (int stores = 0; stores < 2; stores++)
                check_read_only(s, read_only[i], users, stores);
    ops->close(s);
}

#define TEST(function)                                                                             \
    cmocka_unit_test_setup_teardown(function, set_up_session, tear_down_session)
#define UNPREPARED(function)                                                                       \
    { "unprepared_" #function, function, set_up_unprepared, tear_down_session, NULL }

const struct CMUnitTest own_tests[] = {
    UNPREPARED(test_endings),
    UNPREPARED(test_endings_without_claims),
    UNPREPARED(test_savepoints_are_legal),
    UNPREPARED(test_role_behind_a_pooler),
    TEST(test_encoding_of_what_is_deferred),
    UNPREPARED(test_encoding_of_what_is_deferred),
    TEST(test_deferred_settings_do_not_reach_the_next_batch),
    TEST(test_what_deferred_statements_set),
    TEST(test_settings_of_a_failed_transaction),
    TEST(test_own_settings_stay),
    TEST(test_roles_of_the_account_stay),
    TEST(test_marks_that_fail_before_begin),
    TEST(test_settings_that_cannot_be_put_back),
    TEST(test_one_of_two_ended_it),
    TEST(test_who_is_named_each_time),
    TEST(test_prepared_transaction),
    TEST(test_read_only_transactions),
    UNPREPARED(test_read_only_transactions),
};
const size_t own_count = sizeof own_tests / sizeof own_tests[0];
