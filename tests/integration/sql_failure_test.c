/* SPDX-License-Identifier: Apache-2.0
 *
 * Bad days: connections that break at the worst moment, servers that do not answer,
 * transactions that get into each other's way. And, with the same proxy, the number of
 * round trips. */
#include "config.h"

#include <pthread.h>

#include "core/base/clock.h"
#include "tests/integration/sql_server.h"

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
    wb_claim claim = claim_of("a");
    wb_begin begin = { .struct_size = sizeof begin, .batch = 10, .claims = &claim, .claim_count = 1 };
    (void)state;
    end_sessions();
    assert_int_equal(ops->begin(s, &begin, &failure), WB_NOT_CONNECTED);
    assert_lost_then_reopens(s);
}

/* Even where a begin that claims nothing asks nothing: another connection may take this one's place now. */
static void test_lost_before_a_late_begin(void **state)
{
    wb_storage_session *s = open_session(&orders);
    wb_begin begin = { .struct_size = sizeof begin, .batch = 10 };
    (void)state;
    end_sessions();
    proxy_await_end(between);
    assert_int_equal(ops->begin(s, &begin, &failure), WB_NOT_CONNECTED);
    assert_lost_then_reopens(s);
}

static void test_lost_behind_a_late_begin(void **state)
{
    wb_storage_session *s = open_session(&orders);
    (void)state;
    begin_batch(s, 10);
    assert_int_equal(api->defer(s, 0, "update accounts set amount = amount + 1", NULL), WB_OK);
    end_sessions();
    proxy_await_end(between);
    assert_int_equal(commit_batch(s, 10, "x", NULL), WB_NOT_CONNECTED); /* known, not in doubt */
    assert_lost_then_reopens(s);
}

/* Nothing was asked, and nothing is left. */
static void test_late_begin_without_a_commit(void **state)
{
    wb_storage_session *s = open_session(&orders);
    (void)state;
    begin_batch(s, 10);
    assert_int_equal(ops->rollback(s, &failure), WB_OK);
    begin_batch(s, 10);
    assert_int_equal(api->defer(s, 0, "update accounts set nothing = 1", NULL), WB_OK);
    assert_int_equal(commit_batch(s, 10, "x", NULL), WB_RETRY);
    begin_batch(s, 10);
    assert_int_equal(query_plain(s, 3, "delete from accounts"), 0);
    assert_int_equal(ops->rollback(s, &failure), WB_OK);
    assert_int_not_equal(observe_number("select count(*) from accounts"), 0);
    begin_batch(s, 10);
    assert_int_equal(commit_batch(s, 10, "x", NULL), WB_OK);
    ops->close(s);
}

static void test_lost_while_handlers_run(void **state)
{
    wb_storage_session *s = open_session(&orders);
    wb_claim claim = claim_of("a");
    (void)state;
    begin_claims(s, 10, &claim, 1);
    end_sessions();
    proxy_await_end(between);
    assert_int_equal(commit_batch(s, 10, "x", NULL), WB_NOT_CONNECTED); /* known, not in doubt */
    assert_int_equal(observe_number("select count(*) from orders_dedup"), 0);
    assert_lost_then_reopens(s);
}

static void test_lost_in_a_handlers_statement(void **state)
{
    wb_storage_session *s = open_session(&orders);
    (void)state;
    begin_batch(s, 10);
    assert_int_not_equal(query_plain(s, 3, words.suicide), 0);
    assert_int_equal(ops->check(s, 3, &failure), WB_NOT_CONNECTED);
    assert_lost_then_reopens(s);
}

/* The server says that it ended the session during a deferred statement: COMMIT never ran. */
static void test_ended_before_commit_is_known(void **state)
{
    commit_thread c = { .session = open_session(&orders), .batch = 10 };
    (void)state;
    begin_batch(c.session, 10);
    assert_int_equal(api->defer(c.session, 3, words.sleep, NULL), WB_OK);
    start_commit(&c);
    await_sleeper();
    end_sessions();
    pthread_join(c.thread, NULL);
    /* unless the connection is closed before the word gets through: then nobody knows */
    if (words.tells_its_end || c.result != WB_IN_DOUBT)
        assert_int_equal(c.result, WB_NOT_CONNECTED);
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
    wb_storage_session *s = open_session(&orders);
    commit_thread c = { .session = s };
    (void)state;
    begin_batch(s, 10);
    assert_int_equal(api->defer(s, 3, words.sleep, NULL), WB_OK);
    assert_int_equal(pthread_create(&c.thread, NULL, run_flush, &c), 0);
    await_sleeper();
    end_sessions();
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
    assert_non_null(strstr(failure.text, words.silence));
    proxy_cut(between);
    ops->close(s);
    s = open_session(&orders);
    wb_claim claim = claim_of("a");
    wb_begin begin = { .struct_size = sizeof begin, .batch = 11, .claims = &claim, .claim_count = 1 };
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
    wb_claim claim = claim_of("a");
    (void)state;
    points[0] = '\0';
    at_crash_point = note_point;
    begin_claims(s, 10, &claim, 1);
    assert_int_equal(commit_batch(s, 10, "x", NULL), WB_OK);
    assert_int_equal(ops->mark(s, &mark, 1, &failure), WB_OK);
    claim.duplicate_of = 10;
    assert_int_equal(ops->forget(s, &claim, 1, &failure), WB_OK);
    assert_int_equal(ops->remember(s, &claim, 1, &failure), WB_OK);
    assert_string_equal(points, "claim_sent commit_sent mark_sent forget_sent remember_sent ");
    ops->close(s);
}

/* ---- in each other's way ----------------------------------------------------------- */

static void test_deadlock_is_abort(void **state)
{
    static const char *const updates[2][2] = { { "update accounts set amount = 1 where id = 1",
                                                 "update accounts set amount = 2 where id = 2" },
                                               { "update accounts set amount = 1 where id = 2",
                                                 "update accounts set amount = 2 where id = 1" } };
    commit_thread rivals[2] = { { .batch = 10 }, { .batch = 11 } };
    (void)state;
    go_straight();
    for (int i = 0; i < 2; i++) {
        wb_storage_session *s = rivals[i].session = open_session(&orders);
        begin_batch(s, rivals[i].batch);
        assert_int_equal(query_plain(s, 0, updates[i][0]), 0);
        assert_int_equal(api->defer(s, 1, updates[i][1], NULL), WB_OK);
    }
    for (int i = 0; i < 2; i++)
        start_commit(&rivals[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(rivals[i].thread, NULL);
    int loser = rivals[0].result == WB_OK;
    assert_int_equal(rivals[!loser].result, WB_OK);
    assert_int_equal(rivals[loser].result, WB_ABORT);
    for (int i = 0; i < 2; i++)
        ops->close(rivals[i].session);
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

static void make_claims(uint64_t batch, char ids[3][24], wb_claim claims[3])
{
    for (int i = 0; i < 3; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "%d of %d", i, (int)batch);
        claims[i] = claim_of(ids[i]);
    }
}

static double time_a_batch(wb_storage_session *s, uint64_t batch)
{
    char ids[3][24], old_ids[3][24];
    wb_claim claims[3], old[3];
    const wb_mark marks[] = { { .batch = batch - 1 } };
    wb_begin begin = { .struct_size = sizeof begin, .marks = marks, .mark_count = 1, .batch = batch,
                       .claims = claims, .claim_count = 3, .forgotten = old, .forgotten_count = 3 };
    make_claims(batch, ids, claims);
    make_claims(batch - 1, old_ids, old);
    for (int i = 0; i < 3; i++)
        old[i].duplicate_of = i ? batch - 1 : batch - 2; /* two statements */
    int64_t start = wb_clock_monotonic();
    assert_int_equal(ops->begin(s, &begin, &failure), WB_OK);
    for (size_t i = 0; i < words.deferred; i++) {
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
    for (uint64_t batch = 10; batch < 60 && best > 2.5; batch++) {
        double took = time_a_batch(s, batch);
        best = took < best ? took : best;
    }
    print_message("# marks, forgotten, claims, %zu deferred, operations, commit: %.2f round trips\n",
                  words.deferred, best);
    assert_true(best >= 2 && best < 2.9);
    ops->close(s);
}

/* What a session asks for: nothing when it begins, all with its commit. */
static double time_a_session(wb_storage_session *s, uint64_t batch)
{
    char id[24];
    (void)snprintf(id, sizeof id, "session %d", (int)batch);
    const wb_claim claim = claim_of(id);
    wb_commit commit = { .struct_size = sizeof commit, .batch = batch, .operations = "x", .operations_size = 1,
                         .claims = &claim, .claim_count = 1 };
    int64_t start = wb_clock_monotonic();
    begin_batch(s, batch);
    assert_int_equal(api->defer(s, 0, "update accounts set amount = amount + 1", NULL), WB_OK);
    assert_int_equal(ops->check(s, 0, &failure), WB_OK);
    assert_int_equal(ops->commit(s, &commit, &failure), WB_OK);
    return trips(start);
}

static void test_round_trips_of_a_session(void **state)
{
    wb_storage_session *s = open_session(&orders);
    double best = 1e9;
    (void)state;
    proxy_set_delay(between, DELAY);
    for (uint64_t batch = 10; batch < 20 && best > words.session_trips + 0.5; batch++) {
        double took = time_a_session(s, batch);
        best = took < best ? took : best;
    }
    print_message("# a session, one statement deferred: %.2f round trips\n", best);
    assert_true(best >= words.session_trips && best < words.session_trips + 0.9);
    ops->close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_PROXIED(test_lost_while_idle),
        TEST_PROXIED(test_lost_before_a_late_begin),
        TEST_PROXIED(test_lost_behind_a_late_begin),
        TEST_PROXIED(test_late_begin_without_a_commit),
        TEST_PROXIED(test_lost_while_handlers_run),
        TEST_PROXIED(test_lost_in_a_handlers_statement),
        TEST_PROXIED(test_ended_before_commit_is_known),
        TEST_PROXIED(test_lost_while_flushing_for_the_plain_connection),
        TEST_PROXIED(test_commit_done_answer_lost),
        TEST_PROXIED(test_commit_never_arrived),
        TEST_PROXIED(test_server_falls_silent),
        TEST_PROXIED(test_mark_lost),
        TEST_PROXIED(test_crash_points),
        TEST_PROXIED(test_deadlock_is_abort),
        TEST_PROXIED(test_same_batch_number_is_abort),
        TEST_PROXIED(test_tables_vanish),
        TEST_PROXIED(test_two_round_trips_a_batch),
        TEST_PROXIED(test_round_trips_of_a_session),
    };
    return run_sql_tests("failures", tests, sizeof tests / sizeof tests[0]);
}
