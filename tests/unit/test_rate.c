/* SPDX-License-Identifier: Apache-2.0
 *
 * Rate limiting: when it begins and ends, and whose turn it is.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "core/pipeline/rate.h"

#define WAIT (200 * WB_MILLISECOND)

static const char one, other; /* workers */

static void fail_often(wb_rate_limit *limit, unsigned times)
{
    for (unsigned i = 0; i < times; i++)
        wb_rate_failed(limit, "e");
}

static void test_off(void **state)
{
    wb_rate_limit limit = { .wait = WAIT };
    (void)state;
    fail_often(&limit, 1000);
    assert_false(wb_rate_is_limited(&limit));
    assert_int_equal(wb_rate_take_turn(&limit, &one), 0);
    assert_int_equal(wb_rate_take_turn(&limit, &other), 0);
}

/* In a row: a success between them begins the count anew. */
static void test_begins_and_ends(void **state)
{
    wb_rate_limit limit = { .after = 3, .wait = WAIT };
    (void)state;
    fail_often(&limit, 2);
    wb_rate_succeeded(&limit, "e");
    fail_often(&limit, 2);
    assert_false(wb_rate_is_limited(&limit));
    fail_often(&limit, 1);
    assert_true(wb_rate_is_limited(&limit));
    fail_often(&limit, 5);
    assert_int_equal(limit.times, 1);
    wb_rate_succeeded(&limit, "e");
    assert_false(wb_rate_is_limited(&limit));
    assert_int_equal(wb_rate_take_turn(&limit, &one), 0);
    assert_int_equal(wb_rate_take_turn(&limit, &other), 0);
    fail_often(&limit, 3);
    assert_int_equal(limit.times, 2);
}

/* The wait runs from the failure that began it, and then from the end of each attempt. */
static void test_turns(void **state)
{
    wb_rate_limit limit = { .after = 1, .wait = WAIT };
    (void)state;
    fail_often(&limit, 1);
    int64_t pause = wb_rate_take_turn(&limit, &one);
    assert_in_range(pause, WAIT / 2, WAIT);
    wb_clock_pause(pause, NULL);
    assert_int_equal(wb_rate_take_turn(&limit, &one), 0);
    assert_int_equal(wb_rate_take_turn(&limit, &one), 0);
    assert_in_range(wb_rate_take_turn(&limit, &other), 1, WB_SECOND);
    wb_rate_give_turn(&limit, &other); /* it is not his */
    assert_in_range(wb_rate_take_turn(&limit, &other), 1, WB_SECOND);
    wb_rate_give_turn(&limit, &one);
    pause = wb_rate_take_turn(&limit, &other);
    assert_in_range(pause, WAIT / 2, WAIT);
    wb_clock_pause(pause, NULL);
    assert_int_equal(wb_rate_take_turn(&limit, &other), 0);
    wb_rate_give_turn(&limit, &other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_off),
        cmocka_unit_test(test_begins_and_ends),
        cmocka_unit_test(test_turns),
    };
    return cmocka_run_group_tests_name("rate", tests, NULL, NULL);
}
