/* SPDX-License-Identifier: Apache-2.0
 *
 * What a server's settings and a server's death do, on a server of this test's own:
 * mysql_server_test DIRECTORY DISK, those of tests/support/server and tests/support/disk. */
#include "config.h"

#include <stdlib.h>

#include "core/base/clock.h"
#include "tests/integration/mysql_fixture.h"

#define CLERK "waybill_clerk"

static endpoint e;
static const char *directory;
static const char *disk_directory;

static int set_up(void **state)
{
    (void)state;
    endpoint_install(&e, "orders");
    warnings = 0;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    endpoint_destroy(&e);
    return 0;
}

static void verify(void)
{
    if (ops->verify(e.persistence, &failure) != WB_OK)
        fail_msg("%s", failure.text);
}

static void server(const char *verb)
{
    char command[1024];
    (void)snprintf(command, sizeof command, "\"$top_srcdir/tests/support/server\" %s '%s' >&2",
                   verb, directory);
    assert_int_equal(system(command), 0);
}

static void restart(void)
{
    server("restart");
    connect_observer();
}

/* A line of the server's configuration, from the next start on. */
static void configure(const char *line)
{
    char command[1024];
    (void)snprintf(command, sizeof command, "echo %s >> \"$(cat '%s/data')/my.cnf\"", line,
                   directory);
    assert_int_equal(system(command), 0);
}

static void assert_answer(MYSQL *db, const char *query, const char *wanted)
{
    if (mysql_query(db, query) != 0)
        fail_msg("%s: %s", query, mysql_error(db));
    MYSQL_RES *rows = mysql_store_result(db);
    assert_string_equal(mysql_fetch_row(rows)[0], wanted);
    mysql_free_result(rows);
}

static void test_session(void **state)
{
    (void)state;
    observe("set global sql_mode = 'ANSI_QUOTES'");
    wb_storage_session *s = open_session(&e);
    observe("set global sql_mode = default");
    begin_batch(s, 1);
    MYSQL *db = api->connection(s, 0);
    assert_answer(db, "select @@session.tx_isolation", "READ-COMMITTED");
    assert_answer(db, "select @@session.sql_mode", "ANSI_QUOTES,STRICT_TRANS_TABLES");
    assert_answer(db, "select @@session.innodb_lock_wait_timeout", "30");
    assert_answer(db, "select @@session.lock_wait_timeout", "30");
    assert_answer(db, "select @@session.autocommit", "0");
    assert_answer(db, "select @@session.character_set_client", "utf8mb4");
    assert_answer(db, "select database()", getenv("MYSQL_DATABASE"));
    assert_int_not_equal(mysql_query(db, "load data local infile '/etc/passwd' into table "
                                         "orders_pending"),
                         0);
    ops->close(s);
}

static void test_settings_that_lose_commits(void **state)
{
    (void)state;
    verify();
    assert_int_equal(warnings, 0);
    observe("set global innodb_flush_log_at_trx_commit = 2");
    verify();
    observe("set global innodb_flush_log_at_trx_commit = 1");
    assert_int_equal(warnings, 1);
    assert_non_null(strstr(warning, "innodb_flush_log_at_trx_commit"));
}

/* A user without privileges to write in spite of it finds that out while it starts. */
static void test_read_only_server(void **state)
{
    (void)state;
    endpoint_destroy(&e);
    observe("create or replace user " CLERK " identified by 'secret'");
    observe("grant all on *.* to " CLERK);
    observe("revoke super, binlog admin, read_only admin on *.* from " CLERK);
    e.config.user = CLERK;
    e.config.password = "secret";
    endpoint_create(&e);
    verify();
    wb_storage_session *s = open_session(&e);
    wb_begin begin = { .struct_size = sizeof begin, .batch = 1 };
    begin_batch(s, 1);
    observe("set global read_only = 1");
    int verified = ops->verify(e.persistence, &failure);
    int committed = commit_batch(s, 1, "x", NULL);
    int begun = ops->begin(s, &begin, &failure);
    observe("set global read_only = 0");
    observe("drop user " CLERK);
    ops->close(s);
    assert_int_equal(verified, WB_NOT_CONNECTED);
    assert_int_equal(committed, WB_NOT_CONNECTED);
    assert_int_equal(begun, WB_NOT_CONNECTED);
}

/* One that may write all the same must not: its outbox would be on no other server. */
static void test_read_only_server_and_a_privileged_account(void **state)
{
    wb_storage_session *s = NULL;
    (void)state;
    observe("set global read_only = 1");
    const int verified = ops->verify(e.persistence, &failure);
    const int opened = ops->open(e.persistence, &s, &failure);
    observe("set global read_only = 0");
    assert_int_equal(verified, WB_NOT_CONNECTED);
    assert_int_equal(opened, WB_NOT_CONNECTED);
    assert_non_null(strstr(failure.text, "takes no writes"));
    verify();
    ops->close(open_session(&e));
}

/* LOAD DATA and the like have one number with read_only. */
static void test_secure_file_priv(void **state)
{
    (void)state;
    size_t item;
    configure("secure_file_priv=/usr/share");
    restart();
    wb_storage_session *s = open_session(&e);
    begin_batch(s, 1);
    assert_int_equal(api->defer(s, 3, "select 1 into outfile '/tmp/waybill-nowhere'", NULL), WB_OK);
    assert_int_equal(commit_batch(s, 1, "x", &item), WB_RETRY);
    assert_int_equal(failure.native_code, 1290);
    assert_int_equal(failure.cause, WB_CAUSE_OTHER);
    assert_int_equal(item, 3);
    begin_batch(s, 2);
    assert_int_not_equal(query_plain(s, 3, "load data infile '/etc/hosts' into table "
                                           "orders_pending"), 0);
    assert_int_equal(ops->check(s, 3, &failure), WB_OK); /* the handler's affair */
    ops->close(s);
    configure("secure_file_priv=");
    restart();
}

static void test_small_packets_are_refused(void **state)
{
    (void)state;
    observe("set global max_allowed_packet = 65536");
    int result = ops->verify(e.persistence, &failure);
    observe("set global max_allowed_packet = default");
    assert_int_equal(result, WB_FATAL);
    assert_int_equal(failure.cause, WB_CAUSE_CONFIG);
    assert_non_null(strstr(failure.text, "max_allowed_packet is 65536"));
    verify();
}

/* ---- the server dies ------------------------------------------------------------------ */

static void crash(const char *name)
{
    if (strcmp(name, "commit_sent") == 0)
        server("crash");
}

static void crash_once_committed(const char *name)
{
    if (strcmp(name, "commit_sent") != 0)
        return;
    await_number("select count(*) from orders_pending", 1);
    server("crash");
}

static int commit_while(wb_claim *claim, uint64_t batch, void (*at_point)(const char *name))
{
    wb_storage_session *s = open_session(&e);
    begin_claims(s, batch, claim, 1);
    at_crash_point = at_point;
    int result = commit_batch(s, batch, "operations", NULL);
    at_crash_point = NULL;
    ops->close(s);
    return result;
}

/* It takes in what is sent, and does nothing about it: from when each of its threads has stopped. */
static void freeze(void)
{
    char command[1024];
    (void)snprintf(command, sizeof command,
                   "pid=$(cat \"$(cat '%s/data')/pid\") && kill -STOP \"$pid\" && "
                   "while grep -q '^State:[[:space:]]*[^T[:space:]]' /proc/\"$pid\"/task/*/status; "
                   "do sleep 0.01; done",
                   directory);
    assert_int_equal(system(command), 0);
}

/* What the record says once the server is back. */
static uint64_t ask_record(void)
{
    wb_storage_session *s = open_session(&e);
    wb_claim claim = claim_of("a");
    begin_claims(s, 99, &claim, 1);
    ops->close(s);
    return claim.duplicate_of;
}

static void test_server_dies_at_commit(void **state)
{
    wb_storage_session *s = open_session(&e);
    wb_claim claim = claim_of("a");
    (void)state;
    begin_claims(s, 10, &claim, 1);
    freeze();
    at_crash_point = crash;
    int result = commit_batch(s, 10, "operations", NULL);
    at_crash_point = NULL;
    ops->close(s);
    restart();
    assert_int_equal(result, WB_IN_DOUBT);
    assert_int_equal(ask_record(), 0);
    assert_int_equal(observe_number("select count(*) from orders_pending"), 0);
}

/* Its answer was on its way, unread. */
static void test_server_dies_after_commit(void **state)
{
    wb_claim claim = claim_of("a");
    (void)state;
    int result = commit_while(&claim, 10, crash_once_committed);
    restart();
    assert_int_equal(result, WB_OK);
    assert_int_equal(ask_record(), 10);
    assert_int_equal(observe_number("select count(*) from orders_pending"), 1);
}

/* A mark in an open transaction is lost with it: dispatched again, it is the same bytes. */
static void test_server_dies_with_marks(void **state)
{
    wb_claim claim = claim_of("a");
    const wb_mark mark = { .batch = 10 };
    wb_begin begin = { .struct_size = sizeof begin, .marks = &mark, .mark_count = 1, .batch = 11 };
    (void)state;
    assert_int_equal(commit_while(&claim, 10, NULL), WB_OK);
    wb_storage_session *s = open_session(&e);
    assert_int_equal(ops->begin(s, &begin, &failure), WB_OK);
    server("crash");
    int result = commit_batch(s, 11, NULL, NULL); /* the news may take a moment */
    assert_true(result == WB_NOT_CONNECTED || result == WB_IN_DOUBT);
    ops->close(s);
    restart();
    assert_int_equal(observe_number("select count(*) from orders_pending"), 1);
    s = open_session(&e);
    assert_int_equal(ops->mark(s, &mark, 1, &failure), WB_OK);
    ops->close(s);
    assert_int_equal(observe_number("select count(*) from orders_pending"), 0);
}

/* ---- a full disk -------------------------------------------------------------------------- */

#define MANY "insert into goods select repeat('x', 200) from seq_1_to_20000"

static void disk(const char *verb)
{
    char command[1024];
    (void)snprintf(command, sizeof command, "\"$top_srcdir/tests/support/disk\" %s '%s' >&2", verb,
                   disk_directory);
    assert_int_equal(system(command), 0);
}

static void assert_the_servers(int result)
{
    if (result != WB_RETRY || failure.cause != WB_CAUSE_SERVER)
        fail_msg("class %d, cause %d: %s", result, failure.cause, failure.text);
}

/* Nobody's fault but the server's. */
static void test_disk_is_full(void **state)
{
    wb_claim claim = claim_of("a");
    char statement[512];
    size_t item = 5;
    (void)state;
    (void)snprintf(statement, sizeof statement,
                   "create table goods (x varchar(200)) engine = InnoDB data directory = '%s/space/db'",
                   disk_directory);
    observe(statement);
    disk("fill");
    wb_storage_session *s = open_session(&e);
    begin_claims(s, 10, &claim, 1);
    assert_int_not_equal(mysql_query(api->connection(s, 3), MANY), 0);
    assert_the_servers(ops->check(s, 3, &failure));
    assert_int_equal(ops->rollback(s, &failure), WB_OK);
    begin_claims(s, 11, &claim, 1);
    assert_int_equal(api->defer(s, 3, MANY, NULL), WB_OK);
    assert_the_servers(commit_batch(s, 11, "x", &item));
    print_message("# %s\n", failure.text);
    assert_int_equal(item, SIZE_MAX);
    disk("free");
    begin_claims(s, 12, &claim, 1);
    assert_int_equal(claim.duplicate_of, 0);
    assert_int_equal(api->defer(s, 3, MANY, NULL), WB_OK);
    assert_int_equal(commit_batch(s, 12, "x", NULL), WB_OK);
    observe("drop table goods");
    ops->close(s);
}

/* ---- what is refused -------------------------------------------------------------------- */

static void test_statement_binlog_is_refused(void **state)
{
    (void)state;
    configure("log_bin");
    configure("binlog_format=STATEMENT");
    restart();
    int result = ops->verify(e.persistence, &failure);
    configure("binlog_format=ROW");
    restart();
    assert_int_equal(result, WB_FATAL);
    assert_non_null(strstr(failure.text, "binlog_format"));
    verify();
    assert_non_null(strstr(warning, "sync_binlog"));
}

/* TLS that the server does not offer is not given up in silence, and the server hears nothing: no
 * user, and nothing made of the password. */
static void test_server_without_tls(void **state)
{
    static const char unheard[] = "select variable_value from information_schema.global_status "
                                  "where variable_name = 'Aborted_connects_preauth'";
    (void)state;
    configure("skip_ssl");
    restart();
    endpoint_destroy(&e);
    for (int mode = MYS_SSL_REQUIRED; mode <= MYS_SSL_VERIFY; mode++) {
        wb_storage_session *s = NULL;
        const long long before = observe_number(unheard);
        e.config.ssl_mode = mode;
        e.config.ssl_ca = getenv("MYSQL_CA");
        endpoint_create(&e);
        assert_int_equal(ops->open(e.persistence, &s, &failure), WB_NOT_CONNECTED);
        print_message("# %s\n", failure.text);
        await_number(unheard, before + 1);
        endpoint_destroy(&e);
    }
    e.config.ssl_mode = MYS_SSL_AUTO;
    e.config.ssl_ca = NULL;
    endpoint_create(&e);
    verify(); /* on this machine plain text is what auto means */
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
        TEST(test_session),
        TEST(test_settings_that_lose_commits),
        TEST(test_read_only_server),
        TEST(test_read_only_server_and_a_privileged_account),
        TEST(test_secure_file_priv),
        TEST(test_small_packets_are_refused),
        TEST(test_disk_is_full), /* before restarts, which would lose what is preloaded */
        TEST(test_server_dies_at_commit),
        TEST(test_server_dies_after_commit),
        TEST(test_server_dies_with_marks),
        TEST(test_statement_binlog_is_refused),
        TEST(test_server_without_tls),
    };
    if (argc != 3)
        return 64;
    directory = argv[1];
    disk_directory = argv[2];
    return cmocka_run_group_tests_name("mysql server", tests, load_plugin, NULL);
}
