/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose fault an error is, wherever it is met: in a statement of a handler's own, deferred, or
 * sent ahead for the plain connection. */
#include "config.h"

#include "core/base/clock.h"
#include "tests/integration/mysql_fixture.h"


typedef struct fault {
    unsigned code;
    int result, cause;
    const char *text; /* NULL: any */
} fault;

static const fault faults[] = {
    { 1062, WB_RETRY, WB_CAUSE_OTHER, NULL },  { 1146, WB_RETRY, WB_CAUSE_OTHER, NULL },
    { 1264, WB_RETRY, WB_CAUSE_OTHER, NULL },  { 1452, WB_RETRY, WB_CAUSE_OTHER, NULL },
    { 1644, WB_RETRY, WB_CAUSE_OTHER, NULL },  { 1213, WB_ABORT, WB_CAUSE_OTHER, NULL },
    { 3101, WB_ABORT, WB_CAUSE_OTHER, NULL },  { 3, WB_RETRY, WB_CAUSE_SERVER, NULL },
    { 1021, WB_RETRY, WB_CAUSE_SERVER, NULL }, { 1026, WB_RETRY, WB_CAUSE_SERVER, NULL },
    { 1030, WB_RETRY, WB_CAUSE_SERVER, NULL }, { 1037, WB_RETRY, WB_CAUSE_SERVER, NULL },
    { 1038, WB_RETRY, WB_CAUSE_SERVER, NULL }, { 1041, WB_RETRY, WB_CAUSE_SERVER, NULL },
    { 1114, WB_RETRY, WB_CAUSE_SERVER, NULL }, { 1135, WB_RETRY, WB_CAUSE_SERVER, NULL },
    { 1203, WB_RETRY, WB_CAUSE_SERVER, NULL }, { 1205, WB_RETRY, WB_CAUSE_SERVER, NULL },
    { 1317, WB_RETRY, WB_CAUSE_SERVER, NULL },
    /* of one number the text says whose it is */
    { 1290, WB_RETRY, WB_CAUSE_SERVER, "the MariaDB server is running with --read-only" },
    { 1290, WB_RETRY, WB_CAUSE_SERVER, "running with the --super-read-only option" },
    { 1290, WB_RETRY, WB_CAUSE_OTHER, "running with the --secure-file-priv option" },
    { 1598, WB_RETRY, WB_CAUSE_SERVER, NULL }, { 1969, WB_RETRY, WB_CAUSE_SERVER, NULL },
    /* numbers of the client library, which a SIGNAL may use */
    { 2006, WB_RETRY, WB_CAUSE_OTHER, NULL },  { 2013, WB_RETRY, WB_CAUSE_OTHER, NULL },
    { 2014, WB_RETRY, WB_CAUSE_OTHER, NULL },  { 2027, WB_RETRY, WB_CAUSE_OTHER, NULL },
    { 2055, WB_RETRY, WB_CAUSE_OTHER, NULL },  { 5014, WB_RETRY, WB_CAUSE_OTHER, NULL },
};
#define FAULT_COUNT (sizeof faults / sizeof faults[0])

static int set_up(void **state)
{
    (void)state;
    observe("set innodb_lock_wait_timeout = 5, lock_wait_timeout = 5"); /* for what failed before */
    endpoint_install(&orders, "orders");
    observe("create or replace table asked (code int, words varchar(80)) engine = InnoDB");
    observe("create trigger asked before insert on asked for each row begin "
            "declare code int default new.code; declare words varchar(80) default new.words; "
            "signal sqlstate 'HY000' set mysql_errno = code, message_text = words; end");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    endpoint_destroy(&orders);
    return 0;
}

static void assert_fault(const char *where, const fault *wanted, int result)
{
    if (result != wanted->result || failure.cause != wanted->cause ||
        failure.native_code != wanted->code)
        fail_msg("%u at %s: class %d, cause %d: %s", wanted->code, where, result, failure.cause,
                 failure.text);
}

/* Whose is the failure of item 3's statement? The server's is nobody's. */
static size_t item_of(const fault *f)
{
    return f->cause == WB_CAUSE_SERVER ? SIZE_MAX : 3;
}

static const char *ask(const fault *f)
{
    static char text[160];
    (void)snprintf(text, sizeof text, "insert into asked values (%u, '%s')", f->code,
                   f->text ? f->text : "as asked");
    return text;
}

/* Of an error of its own message the handler decides: the transaction goes on in MySQL. */
static void test_handlers_statement(void **state)
{
    wb_storage_session *s = open_session(&orders);
    (void)state;
    for (const fault *f = faults; f < faults + FAULT_COUNT; f++) {
        const int is_handlers = f->result == WB_RETRY && f->cause == WB_CAUSE_OTHER;
        begin_batch(s, 10);
        assert_int_not_equal(mysql_query(api->connection(s, 3), ask(f)), 0);
        const int result = ops->check(s, 3, &failure);
        if (is_handlers)
            assert_int_equal(result, WB_OK);
        else
            assert_fault("check", f, result);
        assert_int_equal(ops->rollback(s, &failure), WB_OK);
    }
    begin_batch(s, 11); /* the session lives */
    assert_int_equal(commit_batch(s, 11, "x", NULL), WB_OK);
    ops->close(s);
}

/* A prepared statement's error is seen until the statement is closed. */
static void test_prepared_statement(void **state)
{
    static const char text[] = "insert into asked values (1114, 'full')";
    wb_storage_session *s = open_session(&orders);
    (void)state;
    begin_batch(s, 10);
    MYSQL_STMT *statement = mysql_stmt_init(api->connection(s, 3));
    assert_int_equal(mysql_stmt_prepare(statement, text, sizeof text - 1), 0);
    assert_int_not_equal(mysql_stmt_execute(statement), 0);
    assert_int_equal(ops->check(s, 3, &failure), WB_RETRY);
    assert_int_equal(failure.cause, WB_CAUSE_SERVER);
    assert_int_equal(ops->rollback(s, &failure), WB_OK);
    begin_batch(s, 11);
    assert_non_null(api->connection(s, 3));
    assert_int_not_equal(mysql_stmt_execute(statement), 0);
    mysql_stmt_close(statement);
    assert_int_equal(ops->check(s, 3, &failure), WB_OK); /* known, see the README */
    ops->close(s);
}

static void test_deferred_statement(void **state)
{
    wb_storage_session *s = open_session(&orders);
    wb_claim claim = claim_of("a");
    size_t item;
    (void)state;
    for (const fault *f = faults; f < faults + FAULT_COUNT; f++) {
        begin_claims(s, 10, &claim, 1);
        assert_int_equal(claim.duplicate_of, 0);
        assert_int_equal(api->defer(s, 2, "do 1", NULL), WB_OK);
        assert_int_equal(api->defer(s, 3, ask(f), NULL), WB_OK);
        assert_fault("commit", f, commit_batch(s, 10, "x", &item));
        assert_int_equal(item, item_of(f));

        begin_batch(s, 11);
        assert_int_equal(api->defer(s, 3, ask(f), NULL), WB_OK);
        assert_null(api->connection(s, 4));
        assert_fault("check of its item", f, ops->check(s, 3, &failure));
        const int of_another = ops->check(s, 4, &failure);
        assert_int_equal(of_another, item_of(f) == 3 ? WB_ABORT : WB_RETRY);
        assert_int_equal(ops->rollback(s, &failure), WB_OK);
    }
    assert_int_equal(observe_number("select count(*) from orders_pending"), 0);
    ops->close(s);
}

/* What somebody's trigger does to our own tables is no message's doing. */
static void test_own_statement(void **state)
{
    wb_storage_session *s = open_session(&orders);
    wb_claim claim = claim_of("a");
    wb_begin begin = { .struct_size = sizeof begin, .batch = 10, .claims = &claim,
                       .claim_count = 1 };
    const wb_mark mark = { .batch = 9 };
    (void)state;
    observe("insert into orders_pending values (9, 'x')");
    observe("create trigger full before insert on orders_dedup for each row "
            "signal sqlstate 'HY000' set mysql_errno = 1114");
    observe("create trigger gone before delete on orders_pending for each row "
            "signal sqlstate 'HY000' set mysql_errno = 1644");
    const int begun = ops->begin(s, &begin, &failure);
    const int begun_cause = failure.cause;
    const int marked = ops->mark(s, &mark, 1, &failure);
    observe("drop trigger full");
    observe("drop trigger gone");
    assert_int_equal(begun, WB_RETRY);
    assert_int_equal(begun_cause, WB_CAUSE_SERVER);
    assert_int_equal(marked, WB_RETRY);
    assert_int_equal(failure.cause, WB_CAUSE_SERVER);
    begin_claims(s, 10, &claim, 1);
    assert_int_equal(claim.duplicate_of, 0);
    assert_int_equal(commit_batch(s, 10, "x", NULL), WB_OK);
    ops->close(s);
}

/* A duplicate that a trigger changes counts two, so that two would pass for one that is new. */
static void test_too_many_new_records(void **state)
{
    wb_storage_session *s = open_session(&orders);
    wb_claim claim = claim_of("a");
    wb_begin begin = { .struct_size = sizeof begin, .batch = 10, .claims = &claim,
                       .claim_count = 1 };
    (void)state;
    observe("insert into orders_dedup values ('a', 5)");
    observe("create trigger twice before update on orders_dedup for each row "
            "set new.batch = new.batch + 1");
    const int begun = ops->begin(s, &begin, &failure);
    observe("drop trigger twice");
    assert_int_equal(begun, WB_FATAL);
    assert_int_equal(failure.cause, WB_CAUSE_MISMATCH);
    assert_non_null(strstr(failure.text, "trigger"));
    begin_claims(s, 11, &claim, 1);
    assert_int_equal(claim.duplicate_of, 5);
    ops->close(s);
}

/* Overlooked, the handler's message would be committed without its statement. */
static void test_no_memory_for_a_deferred_statement(void **state)
{
    static const int binary = WB_MYSQL_TYPE_BINARY;
    static const size_t length = SIZE_MAX / 4;
    static const char *const values[] = { "'" }; /* not read further: there is no place for it */
    const wb_mysql_params params = { 1, &binary, &length, values };
    wb_storage_session *s = open_session(&orders);
    size_t item;
    (void)state;
    begin_batch(s, 10);
    assert_int_equal(api->defer(s, 3, "select ?", &params), WB_RETRY);
    assert_null(api->connection(s, 3));
    assert_int_equal(ops->check(s, 3, &failure), WB_RETRY);
    assert_int_equal(failure.cause, WB_CAUSE_SERVER);
    assert_int_equal(commit_batch(s, 10, "x", &item), WB_RETRY);
    assert_int_equal(failure.cause, WB_CAUSE_SERVER);
    assert_int_equal(item, SIZE_MAX);
    begin_batch(s, 11);
    assert_int_equal(commit_batch(s, 11, "x", NULL), WB_OK);
    ops->close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
        TEST(test_handlers_statement),
        TEST(test_prepared_statement),
        TEST(test_deferred_statement),
        TEST(test_own_statement),
        TEST(test_too_many_new_records),
        TEST(test_no_memory_for_a_deferred_statement),
    };
    return cmocka_run_group_tests_name("mysql faults", tests, load_plugin, NULL);
}
