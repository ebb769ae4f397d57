/* SPDX-License-Identifier: Apache-2.0
 *
 * Which confirm and which return belongs to which operation: the orders a broker may
 * answer in, most of which a test against a broker would have to wait for.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "plugins/transport/amqp/amqp-options.h"
#include "plugins/transport/amqp/amqp-window.h"

#define COUNT 8

static const wb_amqp_config conventional, direct = { .topology = WB_AMQP_TOPOLOGY_DIRECT };
static wb_operation operations[COUNT];
static wb_operation *pointers[COUNT];

/* Eight mandatory sends, "a" to "h", to the queue "q"; published on a new channel. */
static void begin(wb_amqp_window *window)
{
    static const char ids[] = "abcdefgh";
    for (size_t i = 0; i < COUNT; i++) {
        operations[i] = (wb_operation){ .kind = WB_OPERATION_SEND,
                                        .flags = WB_OPERATION_MANDATORY,
                                        .destination = "q",
                                        .id = ids + i,
                                        .id_size = 1 };
        pointers[i] = &operations[i];
    }
    *window = (wb_amqp_window){ .config = &conventional };
    wb_amqp_window_new_channel(window);
    assert_true(wb_amqp_window_begin(window, pointers, COUNT));
    for (size_t i = 0; i < COUNT; i++)
        wb_amqp_window_publish(window, i);
}

static void assert_results(const char *expected)
{
    static const char letters[] = "or?x?-"; /* ok, retry, reject, not connected */
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(letters[operations[i].result], expected[i]);
}

static void test_out_of_order(void **state)
{
    wb_amqp_window window;
    (void)state;
    begin(&window);
    wb_amqp_window_confirm(&window, 5, 0, 0);
    wb_amqp_window_confirm(&window, 2, 0, 0);
    assert_results("-o--o---");
    wb_amqp_window_confirm(&window, 3, 1, 0);
    assert_results("ooo-o---");
    wb_amqp_window_confirm(&window, 3, 1, 0); /* twice is once */
    assert_int_equal(window.outstanding, 4);
    wb_amqp_window_confirm(&window, 8, 1, 0);
    assert_results("oooooooo");
    assert_int_equal(window.unsettled, 0);
    wb_amqp_window_free(&window);
}

static void test_nacks(void **state)
{
    wb_amqp_window window;
    (void)state;
    begin(&window);
    wb_amqp_window_confirm(&window, 2, 0, 0);
    wb_amqp_window_confirm(&window, 4, 1, 1);
    wb_amqp_window_confirm(&window, 0, 1, 0); /* everything there is */
    assert_results("rorroooo");
    wb_amqp_window_free(&window);
}

static void test_nonsense(void **state)
{
    wb_amqp_window window;
    (void)state;
    begin(&window);
    wb_amqp_window_confirm(&window, 0, 0, 0);
    wb_amqp_window_confirm(&window, 9, 0, 0);
    wb_amqp_window_confirm(&window, UINT64_MAX, 1, 0);
    wb_amqp_window_return(&window, amqp_cstring_bytes("q"), amqp_empty_bytes, amqp_cstring_bytes("z"));
    assert_results("--------");
    assert_int_equal(window.outstanding, COUNT);
    wb_amqp_window_free(&window);
}

static void test_returns(void **state)
{
    wb_amqp_window window;
    (void)state;
    begin(&window);
    operations[1].id = operations[3].id = operations[6].id = "a";
    operations[1].flags = 0; /* would not be returned */
    operations[4].destination = "other";
    wb_amqp_window_return(&window, amqp_cstring_bytes("q"), amqp_empty_bytes, amqp_cstring_bytes("a"));
    wb_amqp_window_return(&window, amqp_cstring_bytes("q"), amqp_empty_bytes, amqp_cstring_bytes("a"));
    wb_amqp_window_return(&window, amqp_cstring_bytes("other"), amqp_empty_bytes, amqp_cstring_bytes("e"));
    wb_amqp_window_confirm(&window, 8, 1, 0);
    assert_results("xooxxooo");
    assert_string_equal(operations[4].reason, "no queue is bound to \"other\": is the receiving endpoint installed?");
    assert_int_equal(operations[4].cause, WB_CAUSE_UNROUTABLE);
    wb_amqp_window_free(&window);
}

/* Through the default exchange all have the same one: the key tells, also of one id twice. */
static void test_returned_keys(void **state)
{
    wb_amqp_window window;
    (void)state;
    begin(&window);
    window.config = &direct;
    operations[2].destination = operations[5].destination = "other";
    operations[0].id = operations[2].id = operations[5].id = "a";
    wb_amqp_window_return(&window, amqp_empty_bytes, amqp_cstring_bytes("other"), amqp_cstring_bytes("a"));
    wb_amqp_window_return(&window, amqp_empty_bytes, amqp_cstring_bytes("other"), amqp_cstring_bytes("a"));
    wb_amqp_window_confirm(&window, 8, 1, 0);
    assert_results("ooxooxoo");
    assert_string_equal(operations[2].reason,
                        "there is no queue \"other\": is the receiving endpoint installed?");
    wb_amqp_window_free(&window);
}

/* Of what waits the bits of the key differ, with one id as well; it comes back whatever its flags say. */
static void test_returned_delays(void **state)
{
    static const char of_five[] = "0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.1.0.1.q";
    wb_amqp_window window;
    (void)state;
    begin(&window);
    operations[2].id = operations[5].id = "a";
    operations[5].flags = 0;
    window.slots[2].delay = 4;
    window.slots[5].delay = 5;
    wb_amqp_window_return(&window, amqp_cstring_bytes("nsb.v2.delay-level-02"), amqp_cstring_bytes(of_five),
                          amqp_cstring_bytes("a"));
    wb_amqp_window_confirm(&window, 8, 1, 0);
    assert_results("oooooxoo");
    assert_int_equal(operations[5].cause, WB_CAUSE_UNROUTABLE);
    assert_string_equal(operations[5].reason,
                        "exchange \"nsb.v2.delay-level-02\" leads to no queue: run waybill install");
    wb_amqp_window_free(&window);
}

/* The channel broke; what was not confirmed is published again, on a new one, where
 * numbers begin at 1 and an old return means nothing. */
static void test_second_round(void **state)
{
    wb_amqp_window window;
    (void)state;
    begin(&window);
    wb_amqp_window_return(&window, amqp_cstring_bytes("q"), amqp_empty_bytes, amqp_cstring_bytes("b"));
    wb_amqp_window_confirm(&window, 1, 0, 0);
    wb_amqp_window_new_channel(&window);
    wb_amqp_window_new_round(&window);
    for (size_t i = 1; i < COUNT; i++)
        wb_amqp_window_publish(&window, i);
    wb_amqp_window_confirm(&window, 1, 0, 0);
    assert_results("oo------");
    wb_amqp_window_confirm(&window, 7, 1, 0);
    assert_results("oooooooo");
    wb_amqp_window_free(&window);
}

/* A window given up on the same channel: its late confirms are nobody's. */
static void test_late_confirms(void **state)
{
    wb_amqp_window window;
    (void)state;
    begin(&window);
    assert_true(wb_amqp_window_begin(&window, pointers, COUNT));
    wb_amqp_window_new_round(&window);
    for (size_t i = 0; i < COUNT; i++)
        wb_amqp_window_publish(&window, i);
    wb_amqp_window_confirm(&window, 8, 1, 0);
    assert_results("--------");
    wb_amqp_window_confirm(&window, 10, 1, 0);
    assert_results("oo------");
    wb_amqp_window_free(&window);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_out_of_order), cmocka_unit_test(test_nacks),
        cmocka_unit_test(test_nonsense),     cmocka_unit_test(test_returns), cmocka_unit_test(test_returned_keys),
        cmocka_unit_test(test_returned_delays),
        cmocka_unit_test(test_second_round), cmocka_unit_test(test_late_confirms),
    };
    return cmocka_run_group_tests_name("amqp window", tests, NULL, NULL);
}
