/* SPDX-License-Identifier: Apache-2.0
 *
 * What handlers may do to the session: MariaDB's words for it, and what only it has. */
#include "config.h"

#include "tests/integration/mysql_fixture.h"
#include "tests/integration/proxy.h"
#include "tests/integration/sql_session_test.h"

#include <stdlib.h>

/* Without the server's reports nobody sees a transaction that another follows at once. */
#define BLIND                                                                                      \
    "set session_track_system_variables = ''", "set session_track_transaction_info = off"

const session_ending endings[] = {
    { { "commit" }, 1, 0, 0 },
    { { "rollback" }, 0, 0, 0 },
    { { "commit", "begin" }, 1, 0, 0 },
    { { "rollback", "start transaction" }, 0, 0, 0 },
    { { "commit and chain" }, 1, 0, 0 },
    { { "rollback and chain" }, 0, 0, 0 },
    { { "begin" }, 1, 0, 0 },
    { { "set completion_type = 1", "commit" }, 1, 0, 0 },
    { { "create or replace table made (a int)" }, 1, 0, 0 },
    { { "alter table business comment 'x'", "insert into business values (9)" }, 1, 0, 0 },
    { { "truncate table made" }, 1, 0, 0 },
    { { "set autocommit = 1", "set autocommit = 0" }, 1, 0, 0 },
    { { "lock tables business write", "unlock tables", "begin" }, 1, 0, 0 },
    { { "call end_it()" }, 1, 0, 0 },
    { { BLIND, "rollback and chain" }, 0, 1, 1 },
    { { BLIND, "commit and chain" }, 1, 1, 1 },
};
const size_t ending_count = sizeof endings / sizeof endings[0];

const char *const savepoints[] = {
    "savepoint mine",
    "insert into business values (5)",
    "rollback to mine",
    "release savepoint mine",
    "savepoint theirs",
    "call go_back()",
};
const size_t savepoint_count = sizeof savepoints / sizeof savepoints[0];

#define HAS(name, value) "select @@" name " = '" value "'"

const session_setting settings[] = {
    { "set names gbk", HAS("character_set_client", "gbk") },
    { "set names big5", HAS("character_set_connection", "big5") },
    { "set names utf8mb4 collate utf8mb4_bin", HAS("collation_connection", "utf8mb4_bin") },
    { "set character_set_results = latin1", HAS("character_set_results", "latin1") },
    { "set time_zone = '+05:45'", HAS("time_zone", "+05:45") },
    { "set sql_mode = ''", HAS("sql_mode", "") },
    { "set sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,EMPTY_STRING_IS_NULL'",
      "select @@sql_mode like '%ANSI_QUOTES%'" },
    { "use mysql", "select database() = 'mysql'" },
    { "set role anybody", "select current_role() <=> 'anybody'" },
    { "set timestamp = 17", "select year(now()) = 1970" },
    { "set session transaction isolation level serializable",
      HAS("tx_isolation", "SERIALIZABLE") },
    { "set innodb_lock_wait_timeout = 3", HAS("innodb_lock_wait_timeout", "3") },
    { "set innodb_strict_mode = off", HAS("innodb_strict_mode", "OFF") },
    { "set innodb_table_locks = off", HAS("innodb_table_locks", "OFF") },
    { "set lock_wait_timeout = 3", HAS("lock_wait_timeout", "3") },
    { "set foreign_key_checks = 0", HAS("foreign_key_checks", "0") },
    { "set max_statement_time = 7", "select @@max_statement_time = 7" },
    { "set sql_select_limit = 1", HAS("sql_select_limit", "1") },
    { "set sql_safe_updates = 1", HAS("sql_safe_updates", "1") },
    { "set group_concat_max_len = 77", HAS("group_concat_max_len", "77") },
    { "set completion_type = 1", HAS("completion_type", "CHAIN") },
    { "set session_track_schema = off", HAS("session_track_schema", "OFF") },
    { "set session_track_transaction_info = off", HAS("session_track_transaction_info", "OFF") },
    { "call set_it()", HAS("div_precision_increment", "9") },
};
const size_t setting_count = sizeof settings / sizeof settings[0];

void make_settings(void)
{
    observe("create or replace table made (a int)");
    observe("create role if not exists anybody");
    observe("grant anybody to current_user()");
    observe("create or replace procedure end_it() begin commit; start transaction; end");
    observe("create or replace procedure go_back() begin savepoint inner_one; "
            "rollback to inner_one; end");
    observe("create or replace procedure set_it() begin "
            "set @@session.div_precision_increment = 9; end");
    observe("create or replace function set_it_too() returns int begin "
            "set @@session.div_precision_increment = 9; return 1; end");
}

void drop_settings(void)
{
    observe("drop procedure end_it");
    observe("drop procedure go_back");
    observe("drop procedure set_it");
    observe("drop function set_it_too");
    observe("drop table made");
}

const char *run_all(wb_storage_session *session, size_t item, const char *const texts[3])
{
    MYSQL *db = api->connection(session, item);
    for (size_t i = 0; i < 3 && texts[i]; i++) {
        if (mysql_query(db, texts[i]) != 0)
            return mysql_error(db);
        do
            mysql_free_result(mysql_store_result(db));
        while (mysql_next_result(db) == 0);
    }
    return NULL;
}

long long query_number(wb_storage_session *session, size_t item, const char *query)
{
    MYSQL *db = api->connection(session, item);
    if (mysql_query(db, query) != 0)
        fail_msg("%s: %s", query, mysql_error(db));
    MYSQL_RES *rows = mysql_store_result(db);
    MYSQL_ROW row = mysql_fetch_row(rows);
    const long long number = row[0] ? strtoll(row[0], NULL, 10) : -1;
    mysql_free_result(rows);
    return number;
}

proxy *start_proxy(mys_config *config)
{
    proxy *way = proxy_start(getenv("MYSQL_HOST"), atoi(getenv("MYSQL_PORT")));
    config->port = proxy_port(way);
    return way;
}

/* ---- what only MySQL and MariaDB have ------------------------------------------------------- */

static int set_up_multi(void **state)
{
    set_up_session(state);
    orders.config.multi_statements = 1;
    return 0;
}

/* In the middle of an XA transaction the server takes no ROLLBACK: the session is given up. */
static void test_xa(void **state)
{
    static const char *const texts[] = { "commit", "xa start 'x'", "insert into made values (1)" };
    wb_storage_session *s = open_session(&orders);
    wb_claim claim = claim_of("a");
    wb_begin begin = { .struct_size = sizeof begin, .batch = 11 };
    size_t item = 0;
    (void)state;
    begin_claims(s, 10, &claim, 1);
    assert_null(run_all(s, 1, texts));
    assert_int_equal(ops->check(s, 1, &failure), WB_REJECT);
    assert_int_equal(commit_batch(s, 10, "x", &item), WB_REJECT);
    assert_int_equal(item, 1);
    assert_int_equal(ops->begin(s, &begin, &failure), WB_NOT_CONNECTED);
    ops->close(s);
    s = open_session(&orders);
    begin_claims(s, 11, &claim, 1);
    assert_int_equal(claim.duplicate_of, 10);
    assert_int_equal(commit_batch(s, 11, "x", NULL), WB_OK);
    assert_int_equal(observe_number("select count(*) from made"), 0);
    ops->close(s);
}

/* Where one handler alone had the connection, it was that one. */
static void test_the_only_one_is_named(void **state)
{
    static const char *const texts[] = { BLIND, "rollback and chain" };
    wb_storage_session *s = open_session(&orders);
    (void)state;
    for (size_t i = 3; i < 6; i++) {
        size_t item = 0;
        begin_batch(s, 10);
        assert_null(run_all(s, i, texts));
        assert_int_equal(ops->check(s, i, &failure), WB_OK);
        assert_int_equal(commit_batch(s, 10, "x", &item), WB_REJECT);
        assert_int_equal(item, i);
    }
    ops->close(s);
}

static int count(void *argument, const wb_pending *pending)
{
    (void)pending;
    ++*(int *)argument;
    return WB_OK;
}

/* What comes behind a rollback, and without a batch, is not touched by them. */
static void test_settings_end_with_a_rollback(void **state)
{
    const uint64_t batches[] = { 10, 11 };
    wb_storage_session *s = open_session(&orders);
    int64_t time = 0;
    int rows = 0;
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        begin_batch(s, batches[i]);
        assert_int_equal(commit_batch(s, batches[i], "x", NULL), WB_OK);
    }
    begin_batch(s, 12);
    assert_int_equal(query_plain(s, 0, "set timestamp = 17, sql_select_limit = 1"), 0);
    assert_int_equal(ops->rollback(s, &failure), WB_OK);
    assert_int_equal(ops->pending(s, batches, 2, count, &rows, &failure), WB_OK);
    assert_int_equal(rows, 2);
    assert_int_equal(ops->clock(s, &time, &failure), WB_OK);
    assert_true(time > INT64_C(1577836800000000000));
    ops->close(s);
}

/* Set where the server does not report it, a limit cuts what is found of duplicates: for ever, if
 * that session went on. */
static void test_a_limit_that_stays_ends_the_session(void **state)
{
    wb_claim claims[] = { claim_of("a"), claim_of("b"), claim_of("c") };
    wb_begin begin = { .struct_size = sizeof begin, .batch = 11, .claims = claims, .claim_count = 3 };
    wb_storage_session *s = open_session(&orders);
    (void)state;
    begin_claims(s, 10, claims, 3);
    assert_int_equal(query_plain(s, 0, "set session_track_system_variables = ''"), 0);
    assert_int_equal(query_plain(s, 0, "set sql_select_limit = 1"), 0);
    assert_int_equal(commit_batch(s, 10, "x", NULL), WB_OK);
    if (ops->begin(s, &begin, &failure) == WB_OK) { /* the limit was put back after all */
        assert_int_equal(ops->rollback(s, &failure), WB_OK);
    } else {
        assert_int_equal(failure.result, WB_NOT_CONNECTED);
        ops->close(s);
        s = open_session(&orders);
    }
    begin_claims(s, 12, claims, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(claims[i].duplicate_of, 10);
    assert_int_equal(ops->rollback(s, &failure), WB_OK);
    ops->close(s);
}

/* A statement that was deferred may call a function, which may set what it likes. */
static void test_deferred_function_sets(void **state)
{
    wb_storage_session *s = open_session(&orders);
    (void)state;
    begin_batch(s, 10);
    assert_int_equal(api->defer(s, 0, "do set_it_too()", NULL), WB_OK);
    assert_int_equal(commit_batch(s, 10, "x", NULL), WB_OK);
    begin_batch(s, 11);
    assert_int_equal(query_number(s, 0, HAS("div_precision_increment", "9")), 0);
    assert_int_equal(commit_batch(s, 11, "x", NULL), WB_OK);
    ops->close(s);
}

/* U+8868 ends with a byte that in gbk and big5 takes a backslash or a backtick along. */
#define SWALLOWS "\xe8\xa1\xa8"

static void try_constants(wb_storage_session *s, const char *names, uint64_t batch)
{
    observe("delete from texts");
    begin_batch(s, batch);
    assert_int_equal(query_plain(s, 0, names), 0);
    assert_int_equal(api->defer(s, 1, "insert into texts (a, b) values ('" SWALLOWS "\\\\', ?)",
                                WB_MYSQL_TEXT("), (database(), 2) -- ")),
                     WB_OK);
    assert_int_equal(api->defer(s, 1, "insert into texts select 1 as `" SWALLOWS "`, '`'", NULL),
                     WB_OK);
    if (batch % 2) /* the text that is sent before the connection is given out again */
        assert_int_equal(query_plain(s, 2, "select 1"), 0);
    if (commit_batch(s, batch, "x", NULL) != WB_OK)
        fail_msg("%s: %s", names, failure.text);
    assert_int_equal(observe_number("select count(*) from texts"), 2);
    assert_int_equal(observe_number("select count(*) from texts where "
                                    "a = _utf8mb4 x'e8a1a85c' and b = '), (database(), 2) -- '"),
                     1);
}

static void test_constants_after_other_names(void **state)
{
    static const char *const names[] = { "set names gbk", "set names big5", "set names sjis",
                                         "set character_set_client = gbk" };
    wb_storage_session *s = open_session(&orders);
    (void)state;
    observe("create or replace table texts (a varchar(99) character set utf8mb4, "
            "b varchar(99) character set utf8mb4)");
    for (size_t i = 0; i < 8; i++)
        try_constants(s, names[i / 2], 10 + i);
    ops->close(s);
}

/* What mysql_real_escape_string() goes by must be the session's again, too; also where the server
 * does not report it. */
static void test_the_library_knows(void **state)
{
    wb_storage_session *s = open_session(&orders);
    (void)state;
    for (uint64_t batch = 10; batch < 13; batch++) {
        begin_batch(s, batch);
        MYSQL *db = api->connection(s, 0);
        assert_string_equal(mysql_character_set_name(db), "utf8mb4");
        if (batch == 11)
            assert_int_equal(mysql_query(db, "set session_track_system_variables = ''"), 0);
        assert_int_equal(mysql_set_character_set(db, "gbk"), 0);
        assert_string_equal(mysql_character_set_name(db), "gbk");
        assert_int_equal(commit_batch(s, batch, "x", NULL), WB_OK);
    }
    ops->close(s);
}

static void test_roles_of_the_account_stay(void **state)
{
    (void)state;
    observe("set default role anybody");
    wb_storage_session *s = open_session(&orders);
    observe("set default role none");
    for (uint64_t batch = 10; batch < 12; batch++) {
        begin_batch(s, batch);
        assert_int_equal(query_number(s, 0, "select current_role() <=> 'anybody'"), 1);
        assert_int_equal(query_plain(s, 0, "set role none"), 0);
        assert_int_equal(commit_batch(s, batch, "x", NULL), WB_OK);
    }
    ops->close(s);
}

/* Of the server: with 1 each COMMIT begins a transaction, with 2 it ends the connection. */
static void test_completion_type(void **state)
{
    wb_claim claim = claim_of("a");
    const wb_mark mark = { .batch = 10 };
    (void)state;
    for (int type = 1; type < 3; type++) {
        observe(type == 1 ? "set global completion_type = 1" : "set global completion_type = 2");
        wb_storage_session *s = NULL;
        const int opened = ops->open(orders.persistence, &s, &failure);
        const int verified = ops->verify(orders.persistence, &failure);
        observe("set global completion_type = default");
        assert_int_equal(opened, WB_OK);
        assert_int_equal(verified, WB_OK);
        observe("delete from orders_dedup");
        begin_claims(s, 9, &claim, 1);
        assert_int_equal(ops->rollback(s, &failure), WB_OK);
        begin_claims(s, 10, &claim, 1);
        if (commit_batch(s, 10, "x", NULL) != WB_OK)
            fail_msg("completion_type %d: %s", type, failure.text);
        assert_int_equal(ops->mark(s, &mark, 1, &failure), WB_OK);
        begin_batch(s, 11);
        assert_int_equal(ops->rollback(s, &failure), WB_OK);
        assert_int_equal(observe_number("select count(*) from orders_pending"), 0);
        ops->close(s);
    }
}

/* ---- what handlers do with the library's own calls ------------------------------------------- */

static int select_other(wb_storage_session *s)
{
    return mysql_select_db(api->connection(s, 0), "mysql");
}

static int select_other_and_go_on(wb_storage_session *s)
{
    MYSQL *db = api->connection(s, 0);
    return mysql_select_db(db, "mysql") || mysql_query(db, "do 1");
}

static int use_other_unreported(wb_storage_session *s)
{
    MYSQL *db = api->connection(s, 0);
    return mysql_query(db, "set session_track_schema = off") || mysql_query(db, "use mysql");
}

static int select_one_nobody_writes(wb_storage_session *s)
{
    return mysql_select_db(api->connection(s, 0), "information_schema");
}

/* mysql_select_db() reads the server's answer, but not what it reports with it. */
static void test_database_is_put_back(void **state)
{
    int (*const ways[])(wb_storage_session *) = { select_other, select_other_and_go_on,
                                                  use_other_unreported, select_one_nobody_writes };
    wb_storage_session *s = open_session(&orders);
    char here[200];
    (void)state;
    (void)snprintf(here, sizeof here, "select database() = '%s'", orders.config.database);
    for (uint64_t batch = 10; batch < 26; batch += 2) {
        begin_batch(s, batch);
        assert_int_equal(ways[batch / 2 % 4](s), 0);
        assert_int_equal(ops->check(s, 0, &failure), WB_OK);
        assert_int_equal(query_number(s, 0, here), 0);
        if (batch < 18)
            assert_int_equal(commit_batch(s, batch, "x", NULL), WB_OK);
        else
            assert_int_equal(ops->rollback(s, &failure), WB_OK);
        begin_batch(s, batch + 1);
        assert_int_equal(query_number(s, 1, here), 1);
        assert_string_equal(api->connection(s, 1)->db, orders.config.database);
        assert_int_equal(query_plain(s, 1, "insert into business values (1)"), 0);
        assert_int_equal(commit_batch(s, batch + 1, "x", NULL), WB_OK);
    }
    ops->close(s);
}

static int reset(MYSQL *db)
{
    return mysql_reset_connection(db);
}

static int reset_and_begin(MYSQL *db)
{
    return mysql_reset_connection(db) || mysql_query(db, "set autocommit = 0") ||
           mysql_query(db, "start transaction");
}

static int change_user(MYSQL *db)
{
    return mysql_change_user(db, orders.config.user, orders.config.password, orders.config.database);
}

static int change_to_nobody(MYSQL *db)
{
    return !mysql_change_user(db, "nobody_of_that_name", "", NULL);
}

static void begin_again(uint64_t duplicate_of)
{
    wb_storage_session *s = open_session(&orders);
    wb_claim claim = claim_of("a");
    begin_claims(s, 11, &claim, 1);
    assert_int_equal(claim.duplicate_of, duplicate_of);
    assert_int_equal(query_number(s, 0, "select @@autocommit"), 0);
    assert_int_equal(ops->rollback(s, &failure), WB_OK);
    ops->close(s);
}

static void try_reset(int (*how)(MYSQL *), int is_rolled_back)
{
    wb_storage_session *s = open_session(&orders);
    wb_claim claim = claim_of("a");
    size_t item = 0;
    begin_claims(s, 10, &claim, 1);
    assert_int_equal(query_plain(s, 0, "insert into business values (1)"), 0);
    assert_int_equal(ops->check(s, 0, &failure), WB_OK);
    assert_int_equal(how(api->connection(s, 1)), 0);
    assert_int_equal(ops->check(s, 1, &failure), WB_REJECT);
    assert_non_null(strstr(failure.text, "mysql_reset_connection"));
    assert_null(api->connection(s, 2));
    if (is_rolled_back) {
        assert_int_equal(ops->rollback(s, &failure), WB_NOT_CONNECTED);
    } else {
        assert_int_equal(commit_batch(s, 10, "x", &item), WB_REJECT);
        assert_int_equal(item, 1);
    }
    ops->close(s);
    assert_int_equal(observe_number("select count(*) from business"), 0);
    begin_again(0);
}

/* All three roll back, and leave a session that commits each statement by itself: the handler's
 * own check must find it, or a neighbour would be taken for it. */
static void test_a_reset_is_found(void **state)
{
    int (*const ways[])(MYSQL *) = { reset, reset_and_begin, change_user, change_to_nobody };
    (void)state;
    observe("delete from business");
    for (size_t i = 0; i < 8; i++)
        try_reset(ways[i / 2], i % 2);
}

#define TEST(function)                                                                             \
    cmocka_unit_test_setup_teardown(function, set_up_session, tear_down_session)
#define MULTI(function) { "multi_" #function, function, set_up_multi, tear_down_session, NULL }

const struct CMUnitTest own_tests[] = {
    MULTI(test_endings),
    MULTI(test_endings_without_claims),
    MULTI(test_savepoints_are_legal),
    TEST(test_xa),
    TEST(test_the_only_one_is_named),
    TEST(test_settings_end_with_a_rollback),
    TEST(test_a_limit_that_stays_ends_the_session),
    TEST(test_deferred_function_sets),
    TEST(test_constants_after_other_names),
    TEST(test_the_library_knows),
    TEST(test_roles_of_the_account_stay),
    TEST(test_completion_type),
    TEST(test_database_is_put_back),
    TEST(test_a_reset_is_found),
};
const size_t own_count = sizeof own_tests / sizeof own_tests[0];
