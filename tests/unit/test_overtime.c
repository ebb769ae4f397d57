/* SPDX-License-Identifier: Apache-2.0
 *
 * A handler that takes long: which lines are written when, and that what is read of its message is what it has.
 */
#include <config.h>

#include "tests/unit/conf_support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/log.h"
#include "core/pipeline/overtime.h"

#define START (1000 * WB_SECOND)
#define WORKER 3

static const wb_handler_entry entry = { .type = "Shop.Order", .module = "test" };
static wb_item items[2], *group[2] = { &items[0], &items[1] };
static wb_pipeline pipeline;
static wb_overtime overtime;
static char lines[20000];

static void take_line(void *argument, int level, const char *line, size_t size)
{
    (void)argument, (void)level, (void)size;
    strncat(lines, line, sizeof lines - strlen(lines) - 2);
    strcat(lines, "\n");
}

static int set_up(void **state)
{
    (void)state;
    lines[0] = '\0';
    wb_log_set_writer(take_line, NULL);
    for (size_t i = 0; i < 2; i++)
        items[i] = (wb_item){ .handlers = { &entry }, .handler_count = 1, .message = { .id = i ? "m2" : "m1", .id_size = 2 } };
    pipeline = (wb_pipeline){ .endpoint = "orders" };
    overtime = (wb_overtime){ .seen = 0 };
    wb_overtime_init(&overtime);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    wb_overtime_free(&overtime);
    return 0;
}

static int count(const char *text)
{
    int found = 0;
    for (const char *at = lines; (at = strstr(at, text)); at++)
        found++;
    return found;
}

static void begin(size_t messages)
{
    wb_overtime_begin(&overtime, group, messages, START);
}

static void look(int64_t spent)
{
    wb_overtime_look(&overtime, &pipeline, WORKER, START + spent);
}

/* A line after the first 30 s, then whenever twice as long has passed. */
static void test_slow(void **state)
{
    (void)state;
    pipeline.slow_handler = 30 * WB_SECOND;
    look(0);
    begin(1);
    for (int64_t spent = 0; spent < 130 * WB_SECOND; spent += WB_SECOND / 10)
        look(spent);
    assert_int_equal(count("a handler takes long"), 3);
    for (int seconds = 30; seconds <= 120; seconds *= 2) {
        char line[200];
        (void)snprintf(line, sizeof line, "level=warning msg=\"a handler takes long\" endpoint=orders worker=3 message_id=m1 "
                       "type=Shop.Order seconds=%d\n", seconds);
        assert_int_equal(count(line), 1);
    }
    wb_overtime_end(&overtime);
    look(131 * WB_SECOND);
    look(132 * WB_SECOND);
    assert_int_equal(count("the handler that took too long has returned"), 1);
    assert_int_equal(count("\n"), 4);
}

static void test_never(void **state)
{
    (void)state;
    begin(1);
    look(365 * 86400 * WB_SECOND);
    assert_false(wb_overtime_is_beyond(&overtime, &pipeline, START + 365 * 86400 * WB_SECOND));
    assert_false(wb_overtime_is_over(&overtime));
    wb_overtime_end(&overtime);
    look(365 * 86400 * WB_SECOND);
    assert_string_equal(lines, "");
}

/* Each call has its own time; who was not told of is not told to be back. */
static void test_next_call(void **state)
{
    (void)state;
    pipeline.slow_handler = 30 * WB_SECOND;
    for (int calls = 0; calls < 10; calls++) {
        wb_overtime_begin(&overtime, group, 1, START + calls * 20 * WB_SECOND);
        look(calls * 20 * WB_SECOND);
        look(calls * 20 * WB_SECOND + 19 * WB_SECOND);
        wb_overtime_end(&overtime);
        look(calls * 20 * WB_SECOND + 19 * WB_SECOND);
    }
    assert_string_equal(lines, "");
}

/* Of several that are due the most serious one, and each once. */
static void test_limits(void **state)
{
    (void)state;
    pipeline.slow_handler = 10 * WB_SECOND;
    pipeline.handler_time_limit = 20 * WB_SECOND;
    pipeline.handler_timeout = 60 * WB_SECOND;
    begin(2);
    for (int seconds = 0; seconds < 75; seconds++) {
        assert_int_equal(wb_overtime_is_beyond(&overtime, &pipeline, START + seconds * WB_SECOND), seconds >= 20);
        assert_int_equal(wb_overtime_is_over(&overtime), seconds > 60); /* nothing ends that was not told of */
        look(seconds * WB_SECOND);
        assert_int_equal(wb_overtime_is_over(&overtime), seconds >= 60);
    }
    assert_int_equal(count("a handler takes long\" endpoint=orders worker=3 message_id=m1 type=Shop.Order messages=2 seconds=10"), 1);
    assert_int_equal(count("level=error msg=\"a handler takes longer than handler_time_limit\" endpoint=orders worker=3 message_id=m1 "
                           "type=Shop.Order messages=2 seconds=20"), 1);
    assert_int_equal(count("a handler takes long\" endpoint=orders worker=3 message_id=m1 type=Shop.Order messages=2 seconds=40"), 1);
    assert_int_equal(count("level=error msg=\"a handler takes longer than handler_timeout\" endpoint=orders worker=3 message_id=m1 "
                           "type=Shop.Order messages=2 seconds=60"), 1);
    assert_int_equal(count("\n"), 4);
}

/* What a line names is the message that the handler has, though it may be done with any moment: its memory goes then. */
static void *work(void *argument)
{
    atomic_int *is_over = argument;
    for (int64_t at = 1; !atomic_load(is_over); at++) {
        wb_item item = { .handlers = { &entry }, .handler_count = 1 }, *one = &item;
        char *id = malloc(16);
        (void)snprintf(id, 16, "call-%08d", (int)(at % 100000000));
        item.message.id = id;
        wb_overtime_begin(&overtime, &one, 1, at);
        wb_overtime_end(&overtime);
        memset(id, 'x', 15);
        free(id);
    }
    return NULL;
}

static void test_read_while_it_returns(void **state)
{
    atomic_int is_over = 0;
    pthread_t thread;
    (void)state;
    pipeline.handler_time_limit = 1;
    assert_int_equal(pthread_create(&thread, NULL, work, &is_over), 0);
    int64_t end = wb_clock_monotonic() + WB_SECOND;
    while (wb_clock_monotonic() < end) {
        lines[0] = '\0';
        wb_overtime_look(&overtime, &pipeline, WORKER, WB_NEVER);
        const char *id = strstr(lines, "message_id=");
        if (id) {
            assert_memory_equal(id, "message_id=call-", 16);
            assert_int_equal(strspn(id + 16, "0123456789"), 8);
        }
    }
    atomic_store(&is_over, 1);
    pthread_join(thread, NULL);
}

static void *end_call(void *argument)
{
    wb_overtime_end(&overtime);
    atomic_store((atomic_int *)argument, 1);
    return NULL;
}

/* By chance the case above meets it, when there are processors for both. */
static void test_end_waits_for_who_reads(void **state)
{
    atomic_int has_ended = 0;
    pthread_t thread;
    (void)state;
    begin(1);
    pthread_mutex_lock(&overtime.looking);
    atomic_store(&overtime.is_looked_at, 1);
    assert_int_equal(pthread_create(&thread, NULL, end_call, &has_ended), 0);
    while (wb_overtime_since(&overtime) != 0)
        usleep(1000);
    usleep(100000); /* for whom nothing holds up */
    assert_false(atomic_load(&has_ended));
    atomic_store(&overtime.is_looked_at, 0);
    pthread_mutex_unlock(&overtime.looking);
    pthread_join(thread, NULL);
    assert_true(atomic_load(&has_ended));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_slow), CASE(test_never), CASE(test_next_call), CASE(test_limits), CASE(test_read_while_it_returns),
        CASE(test_end_waits_for_who_reads),
    };
    return cmocka_run_group_tests_name("overtime", tests, conf_setup, conf_teardown);
}
