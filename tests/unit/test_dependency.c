/* SPDX-License-Identifier: Apache-2.0
 *
 * A server that is away: who may ask for it when, and what is told. Without a clock.
 */
#include <config.h>

#include "tests/unit/conf_support.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>

#include "core/pipeline/dependency.h"
#include "core/pipeline/worker.h"

#define WAITERS 4
#define START (1000 * WB_SECOND)

static wb_dependency broker;
static wb_waiter waiters[WAITERS];
static const wb_error gone = { WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, 0, "nobody listens" };
static const wb_error dropped = { WB_NOT_CONNECTED, WB_CAUSE_MISSING, 0, "no such queue" };

static int set_up(void **state)
{
    (void)state;
    wb_dependency_init(&broker, WB_DEPENDENCY_BROKER);
    for (size_t i = 0; i < WAITERS; i++)
        waiters[i] = (wb_waiter){ .dependency = &broker };
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    wb_dependency_free(&broker);
    return 0;
}

/* ---- turns ---------------------------------------------------------------------------- */

static void test_all_may_ask(void **state)
{
    (void)state;
    for (size_t i = 0; i < WAITERS; i++)
        assert_int_equal(wb_waiter_turn(&waiters[i], START), 0);
    for (size_t i = 0; i < WAITERS; i++)
        wb_waiter_met(&waiters[i]);
    assert_false(wb_dependency_is_away(&broker));
}

/* All lost it in the same moment: that is one failure, and the pause is the first one. */
static void test_one_asks_for_all(void **state)
{
    (void)state;
    for (size_t i = 0; i < WAITERS; i++)
        wb_waiter_missed(&waiters[i], &gone, START);
    assert_true(wb_dependency_is_away(&broker));
    assert_int_equal(broker.pause, WB_DEPENDENCY_PAUSE_MIN);
    for (size_t i = 0; i < WAITERS; i++)
        assert_true(wb_waiter_turn(&waiters[i], START) > 0);

    int64_t now = START + WB_DEPENDENCY_PAUSE_MIN;
    assert_int_equal(wb_waiter_turn(&waiters[2], now), 0);
    for (size_t i = 0; i < WAITERS; i++)
        if (i != 2)
            assert_true(wb_waiter_turn(&waiters[i], now + WB_SECOND) > 0); /* however long that takes */
    wb_waiter_met(&waiters[2]);
    assert_true(wb_dependency_is_away(&broker)); /* for the others, until they have it, too */
    for (size_t i = 0; i < WAITERS; i++)
        assert_int_equal(wb_waiter_turn(&waiters[i], now), 0);
    for (size_t i = 0; i < WAITERS; i++)
        wb_waiter_met(&waiters[i]);
    assert_false(wb_dependency_is_away(&broker));
    assert_int_equal(broker.waiting, 0);
}

/* Each pause is twice the one before, less up to a quarter, and never above the longest. */
static void test_pauses_grow(void **state)
{
    int64_t now = START, expected = WB_DEPENDENCY_PAUSE_MIN;
    (void)state;
    for (int tries = 0; tries < 20; tries++) {
        wb_waiter_missed(&waiters[tries % WAITERS], &gone, now);
        assert_in_range(broker.due - now, expected - expected / 4, expected);
        expected = 2 * expected < WB_DEPENDENCY_PAUSE_MAX ? 2 * expected : WB_DEPENDENCY_PAUSE_MAX;
        now = broker.due;
        assert_int_equal(wb_waiter_turn(&waiters[(tries + 1) % WAITERS], now), 0);
    }
    for (size_t i = 0; i < WAITERS; i++)
        wb_waiter_met(&waiters[i]);
    wb_waiter_missed(&waiters[0], &gone, now); /* a new outage begins with the first pause */
    assert_int_equal(broker.pause, WB_DEPENDENCY_PAUSE_MIN);
}

/* A server that takes one connection and no more: the others do not hammer it. */
static void test_only_some_are_served(void **state)
{
    (void)state;
    for (size_t i = 0; i < WAITERS; i++)
        wb_waiter_missed(&waiters[i], &gone, START);
    assert_int_equal(wb_waiter_turn(&waiters[0], broker.due), 0);
    int64_t pause = broker.pause;
    wb_waiter_met(&waiters[0]);
    wb_waiter_missed(&waiters[1], &gone, START + WB_SECOND);
    assert_int_equal(broker.pause, 2 * pause);
    assert_true(wb_waiter_turn(&waiters[2], START + WB_SECOND) > 0);
    assert_int_equal(broker.waiting, WAITERS - 1);
}

/* The one who asks ends instead (its endpoint stops): the next one asks. */
static void test_the_asker_leaves(void **state)
{
    (void)state;
    wb_waiter_missed(&waiters[0], &gone, START);
    wb_waiter_missed(&waiters[1], &gone, START);
    assert_int_equal(wb_waiter_turn(&waiters[0], broker.due), 0);
    assert_true(wb_waiter_turn(&waiters[1], broker.due) > 0);
    wb_waiter_leave(&waiters[0]);
    assert_int_equal(wb_waiter_turn(&waiters[1], broker.due), 0);
    assert_true(wb_dependency_is_away(&broker));
    wb_waiter_leave(&waiters[1]);
    assert_false(wb_dependency_is_away(&broker));
    assert_int_equal(wb_waiter_turn(&waiters[2], START), 0);
}

/* Somebody else ends while one asks: nobody asks beside him. */
static void test_another_leaves(void **state)
{
    (void)state;
    for (size_t i = 0; i < WAITERS; i++)
        wb_waiter_missed(&waiters[i], &gone, START);
    assert_int_equal(wb_waiter_turn(&waiters[0], broker.due), 0);
    wb_waiter_leave(&waiters[1]);
    assert_true(wb_waiter_turn(&waiters[2], broker.due) > 0);
}

/* Never two at once while it is away, and nobody is left behind when it comes. */
#define THREADS 8
static atomic_int is_there, asking, most, served;

static void *run_waiter(void *argument)
{
    wb_waiter waiter = { .dependency = &broker };
    (void)argument;
    wb_waiter_missed(&waiter, &gone, wb_clock_monotonic());
    while (waiter.waits) {
        int64_t wait = wb_waiter_turn(&waiter, wb_clock_monotonic());
        wb_clock_pause(wait, NULL);
        if (wait)
            continue;
        int beside = atomic_fetch_add(&asking, 1) + 1, there = atomic_load(&is_there);
        if (!there && beside > atomic_load(&most))
            atomic_store(&most, beside);
        wb_clock_pause(WB_MILLISECOND, NULL);
        atomic_fetch_sub(&asking, 1);
        if (there)
            wb_waiter_met(&waiter);
        else
            wb_waiter_missed(&waiter, &gone, wb_clock_monotonic());
    }
    atomic_fetch_add(&served, 1);
    return NULL;
}

static void test_threads(void **state)
{
    pthread_t threads[THREADS];
    (void)state;
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_waiter, NULL), 0);
    wb_clock_pause(300 * WB_MILLISECOND, NULL);
    assert_int_equal(served, 0);
    is_there = 1;
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(served, THREADS);
    assert_int_equal(most, 1);
    assert_false(wb_dependency_is_away(&broker));
}

/* ---- what is told ---------------------------------------------------------------------- */

static int saved_stderr;
static const char *log_path;

static void capture(void)
{
    log_path = conf_write("dependency.log", "");
    int file = open(log_path, O_WRONLY | O_APPEND);
    saved_stderr = dup(STDERR_FILENO);
    (void)dup2(file, STDERR_FILENO);
    (void)close(file);
}

static void release(void)
{
    (void)dup2(saved_stderr, STDERR_FILENO);
    (void)close(saved_stderr);
}

static int count_lines(const char *text)
{
    char line[5000];
    int count = 0;
    FILE *file = fopen(log_path, "r");
    while (file && fgets(line, sizeof line, file))
        count += strstr(line, text) != NULL;
    if (file)
        (void)fclose(file);
    return count;
}

/* An hour, looked at ten times a second: one line when it goes, one each five minutes, one when it is back. */
static void test_lines_of_an_hour(void **state)
{
    int64_t now = START;
    (void)state;
    capture();
    for (size_t i = 0; i < WAITERS; i++)
        wb_waiter_missed(&waiters[i], &gone, now);
    for (; now < START + 3599 * WB_SECOND; now += 100 * WB_MILLISECOND)
        wb_dependency_tell(&broker, "orders", now);
    int away = count_lines("the broker is away"), first = count_lines("workers=4 away=0.0s"), all = count_lines("level=");
    for (size_t i = 0; i < WAITERS; i++)
        wb_waiter_met(&waiters[i]);
    wb_dependency_tell(&broker, "orders", START + 3600 * WB_SECOND);
    wb_dependency_tell(&broker, "orders", START + 3601 * WB_SECOND);
    int back = count_lines("msg=\"the broker is back\" endpoint=orders away=3600.0s"), total = count_lines("level=");
    release();
    assert_int_equal(away, 12);
    assert_int_equal(first, 1);
    assert_int_equal(all, 12);
    assert_int_equal(back, 1);
    assert_int_equal(total, 13);
}

static void test_what_passes_is_not_told(void **state)
{
    (void)state;
    capture();
    wb_dependency_tell(&broker, "orders", START);
    wb_waiter_missed(&waiters[0], &gone, START);
    wb_waiter_met(&waiters[0]);
    wb_dependency_tell(&broker, "orders", START + WB_SECOND);
    int lines = count_lines("level=");
    release();
    assert_int_equal(lines, 0);
}

static void test_where_somebody_must_act(void **state)
{
    (void)state;
    capture();
    wb_waiter_missed(&waiters[0], &dropped, START);
    wb_dependency_tell(&broker, "orders", START);
    int lines = count_lines("\"the broker cannot be used: waiting\" endpoint=orders workers=1 away=0.0s "
                            "class=\"not connected\" reason=\"no such queue\"");
    release();
    assert_int_equal(lines, 1);
}

/* It was away, and is there without its queue; then with another one. Back and forth is no news each time. */
static void test_another_cause_is_told(void **state)
{
    static const wb_error other = { WB_NOT_CONNECTED, WB_CAUSE_MISMATCH, 0, "another queue" };
    const wb_error *errors[] = { &gone, &dropped, &dropped, &gone, &other };
    static const int expected[] = { 1, 2, 2, 2, 3 };
    int lines[5];
    (void)state;
    capture();
    for (int i = 0; i < 5; i++) {
        for (int64_t now = START + i * 30 * WB_SECOND; now < START + (i + 1) * 30 * WB_SECOND; now += 100 * WB_MILLISECOND) {
            wb_waiter_missed(&waiters[0], i == 4 && now / WB_SECOND % 2 ? &gone : errors[i], now);
            wb_dependency_tell(&broker, "orders", now);
        }
        lines[i] = count_lines("level=");
    }
    int missing = count_lines("\"no such queue\""), mismatch = count_lines("\"another queue\"");
    release();
    assert_memory_equal(lines, expected, sizeof lines);
    assert_int_equal(missing, 1);
    assert_int_equal(mismatch, 1);
}

/* ---- workers that make progress --------------------------------------------------------- */

static void test_alive(void **state)
{
    static wb_pipeline pipeline;
    static wb_worker worker;
    static const wb_handler_entry entry = { .type = "Shop.Order", .module = "test" };
    wb_item item = { .handlers = { &entry }, .handler_count = 1 }, *group[] = { &item };
    int64_t now = wb_clock_monotonic();
    (void)state;
    pipeline = (wb_pipeline){ .endpoint = "orders", .batch_max = 1, .handler_time_limit = 5 * WB_SECOND,
                              .transport_ops = &(wb_transport_ops){ .struct_size = sizeof(wb_transport_ops) } };
    wb_pipeline_init(&pipeline);
    wb_worker_init(&worker, &pipeline, 3);
    assert_true(wb_worker_is_alive(&worker, now));
    assert_true(wb_worker_is_alive(&worker, now + WB_STUCK_AFTER - WB_SECOND));
    assert_false(wb_worker_is_alive(&worker, now + WB_STUCK_AFTER + WB_SECOND));

    wb_overtime_begin(&worker.overtime, group, 1, now - 6 * WB_SECOND);
    assert_false(wb_worker_is_alive(&worker, now));
    wb_overtime_end(&worker.overtime);
    assert_true(wb_worker_is_alive(&worker, now));

    wb_overtime_begin(&worker.overtime, group, 1, now - 6 * WB_SECOND);
    pipeline.handler_time_limit = 0; /* none */
    assert_true(wb_worker_is_alive(&worker, now));
    wb_worker_free(&worker);
    wb_pipeline_free(&pipeline);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_all_may_ask),
        CASE(test_one_asks_for_all),
        CASE(test_pauses_grow),
        CASE(test_only_some_are_served),
        CASE(test_the_asker_leaves),
        CASE(test_another_leaves),
        CASE(test_threads),
        CASE(test_lines_of_an_hour),
        CASE(test_what_passes_is_not_told),
        CASE(test_another_cause_is_told),
        CASE(test_where_somebody_must_act),
        CASE(test_alive),
    };
    return cmocka_run_group_tests_name("dependency", tests, conf_setup, conf_teardown);
}
