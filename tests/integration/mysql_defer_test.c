/* SPDX-License-Identifier: Apache-2.0
 *
 * What handlers write with: deferred statements, the plain connection, and what becomes
 * of those who misuse them. */
#include "config.h"

#include <stdlib.h>

#include "core/base/clock.h"
#include "tests/integration/mysql_fixture.h"

#define INSERT "insert into business (item, text) values (?, ?)"


static int set_up(void **state)
{
    (void)state;
    endpoint_install(&orders, "orders");
    observe("create table if not exists business (place bigint auto_increment primary key, "
            "item int unique, text varchar(8000)) engine=InnoDB");
    observe("delete from business");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    endpoint_destroy(&orders);
    return 0;
}

static int defer_row(wb_storage_session *s, size_t item, const char *text)
{
    char number[24];
    (void)snprintf(number, sizeof number, "%zu", item);
    return api->defer(s, item, INSERT, WB_MYSQL_TEXT(number, text));
}

static void exec(MYSQL *db, const char *statement)
{
    assert_non_null(db);
    if (mysql_query(db, statement) != 0)
        fail_msg("%s: %s", statement, mysql_error(db));
    mysql_free_result(mysql_store_result(db));
}

static void assert_fails(MYSQL *db, const char *statement, unsigned code)
{
    assert_int_not_equal(mysql_query(db, statement), 0);
    assert_int_equal(mysql_errno(db), code);
}

static void test_deferred_in_order_with_the_batch(void **state)
{
    wb_storage_session *s = open_session(&orders);
    (void)state;
    begin_batch(s, 10);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(defer_row(s, i, "x"), WB_OK);
    assert_int_equal(api->defer(s, 5, "update business set text = concat(text, item)", NULL),
                     WB_OK);
    assert_int_equal(defer_row(s, 6, "y"), WB_OK);
    assert_int_equal(ops->check(s, 4, &failure), WB_OK);
    assert_int_equal(observe_number("select count(*) from business"), 0);
    assert_int_equal(commit_batch(s, 10, "operations", NULL), WB_OK);
    assert_int_equal(observe_number("select count(*) from business where text = concat('x', item)"),
                     5);
    assert_int_equal(observe_number("select count(*) from business where text = 'y'"), 1);
    assert_int_equal(observe_number("select count(*) from orders_pending"), 1);
    ops->close(s);
}

static void test_deferred_is_copied(void **state)
{
    wb_storage_session *s = open_session(&orders);
    char statement[] = INSERT;
    char text[] = "original";
    const char *values[] = { "1", text };
    wb_mysql_params params = { .count = 2, .values = values };
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

/* What goes in comes out, under every sql_mode. */
static void test_values_are_exact(void **state)
{
    static const char *const modes[] = { "", "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES",
                                         "ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT" };
    static const char *const texts[] = { "it's", "a\\'; drop table business; --",
                                         "z\xc3\xbc\xf0\x9f\x98\x80", "\"?`;#", "", "\\" };
    (void)state;
    for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++) {
        wb_storage_session *s = open_session(&orders);
        char set[128];
        observe("delete from business");
        begin_batch(s, 0);
        (void)snprintf(set, sizeof set, "set sql_mode = 'STRICT_ALL_TABLES,%s'", modes[m]);
        exec(api->connection(s, 0), set);
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
            assert_int_equal(defer_row(s, i, texts[i]), WB_OK);
        if (commit_batch(s, 0, NULL, NULL) != WB_OK)
            fail_msg("%s", failure.text);
        begin_batch(s, 0);
        MYSQL *db = api->connection(s, 0);
        assert_int_equal(mysql_query(db, "select text from business order by item"), 0);
        MYSQL_RES *rows = mysql_store_result(db);
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
            assert_string_equal(mysql_fetch_row(rows)[0], texts[i]);
        mysql_free_result(rows);
        ops->close(s);
    }
}

static size_t next_random(unsigned *seed, size_t below)
{
    *seed = *seed * 1103515245 + 12345;
    return (*seed >> 16) % below;
}

/* A value of printable bytes, of those with special ones among them, or of any: each way a
 * literal is written. */
static size_t fill_value(unsigned *seed, char *value, size_t most)
{
    static const char special[] = "'\\\"?;`\x81\x5c\xbf\x27\xe0";
    const size_t kind = next_random(seed, 3);
    const size_t size = next_random(seed, most + 1);
    for (size_t i = 0; i < size; i++) {
        value[i] = (char)(kind == 2 ? next_random(seed, 256) : 0x20 + next_random(seed, 0x5f));
        if (kind == 1 && next_random(seed, 4) == 0)
            value[i] = special[next_random(seed, sizeof special)];
        else if (kind == 0 && (value[i] == '\'' || value[i] == '\\'))
            value[i] = ' ';
    }
    return size;
}

/* The server has the very bytes. Text is of seven bits here: of others not all is valid. */
static void check_values(wb_storage_session *s, const char *setting, unsigned seed)
{
    static const int types[] = { WB_MYSQL_TYPE_NUMBER, WB_MYSQL_TYPE_BINARY, WB_MYSQL_TYPE_TEXT };
    char values[40][64];
    char texts[40][64];
    size_t sizes[40];

    observe("delete from bytes");
    begin_batch(s, 0);
    exec(api->connection(s, 0), setting);
    for (size_t i = 0; i < 40; i++) {
        char number[8];
        const size_t digits = (size_t)snprintf(number, sizeof number, "%zu", i);
        sizes[i] = fill_value(&seed, values[i], sizeof values[i]);
        for (size_t k = 0; k < sizes[i]; k++)
            texts[i][k] = (char)(values[i][k] & 0x7f);
        assert_int_equal(api->defer(s, i, "insert into bytes values (?, ?, cast(? as binary))",
                                    &(wb_mysql_params){
                                        3, types, (const size_t[]){ digits, sizes[i], sizes[i] },
                                        (const char *const[]){ number, values[i], texts[i] } }),
                         WB_OK);
    }
    if (commit_batch(s, 0, NULL, NULL) != WB_OK)
        fail_msg("%s: %s", setting, failure.text);
    begin_batch(s, 0);
    MYSQL *db = api->connection(s, 0);
    assert_int_equal(mysql_query(db, "select as_bytes, as_text from bytes order by item"), 0);
    MYSQL_RES *rows = mysql_store_result(db);
    for (size_t i = 0; i < 40; i++) {
        MYSQL_ROW row = mysql_fetch_row(rows);
        const unsigned long *lengths = mysql_fetch_lengths(rows);
        for (size_t column = 0; column < 2; column++) {
            if (!row[column] || lengths[column] != sizes[i] ||
                memcmp(row[column], column ? texts[i] : values[i], sizes[i]) != 0)
                fail_msg("%s: value %zu, column %zu", setting, i, column);
        }
    }
    mysql_free_result(rows);
    exec(db, "set names utf8mb4");
    assert_int_equal(commit_batch(s, 0, NULL, NULL), WB_OK);
}

static void test_any_value_in_any_session(void **state)
{
    static const char *const settings[] = {
        "set sql_mode = 'STRICT_ALL_TABLES,ANSI_QUOTES'",
        "set sql_mode = 'STRICT_ALL_TABLES,NO_BACKSLASH_ESCAPES'",
        "set sql_mode = 'STRICT_ALL_TABLES,ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT'",
        /* MariaDB's alone; MySQL refuses it */
        "set sql_mode = /*M! 'EMPTY_STRING_IS_NULL,' */ 'STRICT_ALL_TABLES'",
        "set names gbk", "set names sjis", "set names big5", "set names latin1", "set names swe7",
    };
    wb_storage_session *s = open_session(&orders);
    (void)state;
    observe("create or replace table bytes (item int primary key, as_bytes varbinary(100) not "
            "null, as_text varbinary(100) not null)");
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        check_values(s, settings[i], (unsigned)i + 1);
    ops->close(s);
    observe("drop table bytes");
}

/* A value is a string whatever its bytes, also where the server wants a number: else what is
 * written would depend on them. */
static void test_values_are_strings(void **state)
{
    static const int types[] = { WB_MYSQL_TYPE_BINARY, WB_MYSQL_TYPE_TEXT };
    static const char *const values[] = { "1", "1\n" };
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        wb_storage_session *s = open_session(&orders);
        const size_t length = strlen(values[i / 2]);
        observe("delete from business");
        begin_batch(s, 0);
        assert_int_equal(api->defer(s, 0, "insert into business (item) values (? * 2)",
                                    &(wb_mysql_params){ 1, &types[i % 2], &length,
                                                        &values[i / 2] }),
                         WB_OK);
        if (commit_batch(s, 0, NULL, NULL) != WB_OK)
            fail_msg("%s", failure.text);
        assert_int_equal(observe_number("select item from business"), 2);
        ops->close(s);
    }
}

static void test_parameters_of_all_kinds(void **state)
{
    static const int types[] = { WB_MYSQL_TYPE_NUMBER, WB_MYSQL_TYPE_BINARY };
    static const size_t lengths[] = { 2, 3 };
    wb_storage_session *s = open_session(&orders);
    const char *const values[] = { "42", "a\0b" };
    const char *const limit[] = { "1" };
    (void)state;
    begin_batch(s, 10);
    assert_int_equal(api->defer(s, 0, INSERT, &(wb_mysql_params){ 2, types, lengths, values }),
                     WB_OK);
    assert_int_equal(api->defer(s, 0, INSERT, WB_MYSQL_TEXT("7", NULL)), WB_OK);
    assert_int_equal(api->defer(s, 0, "update business set item = item + 100 order by item limit ?",
                                &(wb_mysql_params){ 1, types, NULL, limit }),
                     WB_OK);
    if (commit_batch(s, 10, NULL, NULL) != WB_OK)
        fail_msg("%s", failure.text);
    assert_int_equal(observe_number("select count(*) from business where item = 42 and "
                                    "text = x'610062'"),
                     1);
    assert_int_equal(observe_number("select count(*) from business where item = 107 and "
                                    "text is null"),
                     1);
    ops->close(s);
}

static void test_malformed_is_refused(void **state)
{
    wb_storage_session *s = open_session(&orders);
    (void)state;
    assert_int_equal(defer_row(s, 0, "x"), WB_REJECT); /* no transaction */
    begin_batch(s, 10);
    assert_int_equal(api->defer(s, 0, NULL, NULL), WB_REJECT);
    assert_int_equal(api->defer(s, 0, "commit", NULL), WB_REJECT);
    assert_int_equal(api->defer(s, 0, "select 1; commit", NULL), WB_REJECT);
    assert_int_equal(api->defer(s, 0, INSERT, WB_MYSQL_TEXT("1")), WB_REJECT);
    assert_int_equal(api->defer(s, 0, "insert into business (text) values ('commit')", NULL),
                     WB_OK);
    assert_int_equal(commit_batch(s, 10, NULL, NULL), WB_OK);
    assert_int_equal(observe_number("select count(*) from business"), 1);
    ops->close(s);
}

static void test_failure_names_its_item(void **state)
{
    static const char *const bad[] = {
        "insert into business (item) values ('x')", /* refused because the mode is strict */
        "insert into nowhere values (1)",
        "select from where",
        "insert into business (item) values (3)", /* is there */
        "update business set text = repeat('x', 8001)",
        "insert into business (text) values (_utf8mb4 x'ff')",
    };
    wb_storage_session *s = open_session(&orders);
    wb_claim claim = claim_of("a");
    size_t item = 0;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        begin_claims(s, 10, &claim, 1);
        assert_int_equal(claim.duplicate_of, 0);
        assert_int_equal(defer_row(s, 3, "x"), WB_OK);
        assert_int_equal(api->defer(s, 4, bad[i], NULL), WB_OK);
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

static void test_rows_are_dropped(void **state)
{
    wb_storage_session *s = open_session(&orders);
    size_t item = 0;
    (void)state;
    begin_batch(s, 10);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(api->defer(s, i, "select * from seq_1_to_1000", NULL), WB_OK);
        assert_int_equal(api->defer(s, i, "select 1 into @x", NULL), WB_OK);
        assert_int_equal(api->defer(s, i, "select 1 from business where false", NULL), WB_OK);
        assert_int_equal(defer_row(s, i, "x"), WB_OK);
    }
    assert_int_equal(commit_batch(s, 10, "x", NULL), WB_OK);
    assert_int_equal(observe_number("select count(*) from business"), 3);
    begin_batch(s, 11); /* a query that fails among its rows */
    assert_int_equal(api->defer(s, 7, "select (select seq union select 2) from seq_2_to_3", NULL),
                     WB_OK);
    assert_int_equal(commit_batch(s, 11, "x", &item), WB_RETRY);
    assert_int_equal(item, 7);
    begin_batch(s, 12);
    assert_int_equal(commit_batch(s, 12, "x", NULL), WB_OK);
    ops->close(s);
}

/* 20 MB of text: more than the server takes at once. */
static void test_more_than_a_packet(void **state)
{
    wb_storage_session *s = open_session(&orders);
    char *text = malloc(4001);
    size_t item = 0;
    (void)state;
    memset(text, '\'', 4000); /* twice as long as a literal */
    text[4000] = '\0';
    begin_batch(s, 10);
    for (size_t i = 0; i < 2500; i++)
        assert_int_equal(defer_row(s, i, text), WB_OK);
    if (commit_batch(s, 10, "x", NULL) != WB_OK)
        fail_msg("%s", failure.text);
    assert_int_equal(observe_number("select count(*) from business where length(text) = 4000"),
                     2500);
    begin_batch(s, 11); /* a failure in the last packet takes the first back */
    for (size_t i = 3000; i < 5500; i++)
        assert_int_equal(defer_row(s, i, text), WB_OK);
    assert_int_equal(defer_row(s, 1, text), WB_OK);
    assert_int_equal(commit_batch(s, 11, "x", &item), WB_RETRY);
    assert_int_equal(item, 1);
    assert_int_equal(observe_number("select count(*) from business"), 2500);
    free(text);
    ops->close(s);
}

/* What the server would not take is the failure of whose it is, not the connection's. */
static void test_larger_than_a_packet(void **state)
{
    const size_t size = (size_t)9 * 1024 * 1024;
    wb_storage_session *s = open_session(&orders);
    char *text = malloc(size + 1);
    size_t item = 0;
    (void)state;
    memset(text, '\'', size);
    text[size] = '\0';
    begin_batch(s, 10);
    assert_int_equal(defer_row(s, 1, "x"), WB_OK);
    assert_int_equal(defer_row(s, 2, text), WB_OK);
    assert_int_equal(commit_batch(s, 10, "x", &item), WB_REJECT);
    assert_int_equal(item, 2);
    assert_int_equal(failure.cause, WB_CAUSE_TOO_LARGE);
    assert_non_null(strstr(failure.text, "max_allowed_packet"));
    begin_batch(s, 11);
    assert_int_equal(commit_batch(s, 11, text, &item), WB_REJECT); /* operations */
    assert_int_equal(item, SIZE_MAX);
    assert_int_equal(failure.cause, WB_CAUSE_TOO_LARGE);
    assert_non_null(strstr(failure.text, "9437184 bytes of outgoing operations"));
    assert_non_null(strstr(failure.text, "max_allowed_packet"));
    begin_batch(s, 12); /* the session goes on */
    assert_int_equal(commit_batch(s, 12, "x", NULL), WB_OK);
    assert_int_equal(observe_number("select count(*) from business"), 0);
    free(text);
    ops->close(s);
}

/* ---- the plain connection ------------------------------------------------------------ */

static void test_plain_connection_sees_what_was_deferred(void **state)
{
    wb_storage_session *s = open_session(&orders);
    (void)state;
    for (int round = 0; round < 3; round++) {
        observe("delete from business");
        begin_batch(s, 10 + (uint64_t)round);
        assert_int_equal(defer_row(s, 0, "first"), WB_OK);
        exec(api->connection(s, 0), "update business set text = 'second'");
        assert_int_equal(ops->check(s, 0, &failure), WB_OK);
        assert_int_equal(defer_row(s, 1, "third"), WB_OK);
        assert_int_equal(ops->check(s, 1, &failure), WB_OK);
        assert_int_equal(commit_batch(s, 10 + (uint64_t)round, "x", NULL), WB_OK);
        assert_int_equal(observe_number("select count(*) from business where text = 'second'"), 1);
        assert_int_equal(observe_number("select count(*) from business where text = 'third'"), 1);
    }
    ops->close(s);
}

/* What a handler pasted into a statement cannot bring another one, at any time. */
static void test_no_second_statement_on_the_plain_connection(void **state)
{
    static const char pasted[] = "select 1; delete from business";
    wb_storage_session *s = open_session(&orders);
    (void)state;
    observe("insert into business (item) values (1)");
    for (uint64_t round = 0; round < 3; round++) {
        begin_batch(s, 10 + round);
        assert_fails(api->connection(s, 0), pasted, 1064);
        assert_int_equal(api->defer(s, 0, "do 1", NULL), WB_OK);
        assert_int_equal(api->defer(s, 0, "do 2", NULL), WB_OK);
        assert_fails(api->connection(s, 0), pasted, 1064); /* behind a flush, too */
        assert_int_equal(ops->check(s, 0, &failure), WB_OK);
        assert_int_equal(round == 1 ? ops->rollback(s, &failure)
                                    : commit_batch(s, 10 + round, "x", NULL),
                         WB_OK);
    }
    assert_int_equal(observe_number("select count(*) from business"), 1);
    ops->close(s);
}

static void test_multi_statements_option(void **state)
{
    (void)state;
    orders.config.multi_statements = 1;
    wb_storage_session *s = open_session(&orders);
    begin_batch(s, 10);
    MYSQL *db = api->connection(s, 0);
    exec(db, "select 1; insert into business (item) values (1)");
    assert_int_equal(ops->check(s, 0, &failure), WB_REJECT); /* there is a second result */
    ops->close(s);
    s = open_session(&orders);
    begin_batch(s, 11);
    db = api->connection(s, 0);
    exec(db, "select 1; insert into business (item) values (1)");
    assert_int_equal(mysql_next_result(db), 0);
    assert_int_equal(ops->check(s, 0, &failure), WB_OK);
    assert_int_equal(commit_batch(s, 11, "x", NULL), WB_OK);
    assert_int_equal(observe_number("select count(*) from business"), 1);
    ops->close(s);
}

static void test_prepared_statements_work(void **state)
{
    wb_storage_session *s = open_session(&orders);
    static const char text[] = "insert into business (item) values (?)";
    int number = 7;
    MYSQL_BIND bind = { .buffer_type = MYSQL_TYPE_LONG, .buffer = &number };
    (void)state;
    begin_batch(s, 10);
    MYSQL_STMT *statement = mysql_stmt_init(api->connection(s, 0));
    assert_int_equal(mysql_stmt_prepare(statement, text, sizeof text - 1), 0);
    assert_false(mysql_stmt_bind_param(statement, &bind));
    assert_int_equal(mysql_stmt_execute(statement), 0);
    assert_int_equal(ops->check(s, 0, &failure), WB_OK);
    assert_int_equal(commit_batch(s, 10, "x", NULL), WB_OK);
    begin_batch(s, 11); /* and may be kept */
    number = 8;
    assert_non_null(api->connection(s, 0));
    assert_int_equal(mysql_stmt_execute(statement), 0);
    assert_int_equal(mysql_stmt_execute(statement), 1); /* duplicate key: the handler's affair */
    assert_int_equal(ops->check(s, 0, &failure), WB_OK);
    assert_int_equal(commit_batch(s, 11, "x", NULL), WB_OK);
    mysql_stmt_close(statement);
    assert_int_equal(observe_number("select sum(item) from business"), 15);
    ops->close(s);
}

static void test_flushed_failure_is_the_items(void **state)
{
    wb_storage_session *s = open_session(&orders);
    size_t item = 0;
    (void)state;
    begin_batch(s, 10);
    assert_int_equal(api->defer(s, 3, "insert into nowhere values (1)", NULL), WB_OK);
    assert_null(api->connection(s, 5));
    /* not the doing of the handler that looks at it now */
    assert_int_equal(ops->check(s, 5, &failure), WB_ABORT);
    assert_int_equal(ops->check(s, 3, &failure), WB_RETRY);
    assert_non_null(strstr(failure.text, "1146"));
    assert_null(api->connection(s, 6));
    assert_int_equal(commit_batch(s, 10, "x", &item), WB_RETRY);
    assert_int_equal(item, 3);
    begin_batch(s, 11);
    assert_int_equal(ops->check(s, 3, &failure), WB_OK);
    assert_non_null(api->connection(s, 3));
    ops->close(s);
}

/* In MySQL a statement that fails is no failure of the transaction: the handler decides. */
static void test_handler_recovers_from_an_error(void **state)
{
    wb_storage_session *s = open_session(&orders);
    (void)state;
    begin_batch(s, 10);
    MYSQL *db = api->connection(s, 2);
    exec(db, "insert into business (item) values (1)");
    assert_fails(db, "insert into business (item) values (1)", 1062);
    assert_int_equal(ops->check(s, 2, &failure), WB_OK);
    exec(db, "savepoint mine");
    exec(db, "insert into business (item) values (2)");
    exec(db, "rollback to mine");
    assert_int_equal(ops->check(s, 2, &failure), WB_OK);
    assert_int_equal(commit_batch(s, 10, "x", NULL), WB_OK);
    assert_int_equal(observe_number("select sum(item) from business"), 1);
    ops->close(s);
}

/* Messages share a transaction, and its names: who goes back to what another left undoes what is between. */
static void test_savepoint_of_another_message(void **state)
{
    static const char *const ways[] = { "rollback to mine", " /* mine */ ROLLBACK TO SAVEPOINT mine", "-- mine\nrollback to mine",
                                        "/*!40000 rollback to mine */" };
    static const char insert[] = "insert into business (item) values (5)";
    wb_storage_session *s = open_session(&orders);
    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        begin_batch(s, 10);
        exec(api->connection(s, 1), "savepoint mine");
        assert_int_equal(ops->check(s, 1, &failure), WB_OK);
        exec(api->connection(s, 2), insert);
        assert_int_equal(ops->check(s, 2, &failure), WB_OK);
        exec(api->connection(s, 3), ways[i]);
        assert_int_equal(ops->check(s, 3, &failure), WB_ABORT);
        assert_int_equal(ops->rollback(s, &failure), WB_OK);
    }
    begin_batch(s, 11); /* released, or one's own, it harms nobody */
    exec(api->connection(s, 1), "savepoint mine");
    exec(api->connection(s, 1), "release savepoint mine");
    assert_int_equal(ops->check(s, 1, &failure), WB_OK);
    exec(api->connection(s, 2), insert);
    assert_int_equal(ops->check(s, 2, &failure), WB_OK);
    exec(api->connection(s, 3), "savepoint mine");
    exec(api->connection(s, 3), "rollback to mine");
    assert_int_equal(ops->check(s, 3, &failure), WB_OK);
    exec(api->connection(s, 4), "savepoint mine"); /* in spite of the one that stayed */
    exec(api->connection(s, 4), "rollback to mine");
    assert_int_equal(ops->check(s, 4, &failure), WB_OK);
    assert_int_equal(commit_batch(s, 11, "x", NULL), WB_OK);
    assert_int_equal(observe_number("select count(*) from business"), 1);
    ops->close(s);
}

static void test_handler_ends_transaction(void **state)
{
    static const struct {
        const char *statements[2];
    } ends[] = {
        { { "commit" } },
        { { "rollback" } },
        { { "commit", "begin" } },
        { { "rollback", "start transaction" } },
        { { "commit and chain" } },
        { { "begin" } },
        { { "create table if not exists made (a int)" } },
        { { "alter table business comment 'x'", "insert into business (item) values (9)" } },
        { { "set autocommit = 1", "set autocommit = 0" } },
        { { "truncate table made" } },
    };
    wb_claim claim = claim_of("a");
    size_t item = 0;
    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        wb_storage_session *s = open_session(&orders);
        observe("delete from orders_dedup");
        begin_claims(s, 10, &claim, 1);
        MYSQL *db = api->connection(s, 2);
        for (size_t k = 0; k < 2 && ends[i].statements[k]; k++)
            exec(db, ends[i].statements[k]);
        if (ops->check(s, 2, &failure) != WB_REJECT)
            fail_msg("%s: not found out", ends[i].statements[0]);
        assert_non_null(strstr(failure.text, "the handler ended the transaction"));
        assert_int_equal(commit_batch(s, 10, "x", &item), WB_REJECT);
        assert_int_equal(item, 2);
        assert_int_equal(observe_number("select count(*) from orders_pending"), 0);
        begin_batch(s, 11);
        assert_int_equal(commit_batch(s, 11, "x", NULL), WB_OK);
        observe("delete from orders_pending");
        ops->close(s);
    }
    assert_int_equal(observe_number("select count(*) from business where item = 9"), 0);
    observe("drop table made");
}

static void test_handler_leaves_results_unread(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        wb_storage_session *s = open_session(&orders);
        begin_batch(s, 10);
        MYSQL *db = api->connection(s, 2);
        MYSQL_RES *rows = NULL;
        assert_int_equal(kind % 3 == 0 ? mysql_send_query(db, "select 1", 8)
                                   : mysql_query(db, "select * from seq_1_to_100"),
                         0);
        if (kind == 2)
            rows = mysql_use_result(db);
        if (kind < 3) {
            assert_int_equal(ops->check(s, 2, &failure), WB_REJECT);
            /* nothing can be sent on it any more: the server rolls back when it closes */
            assert_int_equal(ops->rollback(s, &failure), WB_NOT_CONNECTED);
        } else { /* an answer nobody waits for, which may not be there yet, is not taken for that of the commit */
            assert_int_equal(commit_batch(s, 10, "x", NULL), WB_REJECT);
        }
        mysql_free_result(rows);
        ops->close(s);
    }
}

static void test_no_connection_outside_of_a_transaction(void **state)
{
    wb_storage_session *s = open_session(&orders);
    (void)state;
    assert_null(api->connection(s, 0));
    assert_null(ops->interface(s, "pgsql.1"));
    ops->close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
        TEST(test_deferred_in_order_with_the_batch),
        TEST(test_deferred_is_copied),
        TEST(test_values_are_exact),
        TEST(test_any_value_in_any_session),
        TEST(test_values_are_strings),
        TEST(test_parameters_of_all_kinds),
        TEST(test_malformed_is_refused),
        TEST(test_failure_names_its_item),
        TEST(test_rows_are_dropped),
        TEST(test_more_than_a_packet),
        TEST(test_larger_than_a_packet),
        TEST(test_plain_connection_sees_what_was_deferred),
        TEST(test_no_second_statement_on_the_plain_connection),
        TEST(test_multi_statements_option),
        TEST(test_prepared_statements_work),
        TEST(test_flushed_failure_is_the_items),
        TEST(test_handler_recovers_from_an_error),
        TEST(test_savepoint_of_another_message),
        TEST(test_handler_ends_transaction),
        TEST(test_handler_leaves_results_unread),
        TEST(test_no_connection_outside_of_a_transaction),
    };
    return cmocka_run_group_tests_name("mysql handlers' statements", tests, load_plugin, NULL);
}
