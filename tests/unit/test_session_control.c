/* SPDX-License-Identifier: Apache-2.0
 *
 * The control message of a transactional session: what NServiceBus 10.2.8 puts on the wire (tests/captures),
 * and what others might; numbers of closed ids; memory that is out.
 */
#include <config.h>

#include "tests/unit/conf_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/base/clock.h"
#include "core/base/memory.h"
#include "core/message/header_names.h"
#include "core/message/ids.h"
#include "core/message/incoming.h"
#include "core/message/session_control.h"

#define HEADER(name, value) { (name), (value), sizeof(name) - 1, sizeof(value) - 1 }

static const wb_header first[] = {
    HEADER("NServiceBus.MessageId", "2ffdce4f-777d-4588-ba93-afbdce87b7f9"),
    HEADER("NServiceBus.ControlMessage", "True"),
    HEADER("NServiceBus.TransactionalSession.RemainingCommitDuration", "00:00:15"),
    HEADER("NServiceBus.TransactionalSession.CommitDelayIncrement", "00:00:02"),
    HEADER("NServiceBus.TransactionalSession.CommitDelayAttempt", "1"),
    HEADER("NServiceBus.TransactionalSession.TimeSent", "2026-11-22 04:09:49:154568 Z"),
};
#define FIRST (sizeof first / sizeof first[0])

static const char *value_of(const wb_operation *operation, const char *name)
{
    const wb_header *found = wb_headers_find(operation->headers, operation->header_count, name, strlen(name));
    return found ? found->value : "absent";
}

static void test_as_captured(void **state)
{
    static const char id[] = "2ffdce4f-777d-4588-ba93-afbdce87b7f9";
    wb_session_control control = { 15 * WB_SECOND, 2 * WB_SECOND, 1, 0 };
    wb_operation_list list = { 0 };
    wb_arena arena;
    (void)state;
    wb_arena_init(&arena, 4096);
    const wb_operation *o = wb_session_control_operation("netsession", id, sizeof id - 1, &control, &arena, &list);
    assert_string_equal(o->destination, "netsession");
    assert_int_equal(o->body_size, 0);
    assert_int_equal(o->header_count, FIRST);
    for (size_t i = 0; i < FIRST; i++) {
        assert_string_equal(o->headers[i].name, first[i].name);
        if (i < FIRST - 1)
            assert_string_equal(o->headers[i].value, first[i].value);
    }
    wb_arena_free(&arena);
}

/* The second one of the capture: twice the delay, and that much less is left. Headers of others stay. */
static void test_again_as_captured(void **state)
{
    wb_header headers[FIRST + 1];
    wb_session_control control, next;
    wb_operation_list list = { 0 };
    wb_arena arena;
    (void)state;
    memcpy(headers, first, sizeof first);
    headers[FIRST] = (wb_header)HEADER("Tenant", "blue");
    const wb_incoming incoming = { .struct_size = sizeof incoming, .id = "session", .id_size = 7, .headers = headers,
                                   .header_count = FIRST + 1 };
    wb_arena_init(&arena, 4096);
    assert_int_equal(wb_session_control_read(headers, FIRST + 1, &control), 1);
    assert_int_equal(wb_session_control_next(&control, &next), 1);
    assert_int_equal(next.increment, 4 * WB_SECOND);
    const wb_operation *o = wb_session_control_again("netsession", &incoming, &next, &arena, &list);
    assert_int_equal(o->header_count, FIRST + 1);
    assert_string_equal(value_of(o, WB_HEADER_SESSION_REMAINING), "00:00:11");
    assert_string_equal(value_of(o, WB_HEADER_SESSION_INCREMENT), "00:00:04");
    assert_string_equal(value_of(o, WB_HEADER_SESSION_ATTEMPT), "2");
    assert_string_equal(value_of(o, WB_HEADER_CONTROL_MESSAGE), "True");
    assert_string_equal(value_of(o, "Tenant"), "blue");
    assert_string_equal(o->id, "session");
    wb_arena_free(&arena);
}

/* 15 s from 2 s on: after 4, 8 and 3 s there is nothing left. */
static void test_delays_end(void **state)
{
    static const int64_t delays[] = { 4, 8, 3 };
    wb_session_control control = { 15 * WB_SECOND, 2 * WB_SECOND, 1, 0 };
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        wb_session_control next;
        assert_int_equal(wb_session_control_next(&control, &next), 1);
        assert_int_equal(next.increment, delays[i] * WB_SECOND);
        control = next;
    }
    assert_int_equal(control.remaining, 0);
    assert_int_equal(wb_session_control_next(&control, &control), 0);
}

static int read_with(const char *remaining, const char *increment, wb_session_control *ret_control)
{
    const wb_header headers[] = {
        { WB_HEADER_SESSION_REMAINING, remaining, sizeof WB_HEADER_SESSION_REMAINING - 1, strlen(remaining) },
        { WB_HEADER_SESSION_INCREMENT, increment, sizeof WB_HEADER_SESSION_INCREMENT - 1, strlen(increment) },
    };
    return wb_session_control_read(headers, 2, ret_control);
}

static void test_what_peers_may_send(void **state)
{
    static const char *const bad[] = { "", "15", "-00:00:15", "00:00:15x", "99:00:00", "00:00:00.1", "1e9" };
    wb_session_control control, next;
    (void)state;
    assert_int_equal(wb_session_control_read(first, 2, &control), 0); /* a control message, but no session's */
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(read_with(bad[i], "00:00:02", &control), -1);
        assert_int_equal(read_with("00:00:02", bad[i], &control), -1);
    }
    assert_int_equal(wb_session_control_read(first + 2, 1, &control), -1); /* no increment */
    assert_int_equal(read_with("99999.00:00:00", "99999.00:00:00", &control), 1);
    assert_int_equal(control.attempt, 1);
    assert_int_equal(control.remaining, WB_SESSION_SPAN_MAX); /* more is not waited for */
    assert_int_equal(wb_session_control_next(&control, &next), 1);
    assert_int_equal(next.remaining, 0);
    assert_int_equal(next.increment, control.remaining);
    assert_int_equal(read_with("00:00:10", "00:00:00", &control), 1); /* an increment of nothing would go on for ever */
    assert_int_equal(wb_session_control_next(&control, &next), 1);
    assert_int_equal(next.remaining, 0);
    assert_int_equal(read_with("00:00:00", "00:00:02", &control), 1);
    assert_int_equal(wb_session_control_next(&control, &next), 0);
}

/* A header of our own says which record the session may replace; what is delayed beside a message of another session
 * of that id is not taken for it. */
static void test_what_it_replaces(void **state)
{
    const uint64_t closed = wb_batch_number_closed(wb_clock_wall(), 0);
    wb_session_control control = { WB_SECOND, WB_SECOND / 4, 1, closed }, plain = control, read, next;
    wb_operation_list list = { 0 };
    wb_arena arena;
    (void)state;
    wb_arena_init(&arena, 4096);
    const wb_operation *o = wb_session_control_operation("shop", "key", 3, &control, &arena, &list);
    assert_int_equal(o->header_count, FIRST + 1);
    assert_int_equal(wb_session_control_read(o->headers, o->header_count, &read), 1);
    assert_true(read.replaces == closed);
    assert_int_equal(wb_session_control_next(&read, &next), 1);
    assert_true(next.replaces == closed);
    const wb_incoming incoming = { .struct_size = sizeof incoming, .id = "key", .id_size = 3, .headers = o->headers,
                                   .header_count = o->header_count };
    o = wb_session_control_again("shop", &incoming, &next, &arena, &list);
    assert_int_equal(wb_session_control_read(o->headers, o->header_count, &read), 1);
    assert_true(read.replaces == closed && read.attempt == 2);
    plain.replaces = 0;
    assert_int_equal(wb_session_control_key(&plain), 1);
    assert_int_not_equal(wb_session_control_key(&control), wb_session_control_key(&plain));
    plain.replaces = wb_batch_number_closed(wb_clock_wall() + WB_SECOND, 0);
    assert_int_not_equal(wb_session_control_key(&control), wb_session_control_key(&plain));
    assert_int_equal(wb_session_control_read(first, FIRST, &read), 1);
    assert_true(read.replaces == 0);
    wb_arena_free(&arena);
}

static void test_closed_numbers(void **state)
{
    int64_t now = wb_clock_wall();
    (void)state;
    const uint64_t closed = wb_batch_number_closed(now, 0), next = wb_batch_number_closed(now, closed);
    assert_true(wb_batch_number_is_closed(closed));
    assert_true(wb_batch_number_is_closed(next) && next > closed); /* in one millisecond */
    assert_true(wb_batch_number_closed(now, wb_batch_number_closed(now - 1000000000, 0)) == closed);
    for (int i = 0; i < 20000; i++)
        assert_false(wb_batch_number_is_closed(wb_batch_number(now)));
    assert_true(closed >= wb_batch_number_at(now));
}

/* ---- memory ----------------------------------------------------------------------------- */

/* The sanitizer would rather end the process. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static int steps;

static void ask_for_too_much(void *argument)
{
    steps++;
    (void)wb_alloc(SIZE_MAX / 2 - *(int *)argument);
    steps += 100;
}

static void ask_inside(void *argument)
{
    assert_int_equal(wb_memory_try(ask_for_too_much, argument), -1);
    steps += 10;
}

static void test_memory_is_out(void **state)
{
    int nothing = 0;
    (void)state;
    steps = 0;
    assert_int_equal(wb_memory_try(ask_for_too_much, &nothing), -1);
    assert_int_equal(steps, 1);
    assert_int_equal(wb_memory_try(ask_inside, &nothing), 0);
    assert_int_equal(steps, 12);
    assert_int_equal(wb_memory_try(ask_for_too_much, &nothing), -1);
}

/* ---- what is held meanwhile ------------------------------------------------------------- */

static char released[8];
static char letters[][2] = { "a", "b", "c", "d" };

static void release(void *letter)
{
    (void)strcat(released, letter);
}

/* Holds a; b is let go before it is left, c is not. */
static void hold_and_ask(void *argument)
{
    wb_memory_held a, b, c;
    wb_memory_hold(&a, release, letters[0]);
    wb_memory_hold(&b, release, letters[1]);
    wb_memory_let_go(&b);
    wb_memory_hold(&c, release, letters[2]);
    ask_for_too_much(argument);
}

static void hold_and_try(void *argument)
{
    wb_memory_held d;
    wb_memory_hold(&d, release, letters[3]);
    assert_int_equal(wb_memory_try(hold_and_ask, argument), -1);
    wb_memory_let_go(&d);
}

static void test_what_is_held_is_released(void **state)
{
    int nothing = 0;
    (void)state;
    assert_int_equal(wb_memory_try(hold_and_ask, &nothing), -1);
    assert_string_equal(released, "ca");
    released[0] = '\0';
    assert_int_equal(wb_memory_try(hold_and_try, &nothing), 0);
    assert_string_equal(released, "ca"); /* d is still needed, and then let go */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_captured),
        cmocka_unit_test(test_again_as_captured),
        cmocka_unit_test(test_delays_end),
        cmocka_unit_test(test_what_peers_may_send),
        cmocka_unit_test(test_what_it_replaces),
        cmocka_unit_test(test_closed_numbers),
        cmocka_unit_test(test_memory_is_out),
        cmocka_unit_test(test_what_is_held_is_released),
    };
    return cmocka_run_group_tests_name("session_control", tests, NULL, NULL);
}
