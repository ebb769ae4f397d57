/* SPDX-License-Identifier: Apache-2.0
 *
 * The pace of the clean-up: steps that follow the time they take, and rests that follow the work.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "core/endpoint/cleaner_pace.h"

/* Of a database that takes so long for a record, and so long for any step. @return the longest step. */
static int64_t clean(wb_cleaner_pace *pace, int64_t each, int64_t fixed, unsigned steps)
{
    int64_t longest = 0;
    for (unsigned i = 0; i < steps; i++) {
        const int64_t took = fixed + (int64_t)pace->step * each;
        const int64_t rest = wb_cleaner_pace_step(pace, took, 1);
        assert_true(rest >= 3 * took);
        assert_true(rest <= 39 * took);
        longest = took > longest ? took : longest;
    }
    return longest;
}

static void test_steps_take_some_milliseconds(void **state)
{
    (void)state;
    for (int64_t each = 100; each <= 160 * 1000; each *= 2) { /* 0.1 to 100 us */
        wb_cleaner_pace pace = wb_cleaner_pace_init();
        (void)clean(&pace, each, 0, 20);
        const int64_t settled = clean(&pace, each, 0, 100);
        assert_true(settled <= 40 * WB_MILLISECOND || pace.step <= 500);
        assert_true(settled >= 5 * WB_MILLISECOND || pace.step >= 8000);
    }
}

static void test_steps_have_bounds(void **state)
{
    wb_cleaner_pace pace = wb_cleaner_pace_init();
    (void)state;
    (void)clean(&pace, 0, 0, 1000);
    assert_int_equal(pace.step, 8000);
    (void)clean(&pace, 0, WB_SECOND, 1000); /* smaller ones would not help */
    assert_int_equal(pace.step, 500);
}

/* A store that deletes less at once than it is asked to, or has no more: the rest follows the time all the same. */
static void test_part_of_a_step_says_little(void **state)
{
    wb_cleaner_pace pace = wb_cleaner_pace_init();
    (void)state;
    const size_t step = pace.step;
    assert_int_equal(wb_cleaner_pace_step(&pace, WB_MILLISECOND, 0), 39 * WB_MILLISECOND);
    assert_int_equal(wb_cleaner_pace_step(&pace, WB_SECOND, 0), 39 * WB_SECOND);
    assert_int_equal(pace.step, step);
}

static void test_what_keeps_up_takes_a_fortieth(void **state)
{
    wb_cleaner_pace pace = wb_cleaner_pace_init();
    (void)state;
    for (int i = 0; i < 100; i++) {
        assert_int_equal(wb_cleaner_pace_step(&pace, 10 * WB_MILLISECOND, 1), 390 * WB_MILLISECOND);
        wb_cleaner_pace_round(&pace, 0);
    }
}

/* Records expire at a rate: the rest becomes as short as that takes, and goes on from there. */
static void test_what_falls_behind_rests_less(void **state)
{
    (void)state;
    for (double needed = 0.01; needed < 0.25; needed += 0.01) {
        wb_cleaner_pace pace = wb_cleaner_pace_init();
        double left = 0, most = 0;
        for (int round = 0; round < 1000; round++) {
            const double share = 1.0 / (1 + pace.rest);
            left += needed - share;
            if (left < 0)
                left = 0;
            most = left > most ? left : most;
            wb_cleaner_pace_round(&pace, left > 0);
        }
        assert_true(left < 1);
        assert_true(most < 2); /* rounds of all of the time */
    }
}

static void test_rests_have_bounds(void **state)
{
    wb_cleaner_pace pace = wb_cleaner_pace_init();
    (void)state;
    for (int i = 0; i < 100; i++)
        wb_cleaner_pace_round(&pace, 1);
    assert_int_equal(wb_cleaner_pace_step(&pace, 10 * WB_MILLISECOND, 1), 30 * WB_MILLISECOND);
    for (int i = 0; i < 100; i++)
        wb_cleaner_pace_round(&pace, 0);
    assert_int_equal(wb_cleaner_pace_step(&pace, 10 * WB_MILLISECOND, 1), 390 * WB_MILLISECOND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_take_some_milliseconds),
        cmocka_unit_test(test_steps_have_bounds),
        cmocka_unit_test(test_part_of_a_step_says_little),
        cmocka_unit_test(test_what_keeps_up_takes_a_fortieth),
        cmocka_unit_test(test_what_falls_behind_rests_less),
        cmocka_unit_test(test_rests_have_bounds),
    };
    return cmocka_run_group_tests_name("pace", tests, NULL, NULL);
}
