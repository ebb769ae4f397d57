/* SPDX-License-Identifier: Apache-2.0
 *
 * Bad days that only MySQL has. */
#include "config.h"

#include "core/base/clock.h"
#include "tests/integration/mysql_fixture.h"

/* A handler that does not care: the connection's end is seen all the same. */
static void test_lost_and_overlooked(void **state)
{
    wb_storage_session *s = open_session(&orders);
    (void)state;
    begin_batch(s, 10);
    MYSQL *db = api->connection(s, 3);
    (void)mysql_query(db, "kill connection_id()");
    (void)mysql_query(db, "select 1");
    assert_int_equal(commit_batch(s, 10, "x", NULL), WB_NOT_CONNECTED);
    ops->close(s);
}

typedef struct deadlock {
    wb_storage_session *sessions[2];
    MYSQL *handles[2];
    pthread_t thread;
    int victim; /* errno of the thread's statement */
} deadlock;

static void *wait_for_the_first(void *argument)
{
    deadlock *d = argument;
    int failed = mysql_query(d->handles[1], "update accounts set amount = 2 where id = 1");
    d->victim = failed ? (int)mysql_errno(d->handles[1]) : 0;
    return NULL;
}

/* A handler's statement is the victim. The other transaction is the heavier one. */
static void make_deadlock(deadlock *d)
{
    go_straight();
    for (int i = 0; i < 2; i++) {
        d->sessions[i] = open_session(&orders);
        begin_batch(d->sessions[i], 10 + (uint64_t)i);
        d->handles[i] = api->connection(d->sessions[i], 2);
    }
    for (int i = 0; i < 50; i++)
        assert_int_equal(mysql_query(d->handles[0], "insert into accounts select max(id) + 1, 0 "
                                                    "from accounts"),
                         0);
    assert_int_equal(mysql_query(d->handles[0], "update accounts set amount = 1 where id = 1"), 0);
    assert_int_equal(mysql_query(d->handles[1], "update accounts set amount = 1 where id = 2"), 0);
    assert_int_equal(pthread_create(&d->thread, NULL, wait_for_the_first, d), 0);
    await_waiting(1);
    assert_int_equal(mysql_query(d->handles[0], "update accounts set amount = 2 where id = 2"), 0);
    pthread_join(d->thread, NULL);
    assert_int_equal(d->victim, 1213);
}

static void end_deadlock(deadlock *d)
{
    assert_int_equal(ops->check(d->sessions[0], 2, &failure), WB_OK);
    assert_int_equal(commit_batch(d->sessions[0], 10, "x", NULL), WB_OK);
    assert_int_equal(observe_number("select amount from accounts where id = 1"), 1);
    assert_int_equal(observe_number("select count(*) from accounts where amount = 7"), 0);
    for (int i = 0; i < 2; i++)
        ops->close(d->sessions[i]);
}

static void test_deadlock_of_a_handler_is_abort(void **state)
{
    deadlock d;
    (void)state;
    make_deadlock(&d);
    assert_int_equal(ops->check(d.sessions[1], 2, &failure), WB_ABORT);
    assert_int_equal(ops->rollback(d.sessions[1], &failure), WB_OK);
    begin_batch(d.sessions[1], 12);
    end_deadlock(&d);
}

/* It goes on after the error, in a transaction that is not the framework's: what it writes
 * there is rolled back, and the batch is run again. */
static void test_deadlock_overlooked_is_found_out(void **state)
{
    for (int begins = 0; begins < 2; begins++) {
        deadlock d;
        (void)state;
        observe("delete from accounts where id > 2");
        observe("delete from orders_pending");
        make_deadlock(&d);
        /* with a transaction of its own it says more than it knows */
        if (begins)
            assert_int_equal(mysql_query(d.handles[1], "start transaction"), 0);
        assert_int_equal(mysql_query(d.handles[1], "insert into accounts values (99, 7)"), 0);
        int result = ops->check(d.sessions[1], 2, &failure);
        if (!begins)
            assert_int_equal(result, WB_ABORT);
        assert_int_equal(commit_batch(d.sessions[1], 11, "x", NULL), result);
        end_deadlock(&d);
    }
}

static void test_lock_wait_of_a_handler_is_the_servers(void **state)
{
    (void)state;
    endpoint_destroy(&orders);
    orders.config.lock_timeout = WB_SECOND;
    endpoint_create(&orders);
    wb_storage_session *s = open_session(&orders);
    size_t item = 0;
    observe("begin");
    observe("select * from accounts where id = 1 for update");
    begin_batch(s, 10);
    MYSQL *db = api->connection(s, 4);
    assert_int_equal(mysql_query(db, "update accounts set amount = 7 where id = 2"), 0);
    assert_int_equal(mysql_query(db, "update accounts set amount = 7 where id = 1"), 1);
    /* what stood before is half of it */
    assert_int_equal(ops->check(s, 4, &failure), WB_RETRY);
    assert_int_equal(failure.cause, WB_CAUSE_SERVER);
    assert_int_equal(ops->rollback(s, &failure), WB_OK);
    begin_batch(s, 11);
    assert_int_equal(api->defer(s, 6, "update accounts set amount = 7", NULL), WB_OK);
    assert_int_equal(commit_batch(s, 11, "x", &item), WB_RETRY);
    assert_int_equal(failure.cause, WB_CAUSE_SERVER);
    assert_int_equal(item, SIZE_MAX);
    observe("commit");
    assert_int_equal(observe_number("select count(*) from accounts where amount = 7"), 0);
    ops->close(s);
}

/* Nobody asked check(), and its memory is gone. */
static void test_closed_connection_is_not_looked_at(void **state)
{
    (void)state;
    for (int rolls_back = 0; rolls_back < 2; rolls_back++) {
        wb_storage_session *s = open_session(&orders);
        begin_batch(s, 10);
        mysql_close(api->connection(s, 4));
        if (rolls_back)
            assert_int_equal(ops->rollback(s, &failure), WB_NOT_CONNECTED);
        ops->close(s);
    }
}

const struct CMUnitTest own_tests[] = {
    TEST_PROXIED(test_lost_and_overlooked),
    TEST_PROXIED(test_deadlock_of_a_handler_is_abort),
    TEST_PROXIED(test_deadlock_overlooked_is_found_out),
    TEST_PROXIED(test_lock_wait_of_a_handler_is_the_servers),
    TEST_PROXIED(test_closed_connection_is_not_looked_at),
};
const size_t own_count = sizeof own_tests / sizeof own_tests[0];
