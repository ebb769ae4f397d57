/* SPDX-License-Identifier: Apache-2.0
 *
 * Bad days: connections that break at the worst moment, servers that do not answer,
 * transactions that get into each other's way. And, with the same proxy, the number of
 * round trips. */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "tests/integration/mysql_fixture.h"
#include "tests/integration/proxy.h"

static proxy *between;

static int set_up(void **state)
{
    (void)state;
    endpoint_install(&orders, "orders");
    observe("create table if not exists accounts (id int primary key, amount int) engine=InnoDB");
    observe("delete from accounts");
    observe("insert into accounts values (1, 0), (2, 0)");
    between = proxy_start(getenv("MYSQL_HOST"), atoi(getenv("MYSQL_PORT")));
    orders.config.port = proxy_port(between);
    endpoint_destroy(&orders);
    endpoint_create(&orders);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    at_crash_point = NULL;
    proxy_stop(between);
    endpoint_destroy(&orders);
    return 0;
}

/* Sessions of this test but the observer's. */
#define OTHERS                                                                                     \
    "from information_schema.processlist where db = database() and id <> connection_id()"

static void kill_others(void)
{
    char statement[64];
    long long id; /* one may end by itself meanwhile */
    while ((id = observe_number("select coalesce(max(id), 0) " OTHERS))) {
        (void)snprintf(statement, sizeof statement, "kill %lld", id);
        observe(statement);
        await_number("select count(*) " OTHERS " and command <> 'Killed'", 0);
    }
}

/* After any loss the session says so, and a new one works. */
static void assert_lost_then_reopens(wb_storage_session *s)
{
    wb_begin begin = { .struct_size = sizeof begin, .batch = 99 };
    const wb_mark mark = { .batch = 10 };
    size_t deleted;
    assert_int_equal(ops->begin(s, &begin, &failure), WB_NOT_CONNECTED);
    assert_int_equal(commit_batch(s, 99, "x", NULL), WB_NOT_CONNECTED);
    assert_int_equal(ops->rollback(s, &failure), WB_NOT_CONNECTED);
    assert_int_equal(ops->mark(s, &mark, 1, &failure), WB_NOT_CONNECTED);
    assert_int_equal(ops->clean_up(s, 1, 1, &deleted, &failure), WB_NOT_CONNECTED);
    assert_null(api->connection(s, 0));
    ops->close(s);
    s = open_session(&orders);
    begin_batch(s, 98);
    assert_int_equal(commit_batch(s, 98, "x", NULL), WB_OK);
    ops->close(s);
}

static void test_lost_while_idle(void **state)
{
    wb_storage_session *s = open_session(&orders);
    wb_begin begin = { .struct_size = sizeof begin, .batch = 10 };
    (void)state;
    kill_others();
    assert_int_equal(ops->begin(s, &begin, &failure), WB_NOT_CONNECTED);
    assert_lost_then_reopens(s);
}

static void test_lost_while_handlers_run(void **state)
{
    wb_storage_session *s = open_session(&orders);
    wb_claim claim = claim_of("a");
    (void)state;
    begin_claims(s, 10, &claim, 1);
    kill_others();
    wb_clock_pause(100 * WB_MILLISECOND, NULL); /* for the news to pass the proxy */
    assert_int_equal(commit_batch(s, 10, "x", NULL), WB_NOT_CONNECTED); /* known, not in doubt */
    assert_int_equal(observe_number("select count(*) from orders_dedup"), 0);
    assert_lost_then_reopens(s);
}

static void test_lost_in_a_handlers_statement(void **state)
{
    wb_storage_session *s = open_session(&orders);
    (void)state;
    begin_batch(s, 10);
    MYSQL *db = api->connection(s, 3);
    assert_int_not_equal(mysql_query(db, "kill connection_id()"), 0);
    assert_int_equal(ops->check(s, 3, &failure), WB_NOT_CONNECTED);
    assert_lost_then_reopens(s);
}

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

typedef struct commit_thread {
    wb_storage_session *session;
    uint64_t batch;
    int result;
    size_t item;
    pthread_t thread;
} commit_thread;

static void *run_commit(void *argument)
{
    commit_thread *c = argument;
    wb_error error;
    wb_commit commit = { .struct_size = sizeof commit, .batch = c->batch, .operations = "x",
                         .operations_size = 1 };
    c->result = ops->commit(c->session, &commit, &error);
    c->item = commit.failed_item;
    return NULL;
}

/* The server says that it was killed during a deferred statement: COMMIT never ran. */
static void test_ended_before_commit_is_known(void **state)
{
    commit_thread c = { .batch = 10 };
    (void)state;
    c.session = open_session(&orders);
    begin_batch(c.session, 10);
    assert_int_equal(api->defer(c.session, 3, "do sleep(60)", NULL), WB_OK);
    assert_int_equal(pthread_create(&c.thread, NULL, run_commit, &c), 0);
    await_number("select count(*) " OTHERS " and state = 'User sleep'", 1);
    kill_others();
    pthread_join(c.thread, NULL);
    /* unless the connection is closed before the word gets through: then nobody knows */
    assert_true(c.result == WB_NOT_CONNECTED || c.result == WB_IN_DOUBT);
    assert_int_equal(observe_number("select count(*) from orders_pending"), 0);
    assert_lost_then_reopens(c.session);
}

static void *run_flush(void *argument)
{
    commit_thread *c = argument;
    c->result = api->connection(c->session, 4) != NULL;
    return NULL;
}

static void test_lost_while_flushing_for_the_plain_connection(void **state)
{
    commit_thread c = { 0 };
    (void)state;
    wb_storage_session *s = c.session = open_session(&orders);
    begin_batch(s, 10);
    assert_int_equal(api->defer(s, 3, "do sleep(60)", NULL), WB_OK);
    assert_int_equal(pthread_create(&c.thread, NULL, run_flush, &c), 0);
    await_number("select count(*) " OTHERS " and state = 'User sleep'", 1);
    kill_others();
    pthread_join(c.thread, NULL);
    assert_false(c.result);
    assert_int_equal(ops->check(s, 4, &failure), WB_NOT_CONNECTED);
    assert_int_equal(commit_batch(s, 10, "x", NULL), WB_NOT_CONNECTED);
    ops->close(s);
}

/* ---- in doubt --------------------------------------------------------------------- */

static void lose_the_answer(const char *name)
{
    assert_string_equal(name, "commit_sent");
    await_number("select count(*) from orders_pending", 1); /* it has committed */
    proxy_cut(between);
}

static void test_commit_done_answer_lost(void **state)
{
    wb_storage_session *s = open_session(&orders);
    wb_claim claim = claim_of("a");
    (void)state;
    begin_claims(s, 10, &claim, 1);
    assert_int_equal(api->defer(s, 0, "update accounts set amount = amount + 1", NULL), WB_OK);
    proxy_to_client(between, PROXY_SWALLOW);
    at_crash_point = lose_the_answer;
    assert_int_equal(commit_batch(s, 10, "x", NULL), WB_IN_DOUBT);
    at_crash_point = NULL;
    ops->close(s);
    s = open_session(&orders);
    begin_claims(s, 11, &claim, 1);
    assert_int_equal(claim.duplicate_of, 10); /* the record decides: it was done */
    ops->close(s);
}

static void cut(const char *name)
{
    (void)name;
    proxy_cut(between);
}

static void test_commit_never_arrived(void **state)
{
    wb_storage_session *s = open_session(&orders);
    wb_claim claim = claim_of("a");
    (void)state;
    begin_claims(s, 10, &claim, 1);
    proxy_to_server(between, PROXY_SWALLOW);
    at_crash_point = cut;
    assert_int_equal(commit_batch(s, 10, "x", NULL), WB_IN_DOUBT);
    at_crash_point = NULL;
    ops->close(s);
    s = open_session(&orders);
    begin_claims(s, 11, &claim, 1);
    assert_int_equal(claim.duplicate_of, 0); /* the record decides: it was not */
    ops->close(s);
}

static void test_server_falls_silent(void **state)
{
    (void)state;
    endpoint_destroy(&orders);
    orders.config.reply_timeout = WB_SECOND;
    endpoint_create(&orders);
    wb_storage_session *s = open_session(&orders);
    begin_batch(s, 10);
    proxy_to_client(between, PROXY_SWALLOW);
    assert_int_equal(commit_batch(s, 10, "x", NULL), WB_IN_DOUBT);
    proxy_cut(between);
    ops->close(s);
    s = open_session(&orders);
    wb_begin begin = { .struct_size = sizeof begin, .batch = 11 };
    proxy_to_client(between, PROXY_SWALLOW);
    assert_int_equal(ops->begin(s, &begin, &failure), WB_NOT_CONNECTED);
    proxy_cut(between);
    ops->close(s);
}

static void test_mark_lost(void **state)
{
    wb_storage_session *s = open_session(&orders);
    const wb_mark mark = { .batch = 10 };
    (void)state;
    begin_batch(s, 10);
    assert_int_equal(commit_batch(s, 10, "x", NULL), WB_OK);
    proxy_to_client(between, PROXY_SWALLOW); /* or the answer may be there before the cut */
    at_crash_point = cut;
    assert_int_equal(ops->mark(s, &mark, 1, &failure), WB_NOT_CONNECTED);
    at_crash_point = NULL;
    assert_lost_then_reopens(s);
}

static char points[256];

static void note_point(const char *name)
{
    (void)strcat(strcat(points, name), " ");
}

static void test_crash_points(void **state)
{
    wb_storage_session *s = open_session(&orders);
    const wb_mark mark = { .batch = 10 };
    (void)state;
    points[0] = '\0';
    at_crash_point = note_point;
    begin_batch(s, 10);
    assert_int_equal(commit_batch(s, 10, "x", NULL), WB_OK);
    assert_int_equal(ops->mark(s, &mark, 1, &failure), WB_OK);
    assert_string_equal(points, "claim_sent commit_sent mark_sent ");
    ops->close(s);
}

/* ---- in each other's way ----------------------------------------------------------- */

static void test_deadlock_is_abort(void **state)
{
    commit_thread rivals[2] = { { .batch = 10 }, { .batch = 11 } };
    (void)state;
    endpoint_destroy(&orders);
    orders.config.port = atoi(getenv("MYSQL_PORT")); /* the proxy has one connection at a time */
    endpoint_create(&orders);
    for (int i = 0; i < 2; i++) {
        wb_storage_session *s = rivals[i].session = open_session(&orders);
        begin_batch(s, rivals[i].batch);
        assert_int_equal(mysql_query(api->connection(s, 0),
                                     i ? "update accounts set amount = 1 where id = 2"
                                       : "update accounts set amount = 1 where id = 1"),
                         0);
        assert_int_equal(api->defer(s, 1,
                                    i ? "update accounts set amount = 2 where id = 1"
                                      : "update accounts set amount = 2 where id = 2",
                                    NULL),
                         WB_OK);
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&rivals[i].thread, NULL, run_commit, &rivals[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(rivals[i].thread, NULL);
    int loser = rivals[0].result == WB_OK;
    assert_int_equal(rivals[!loser].result, WB_OK);
    assert_int_equal(rivals[loser].result, WB_ABORT);
    for (int i = 0; i < 2; i++)
        ops->close(rivals[i].session);
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
    endpoint_destroy(&orders);
    orders.config.port = atoi(getenv("MYSQL_PORT"));
    endpoint_create(&orders);
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

static void test_same_batch_number_is_abort(void **state)
{
    wb_storage_session *s = open_session(&orders);
    (void)state;
    begin_batch(s, 10);
    assert_int_equal(commit_batch(s, 10, "x", NULL), WB_OK);
    begin_batch(s, 10);
    assert_int_equal(commit_batch(s, 10, "y", NULL), WB_ABORT);
    ops->close(s);
}

static void test_tables_vanish(void **state)
{
    wb_storage_session *s = open_session(&orders);
    wb_claim claim = claim_of("a");
    wb_begin begin = { .struct_size = sizeof begin, .batch = 10, .claims = &claim,
                       .claim_count = 1 };
    (void)state;
    observe("drop table orders_dedup");
    assert_int_equal(ops->begin(s, &begin, &failure), WB_FATAL);
    assert_int_equal(failure.cause, WB_CAUSE_MISSING);
    ops->close(s);
}

/* ---- round trips -------------------------------------------------------------------- */

#define DELAY 20 /* milliseconds, each way */

static double trips(int64_t start)
{
    return (double)(wb_clock_monotonic() - start) / (2 * DELAY * (double)WB_MILLISECOND);
}

static double time_a_batch(wb_storage_session *s, uint64_t batch)
{
    char ids[3][24];
    wb_claim claims[3];
    const wb_mark marks[] = { { .batch = batch - 1 } };
    wb_begin begin = { .struct_size = sizeof begin, .marks = marks, .mark_count = 1, .batch = batch,
                       .claims = claims, .claim_count = 3 };
    for (int i = 0; i < 3; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "%d of %d", i, (int)batch);
        claims[i] = claim_of(ids[i]);
    }
    int64_t start = wb_clock_monotonic();
    assert_int_equal(ops->begin(s, &begin, &failure), WB_OK);
    for (size_t i = 0; i < 30; i++) { /* each answer comes by itself */
        assert_int_equal(api->defer(s, i, "update accounts set amount = amount + 1", NULL), WB_OK);
        assert_int_equal(ops->check(s, i, &failure), WB_OK);
    }
    assert_int_equal(commit_batch(s, batch, "operations", NULL), WB_OK);
    return trips(start);
}

/* Timed, because what counts is waiting; the best of some, because others use the
 * machine too. */
static void test_two_round_trips_a_batch(void **state)
{
    wb_storage_session *s = open_session(&orders);
    double best = 1e9;
    (void)state;
    proxy_set_delay(between, DELAY);
    for (uint64_t batch = 10; batch < 20 && best > 2.5; batch++) {
        double took = time_a_batch(s, batch);
        best = took < best ? took : best;
    }
    print_message("# marks, claims, 30 deferred, operations, commit: %.2f round trips\n", best);
    assert_true(best >= 2 && best < 2.9);
    ops->close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
        TEST(test_lost_while_idle),
        TEST(test_lost_while_handlers_run),
        TEST(test_lost_in_a_handlers_statement),
        TEST(test_lost_and_overlooked),
        TEST(test_ended_before_commit_is_known),
        TEST(test_lost_while_flushing_for_the_plain_connection),
        TEST(test_commit_done_answer_lost),
        TEST(test_commit_never_arrived),
        TEST(test_server_falls_silent),
        TEST(test_mark_lost),
        TEST(test_crash_points),
        TEST(test_deadlock_is_abort),
        TEST(test_deadlock_of_a_handler_is_abort),
        TEST(test_deadlock_overlooked_is_found_out),
        TEST(test_lock_wait_of_a_handler_is_the_servers),
        TEST(test_same_batch_number_is_abort),
        TEST(test_tables_vanish),
        TEST(test_two_round_trips_a_batch),
    };
    return cmocka_run_group_tests_name("mysql failures", tests, load_plugin, NULL);
}
