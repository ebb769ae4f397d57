/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of the mysql persistence that need no server: names, error numbers, literals, and
 * the reading of deferred statements. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <waybill/sys/plugin.h>

#include "plugins/persistence/mysql/mysql-list.h"
#include "plugins/persistence/mysql/mysql-map.h"
#include "plugins/persistence/mysql/mysql-dialect.h"
#include "plugins/persistence/mysql/mysql-options.h"
#include "plugins/persistence/mysql/mysql-statement.h"

#include <cmocka.h>

/* ---- statements --------------------------------------------------------------------- */

static void assert_renders(const char *statement, const wb_mysql_params *params, const char *wanted)
{
    wb_sql_buffer text = { 0 };
    wb_sql_buffer_put(&text, "before;", 7);
    const char *refusal = mys_statement_render(statement, params, &text);
    if (refusal)
        fail_msg("%s: %s", statement, refusal);
    wb_sql_buffer_put(&text, "", 1);
    assert_string_equal(text.data + 7, wanted);
    wb_sql_buffer_free(&text);
}

static void assert_refused(const char *statement, const wb_mysql_params *params, const char *why)
{
    wb_sql_buffer text = { 0 };
    const char *refusal = mys_statement_render(statement, params, &text);
    if (!refusal)
        fail_msg("%s: not refused", statement);
    if (!strstr(refusal, why))
        fail_msg("%s: %s", statement, refusal);
    wb_sql_buffer_free(&text);
}

static void test_parameters_become_literals(void **state)
{
    static const int types[] = { WB_MYSQL_TYPE_TEXT, WB_MYSQL_TYPE_BINARY, WB_MYSQL_TYPE_NUMBER };
    static const size_t lengths[] = { 1, 3, 2 };
    (void)state;
    assert_renders("select ?", WB_MYSQL_TEXT("'; drop table a; --"),
                   "select  _utf8mb4 x'273b2064726f70207461626c6520613b202d2d' ");
    assert_renders("select ?,?", WB_MYSQL_TEXT(NULL, ""), "select  NULL , _utf8mb4 x'' ");
    assert_renders("select ?,?,?",
                   &(wb_mysql_params){ 3, types, lengths,
                                       (const char *const[]){ "ab", "\0'\xff", "12345" } },
                   "select  _utf8mb4 'a' , _binary x'0027ff' , 12 ");
    assert_renders("select 1 -?", &(wb_mysql_params){ 1, types + 2, NULL,
                                                      (const char *const[]){ "-5" } },
                   "select 1 - (-5) ");
    assert_renders("select 1", NULL, "select 1");
}

static void assert_literal(const char *value, size_t size, const char *binary, const char *text)
{
    wb_sql_buffer buffer = { 0 };
    mys_buffer_put_bytes(&buffer, value, size);
    mys_buffer_put_string(&buffer, value, size);
    wb_sql_buffer_put(&buffer, "", 1);
    assert_memory_equal(buffer.data, binary, strlen(binary));
    assert_string_equal(buffer.data + strlen(binary), text);
    wb_sql_buffer_free(&buffer);
}

static void test_literals(void **state)
{
    (void)state;
    assert_literal("a \"b\" ~", 7, "_binary 'a \"b\" ~'", "_utf8mb4 'a \"b\" ~'");
    assert_literal("it's", 4, "_binary x'69742773'", "_utf8mb4 x'69742773'");
    assert_literal("\\", 1, "_binary x'5c'", "_utf8mb4 x'5c'");
    assert_literal("\x81", 1, "_binary x'81'", "_utf8mb4 x'81'");
    assert_literal("a\0b", 3, "_binary x'610062'", "_utf8mb4 x'610062'");
    assert_literal("", 0, "_binary x''", "_utf8mb4 x''"); /* '' might be NULL */
}

/* Each byte, at each place of values of each length around the words they are read in. */
static void test_which_bytes_are_plain(void **state)
{
    char value[25];
    (void)state;
    for (size_t size = 1; size <= sizeof value; size++)
        for (size_t at = 0; at < size; at++)
            for (int byte = 0; byte < 256; byte++) {
                const int plain = byte >= 0x20 && byte <= 0x7e && byte != '\'' && byte != '\\';
                memset(value, "a ~"[size % 3], sizeof value);
                value[at] = (char)byte;
                if (mys_is_plain(value, size) != plain)
                    fail_msg("byte %d at %zu of %zu", byte, at, size);
            }
}

/* Bytes must not be taken for each other's borrow or carry. */
static void test_which_neighbours_are_plain(void **state)
{
    (void)state;
    for (unsigned pair = 0; pair < 65536; pair++) {
        const char value[8] = { 'a', 'a', 'a', (char)(pair >> 8), (char)(pair & 255), 'a', 'a', 'a' };
        assert_int_equal(mys_is_plain(value, sizeof value),
                         mys_is_plain(value + 3, 1) && mys_is_plain(value + 4, 1));
    }
}

static void test_strings_behind_parameters(void **state)
{
    (void)state;
    assert_refused("select ? 'b'", WB_MYSQL_TEXT("a"), "joined");
    assert_refused("select ?\n\"b\"", WB_MYSQL_TEXT("a"), "joined");
    assert_refused("select ?/* a */ -- b\n'b'", WB_MYSQL_TEXT("a"), "joined");
    assert_refused("select ?\xa0'b'", WB_MYSQL_TEXT("it's"), "joined");
    assert_refused("select ?'b", WB_MYSQL_TEXT(NULL), "joined");
    assert_renders("select ? `b`, ? as 'c', 'd'", WB_MYSQL_TEXT("a", "'"),
                   "select  _utf8mb4 'a'  `b`,  _utf8mb4 x'27'  as 'c', 'd'");
}

static void test_question_marks_that_are_none(void **state)
{
    (void)state;
    assert_renders("select '?', \"?\", `?`, 'it''s ?', \"a\"\"?\", `a``?`, ?", WB_MYSQL_TEXT("a"),
                   "select '?', \"?\", `?`, 'it''s ?', \"a\"\"?\", `a``?`,  _utf8mb4 'a' ");
    assert_renders("select 1 # ?\n+ 1", NULL, "select 1  \n+ 1");
    assert_renders("select 1 -- ?\n+ 1", NULL, "select 1  \n+ 1");
    assert_renders("select 1 --\t?\n+ 1 --", NULL, "select 1  \n+ 1  ");
    assert_renders("select 1 /* ? */+ 1", NULL, "select 1  + 1");
    assert_renders("/* a */ select /*+ no_merge(?) */ 1", NULL,
                   "  select /*+ no_merge(?) */ 1");
    assert_renders("select 4/?", WB_MYSQL_TEXT("1"), "select 4/ _utf8mb4 '1' ");
}

/* With a blank of ours behind them they would be a comment, and swallow what follows. */
static void test_two_dashes(void **state)
{
    (void)state;
    assert_refused("select 1--?", WB_MYSQL_TEXT("1"), "dashes");
    assert_refused("select 1--/* x */2", NULL, "dashes");
    assert_refused("select 1 --- 2", NULL, "dashes");
    assert_renders("select 1 -/* x */-2", NULL, "select 1 - -2");
    assert_renders("select '--', 1 - -?", WB_MYSQL_TEXT("1"),
                   "select '--', 1 - - _utf8mb4 '1' ");
}

static void test_backslashes(void **state)
{
    (void)state;
    assert_renders("select '\\n\\\\', '\\\"', \"\\'\"", NULL, "select '\\n\\\\', '\\\"', \"\\'\"");
    assert_renders("select 'a\\\\', ?", WB_MYSQL_TEXT("b"), "select 'a\\\\',  _utf8mb4 'b' ");
    assert_renders("select `a\\`, ?", WB_MYSQL_TEXT("b"), "select `a\\`,  _utf8mb4 'b' ");
    assert_refused("select 'it\\'s', ?", WB_MYSQL_TEXT("b"), "sql_mode");
    assert_refused("select 'a\\\\\\'", NULL, "sql_mode");
    assert_refused("select \"a\\\"\"", NULL, "sql_mode");
}

static void test_one_statement_a_call(void **state)
{
    (void)state;
    assert_renders("select ';' ; ", NULL, "select ';' ");
    assert_renders("select 1; -- done\n /* really */ # yes", NULL, "select 1   ");
    assert_refused("select 1; select 2", NULL, "more than one");
    assert_refused("select 1;;", NULL, "more than one");
    assert_refused("select 1; ?", WB_MYSQL_TEXT("a"), "more than one");
    assert_refused(";", NULL, "empty");
}

static void test_what_may_be_deferred(void **state)
{
    static const char *const allowed[] = { "insert into a values (1)", "Update a set b = 1",
                                           "DELETE from a", "replace into a values (1)",
                                           "((select 1))", "with a as (select 1) select * from a",
                                           "/* x */ do 1" };
    static const char *const refused[] = {
        "begin",        "commit",           "rollback",   "start transaction",
        "savepoint a",  "set autocommit=1", "create table a (b int)",
        "alter table a", "drop table a",    "truncate a", "lock tables a write",
        "call p()",     "load data local infile 'a' into table b", "xa start 'a'",
        "use other",    "prepare a from 'select 1'", "execute a", "handler a open",
        "insertx",      "kill 1",           "flush tables", "grant all on a to b",
    };
    (void)state;
    for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++) {
        wb_sql_buffer text = { 0 };
        assert_null(mys_statement_render(allowed[i], NULL, &text));
        wb_sql_buffer_free(&text);
    }
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        assert_refused(refused[i], NULL, "can be deferred");
    assert_refused("", NULL, "empty");
    assert_refused("  -- nothing", NULL, "empty");
}

static void test_what_the_server_might_execute(void **state)
{
    (void)state;
    assert_refused("select 1 /*! ; drop table a */", NULL, "executed");
    assert_refused("select 1 /*!50000 , 2 */", NULL, "executed");
    assert_refused("select 1 /*M! , 2 */", NULL, "executed");
    assert_refused("select 1 /* ", NULL, "not closed");
    assert_refused("select 'a", NULL, "not closed");
    assert_refused("select `a", NULL, "not closed");
}

static void test_parameters_that_do_not_fit(void **state)
{
    static const int binary[] = { WB_MYSQL_TYPE_BINARY };
    static const int number[] = { WB_MYSQL_TYPE_NUMBER };
    static const int unknown[] = { 3 };
    static const char *const numbers[] = { "", "-", ".", "1e5", "0x1", "1 or 1", "1;", "--1",
                                           "1.2.3", "+1" };
    const char *const a[] = { "a" };
    (void)state;
    assert_refused("select ?", NULL, "more");
    assert_refused("select ?, ?", WB_MYSQL_TEXT("a"), "more");
    assert_refused("select 1", WB_MYSQL_TEXT("a"), "less");
    assert_refused("select ?", &(wb_mysql_params){ 1, binary, NULL, a }, "length");
    assert_refused("select ?", &(wb_mysql_params){ 1, unknown, NULL, a }, "type");
    assert_refused("select ?", &(wb_mysql_params){ -1, NULL, NULL, a }, "range");
    assert_refused("select ?", &(wb_mysql_params){ 65536, NULL, NULL, a }, "range");
    assert_refused("select ?", &(wb_mysql_params){ 1, NULL, NULL, NULL }, "values");
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        assert_refused("select ?", &(wb_mysql_params){ 1, number, NULL, &numbers[i] }, "decimal");
}

/* Whatever the bytes: what comes out has no statement more than what went in, and a value
 * never leaves its literal. */
static void test_any_bytes(void **state)
{
    static const char *const values[] = { "';--", "?;--\"" };
    static const char alphabet[] = "'\"`\\?;#-/*!+ \nab(%";
    unsigned seed = 7;
    (void)state;
    for (int round = 0; round < 20000; round++) {
        char statement[40] = "select ";
        wb_sql_buffer text = { 0 };
        for (size_t i = 7; i < sizeof statement - 1; i++)
            statement[i] = alphabet[(seed = seed * 1103515245 + 12345) / 65536 %
                                    (sizeof alphabet - 1)];
        if (!mys_statement_render(statement, WB_MYSQL_TEXT(values[round % 2]), &text)) {
            wb_sql_buffer again = { 0 };
            wb_sql_buffer_put(&text, "", 1);
            /* the output is a statement, and reads the same the second time */
            assert_null(mys_statement_render(text.data, NULL, &again));
            wb_sql_buffer_put(&again, "", 1);
            assert_string_equal(again.data, text.data);
            wb_sql_buffer_free(&again);
        }
        wb_sql_buffer_free(&text);
    }
}

/* ---- names ----------------------------------------------------------------------------- */

static char *expand(const char *endpoint, const char *database, const char *template)
{
    static char result[512];
    wb_sql_names names;
    wb_sql_buffer text = { 0 };
    wb_sql_names_init(&names, &mys_quoting, endpoint, database);
    wb_sql_names_expand(&names, template, &text);
    assert_true(text.size < sizeof result);
    memcpy(result, text.data, text.size);
    result[text.size] = '\0';
    wb_sql_buffer_free(&text);
    return result;
}

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(expand("orders", "shop", "a {dedup}, {pending}"),
                        "a `shop`.`orders_dedup`, `shop`.`orders_pending`");
    assert_string_equal(expand("orders", "sh`op", "{endpoints}"), "`sh``op`.`waybill_endpoints`");
    assert_string_equal(expand("orders", "shop", "{prefix} {endpoint}"), "'orders' 'orders'");
    assert_string_equal(expand("o'r", "shop", "{endpoint}"), "_utf8mb4 x'6f2772'");
    assert_string_equal(expand("o\\", "shop", "{endpoint}"), "_utf8mb4 x'6f5c'");
}

static void test_prefixes(void **state)
{
    static const char longest[] = "a2345678901234567890123456789012345678901234567890";
    static const char longer[] = "a23456789012345678901234567890123456789012345678901";
    static const char *const whole[] = { "orders", "a_1", longest };
    static const char *const hashed[] = { "Orders", "orders ", "sales.orders", "", longer };
    wb_sql_names names;
    wb_sql_names another;
    (void)state;
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
        wb_sql_names_init(&names, &mys_quoting, whole[i], "shop");
        assert_string_equal(names.prefix, whole[i]);
    }
    for (size_t i = 0; i < sizeof hashed / sizeof hashed[0]; i++) {
        wb_sql_names_init(&names, &mys_quoting, hashed[i], "shop");
        assert_non_null(strchr(names.prefix, '$'));
        assert_true(strlen(names.prefix) <= WB_SQL_PREFIX_MAX);
    }
    wb_sql_names_init(&names, &mys_quoting, "Orders", "shop");
    assert_string_equal(names.prefix, "orders$e87b30a62af9f12c"); /* tables of this name exist */
    wb_sql_names_init(&another, &mys_quoting, "oRDERS", "shop");
    assert_string_not_equal(names.prefix, another.prefix);
}

static void test_lock_names(void **state)
{
    wb_sql_names shop;
    wb_sql_names stock;
    char a[MYS_LOCK_NAME_SIZE];
    char b[MYS_LOCK_NAME_SIZE];
    (void)state;
    wb_sql_names_init(&shop, &mys_quoting, "orders", "shop");
    wb_sql_names_init(&stock, &mys_quoting, "orders", "stock");
    mys_lock_name(&shop, "sweep", shop.prefix, a);
    mys_lock_name(&shop, "sweep", shop.prefix, b);
    assert_string_equal(a, b);
    mys_lock_name(&shop, "cleanup", shop.prefix, b);
    assert_string_not_equal(a, b);
    mys_lock_name(&stock, "sweep", stock.prefix, b); /* the server's other database */
    assert_string_not_equal(a, b);
    assert_null(strchr(a, '\''));
}

/* ---- errors ------------------------------------------------------------------------------ */

/* Of MySQL's and MariaDB's lists, in the order of their numbers. Whatever else a server says is as the last. */
#define MESSAGE WB_RETRY, WB_CAUSE_OTHER
#define SERVER WB_RETRY, WB_CAUSE_SERVER
#define NOBODY WB_ABORT, WB_CAUSE_OTHER
#define AWAY WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE
#define CROWDED WB_NOT_CONNECTED, WB_CAUSE_SERVER
#define NOBODY_KNOWS 0
static const struct {
    unsigned code;
    int handler, handler_cause, own, own_cause, commit;
} classes[] = {
    { 2, SERVER, SERVER, NOBODY_KNOWS },
    { 3, SERVER, SERVER, NOBODY_KNOWS },
    { 5, SERVER, SERVER, NOBODY_KNOWS },
    { 20, SERVER, SERVER, NOBODY_KNOWS },
    { 23, SERVER, SERVER, NOBODY_KNOWS },
    { 1016, SERVER, SERVER, NOBODY_KNOWS },
    { 1020, NOBODY, NOBODY, WB_ABORT },
    { 1021, SERVER, SERVER, NOBODY_KNOWS },
    { 1024, SERVER, SERVER, NOBODY_KNOWS },
    { 1026, SERVER, SERVER, NOBODY_KNOWS },
    { 1030, SERVER, SERVER, NOBODY_KNOWS },
    { 1034, SERVER, SERVER, NOBODY_KNOWS },
    { 1037, SERVER, SERVER, NOBODY_KNOWS },
    { 1038, SERVER, SERVER, NOBODY_KNOWS },
    { 1040, SERVER, CROWDED, NOBODY_KNOWS },
    { 1041, SERVER, SERVER, NOBODY_KNOWS },
    { 1044, MESSAGE, WB_FATAL, WB_CAUSE_REFUSED, NOBODY_KNOWS },
    { 1045, MESSAGE, WB_FATAL, WB_CAUSE_REFUSED, NOBODY_KNOWS },
    { 1047, AWAY, AWAY, NOBODY_KNOWS },
    { 1049, MESSAGE, WB_FATAL, WB_CAUSE_MISSING, NOBODY_KNOWS },
    { 1053, AWAY, AWAY, NOBODY_KNOWS },
    { 1054, MESSAGE, WB_FATAL, WB_CAUSE_MISMATCH, NOBODY_KNOWS },
    { 1062, MESSAGE, NOBODY, NOBODY_KNOWS },
    { 1064, MESSAGE, WB_FATAL, WB_CAUSE_OTHER, NOBODY_KNOWS },
    { 1114, SERVER, SERVER, NOBODY_KNOWS },
    { 1118, MESSAGE, WB_REJECT, WB_CAUSE_TOO_LARGE, NOBODY_KNOWS },
    { 1129, MESSAGE, AWAY, NOBODY_KNOWS },
    { 1130, MESSAGE, WB_FATAL, WB_CAUSE_REFUSED, NOBODY_KNOWS },
    { 1135, SERVER, AWAY, NOBODY_KNOWS },
    { 1136, MESSAGE, WB_FATAL, WB_CAUSE_MISMATCH, NOBODY_KNOWS },
    { 1142, MESSAGE, WB_FATAL, WB_CAUSE_REFUSED, NOBODY_KNOWS },
    { 1143, MESSAGE, WB_FATAL, WB_CAUSE_REFUSED, NOBODY_KNOWS },
    { 1146, MESSAGE, WB_FATAL, WB_CAUSE_MISSING, NOBODY_KNOWS },
    { 1153, MESSAGE, WB_REJECT, WB_CAUSE_TOO_LARGE, NOBODY_KNOWS },
    { 1180, MESSAGE, SERVER, NOBODY_KNOWS },
    { 1203, SERVER, CROWDED, NOBODY_KNOWS },
    { 1205, SERVER, SERVER, WB_RETRY },
    { 1206, SERVER, SERVER, WB_RETRY },
    { 1213, NOBODY, NOBODY, WB_ABORT },
    { 1226, SERVER, CROWDED, NOBODY_KNOWS },
    { 1227, MESSAGE, WB_FATAL, WB_CAUSE_REFUSED, NOBODY_KNOWS },
    { 1290, SERVER, AWAY, WB_NOT_CONNECTED },
    { 1301, MESSAGE, WB_REJECT, WB_CAUSE_TOO_LARGE, NOBODY_KNOWS },
    { 1317, SERVER, SERVER, NOBODY_KNOWS },
    { 1364, MESSAGE, WB_FATAL, WB_CAUSE_MISMATCH, NOBODY_KNOWS },
    { 1370, MESSAGE, WB_FATAL, WB_CAUSE_REFUSED, NOBODY_KNOWS },
    { 1406, MESSAGE, WB_FATAL, WB_CAUSE_MISMATCH, NOBODY_KNOWS },
    { 1452, MESSAGE, SERVER, NOBODY_KNOWS },
    { 1598, SERVER, SERVER, NOBODY_KNOWS },
    { 1614, NOBODY, NOBODY, WB_ABORT },
    { 1637, SERVER, SERVER, NOBODY_KNOWS },
    { 1644, MESSAGE, SERVER, NOBODY_KNOWS },
    { 1665, MESSAGE, WB_FATAL, WB_CAUSE_CONFIG, NOBODY_KNOWS },
    { 1698, MESSAGE, WB_FATAL, WB_CAUSE_REFUSED, NOBODY_KNOWS },
    { 1792, MESSAGE, AWAY, WB_NOT_CONNECTED },
    { 1820, MESSAGE, WB_FATAL, WB_CAUSE_REFUSED, NOBODY_KNOWS },
    { 1836, SERVER, AWAY, WB_NOT_CONNECTED },
    { 1862, MESSAGE, WB_FATAL, WB_CAUSE_REFUSED, NOBODY_KNOWS },
    { 1927, AWAY, AWAY, NOBODY_KNOWS },
    { 1969, SERVER, SERVER, NOBODY_KNOWS },
    { 3019, SERVER, SERVER, NOBODY_KNOWS },
    { 3024, SERVER, SERVER, NOBODY_KNOWS },
    { 3101, NOBODY, NOBODY, WB_ABORT },
    { 3118, MESSAGE, WB_FATAL, WB_CAUSE_REFUSED, NOBODY_KNOWS },
    { 3169, AWAY, AWAY, NOBODY_KNOWS },
    { 3572, SERVER, SERVER, NOBODY_KNOWS },
    { 4031, AWAY, AWAY, NOBODY_KNOWS },
    { 4151, MESSAGE, WB_FATAL, WB_CAUSE_REFUSED, NOBODY_KNOWS },
    { 99999, MESSAGE, SERVER, NOBODY_KNOWS },
};

static void test_classes(void **state)
{
    (void)state;
    const size_t last = sizeof classes / sizeof classes[0] - 1;
    size_t next = 0;
    for (unsigned code = 1; code <= classes[last].code; code++) {
        const size_t i = code == classes[next].code ? next++ : last;
        const mys_mapping *got = mys_map(code);
        if (got->handler != classes[i].handler || got->handler_cause != classes[i].handler_cause ||
            got->own != classes[i].own || got->own_cause != classes[i].own_cause ||
            got->commit != classes[i].commit)
            fail_msg("%u: handler %d, cause %d; own %d, cause %d; commit %d", code,
                     got->handler, got->handler_cause, got->own, got->own_cause, got->commit);
    }
    assert_int_equal(next, last + 1);
    assert_true(mys_is_client_error(2013));
    assert_true(mys_is_client_error(2006));
    assert_false(mys_is_client_error(1213));
    assert_false(mys_is_client_error(3572));
    assert_false(mys_is_client_error(4031));
}

/* ---- the rest ------------------------------------------------------------------------------ */

static void test_lists(void **state)
{
    mys_list list = { 0 };
    (void)state;
    for (size_t i = 0; i < 300; i++) {
        wb_sql_buffer_put_number(&list.text, i);
        assert_int_equal(mys_list_end(&list, i), 0);
    }
    const size_t size = list.text.size;
    wb_sql_buffer_put_text(&list.text, "half of");
    mys_list_drop(&list);
    assert_int_equal(list.text.size, size);
    assert_int_equal(list.count, 300);
    assert_int_equal(list.statements[12].item, 12);
    assert_memory_equal(list.text.data + list.statements[11].end, "12", 2);
    mys_list_reset(&list);
    assert_int_equal(list.text.size + list.count, 0);
    mys_list_free(&list);
}

static void test_options_fit_their_struct(void **state)
{
    (void)state;
    for (size_t i = 0; i < MYS_OPTION_COUNT; i++) {
        assert_non_null(mys_options[i].name);
        assert_true(mys_options[i].offset < sizeof(mys_config));
        for (size_t k = 0; k < i; k++)
            assert_true(mys_options[i].offset != mys_options[k].offset);
    }
}

/* ---- TLS ------------------------------------------------------------------------------- */

static int failures;
static int warnings;

static int host_fail(const wb_host *host, wb_error *error, int result, int cause,
                     int64_t native_code, const char *format, ...) WB_PRINTF(6, 7);
static int host_fail(const wb_host *host, wb_error *error, int result, int cause,
                     int64_t native_code, const char *format, ...)
{
    (void)host;
    (void)error;
    (void)native_code;
    assert_int_equal(cause, WB_CAUSE_CONFIG);
    assert_non_null(strstr(format, "allow_insecure"));
    failures++;
    return result;
}

static void host_log(const wb_host *host, int level, const char *text, const wb_field *fields,
                     size_t count)
{
    (void)host;
    (void)fields;
    (void)count;
    assert_int_equal(level, WB_LOG_WARNING);
    assert_non_null(strstr(text, "verify_identity"));
    warnings++;
}

static void test_tls_is_not_weakened_in_silence(void **state)
{
    static const struct {
        mys_config config;
        int mode, failures, warnings;
    } rows[] = {
        { { .host = "db1" }, MYS_SSL_VERIFY, 0, 0 },
        { { .host = "db1", .ssl_mode = MYS_SSL_VERIFY }, MYS_SSL_VERIFY, 0, 0 },
        { { .host = "db1", .ssl_mode = MYS_SSL_REQUIRED }, MYS_SSL_REQUIRED, 0, 1 },
        { { .host = "db1", .ssl_mode = MYS_SSL_DISABLED }, MYS_SSL_DISABLED, 1, 0 },
        { { .host = "db1", .ssl_mode = MYS_SSL_DISABLED, .allow_insecure = 1 }, MYS_SSL_DISABLED, 0, 1 },
        { { .host = "127.0.0.1.example.com", .ssl_mode = MYS_SSL_DISABLED }, MYS_SSL_DISABLED, 1, 0 },
        { { .host = "127.0.0.1", .ssl_mode = MYS_SSL_DISABLED }, MYS_SSL_DISABLED, 0, 0 },
        { { .host = "127.0.0.2" }, MYS_SSL_DISABLED, 0, 0 },
        { { .host = "::1", .ssl_mode = MYS_SSL_REQUIRED }, MYS_SSL_REQUIRED, 0, 0 },
        { { .host = "localhost" }, MYS_SSL_DISABLED, 0, 0 },
        { { .host = "db1", .socket = "/run/db1", .ssl_mode = MYS_SSL_DISABLED }, MYS_SSL_DISABLED, 0, 0 },
    };
    const wb_host host = { .struct_size = sizeof host, .fail = host_fail, .log = host_log };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        failures = warnings = 0;
        int result = mys_config_check_tls(&host, &rows[i].config, NULL);
        if (mys_config_ssl_mode(&rows[i].config) != rows[i].mode ||
            failures != rows[i].failures || warnings != rows[i].warnings ||
            result != (failures ? WB_FATAL : WB_OK))
            fail_msg("row %zu: mode %d, %d failures, %d warnings, result %d", i,
                     mys_config_ssl_mode(&rows[i].config), failures, warnings, result);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parameters_become_literals),
        cmocka_unit_test(test_literals),
        cmocka_unit_test(test_which_bytes_are_plain),
        cmocka_unit_test(test_which_neighbours_are_plain),
        cmocka_unit_test(test_strings_behind_parameters),
        cmocka_unit_test(test_question_marks_that_are_none),
        cmocka_unit_test(test_two_dashes),
        cmocka_unit_test(test_backslashes),
        cmocka_unit_test(test_one_statement_a_call),
        cmocka_unit_test(test_what_may_be_deferred),
        cmocka_unit_test(test_what_the_server_might_execute),
        cmocka_unit_test(test_parameters_that_do_not_fit),
        cmocka_unit_test(test_any_bytes),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_prefixes),
        cmocka_unit_test(test_lock_names),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_options_fit_their_struct),
        cmocka_unit_test(test_tls_is_not_weakened_in_silence),
    };
    return cmocka_run_group_tests_name("mysql units", tests, NULL, NULL);
}
