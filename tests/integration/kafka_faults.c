/* SPDX-License-Identifier: Apache-2.0
 *
 * The kafka transport and a broker that dies. KAFKA_CRASH and KAFKA_RESTART are commands.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/integration/kafka-fixture.h"

static void command(const char *name)
{
    const char *text = getenv(name);
    assert_non_null(text);
    assert_int_equal(system(text), 0);
}

static int64_t since(int64_t start)
{
    return wb_clock_monotonic() - start;
}

/* What is confirmed before and after a crash is there, and the session goes on: the broker is back
 * before it times out. */
static void test_restart(void **state)
{
    const wb_incoming *messages[20];
    fixture f;
    (void)state;
    fixture_prepare(&f);
    f.config.session_timeout = SECONDS(60);
    fixture_create(&f);
    assert_int_equal(f.ops->install(f.transport, &f.error), WB_OK);
    fixture_open(&f, 100);
    fixture_fill(&f, 10);
    fixture_receive(&f, messages, 10);
    fixture_acknowledge(&f, messages, 5);
    command("KAFKA_CRASH");
    fixture_acknowledge(&f, messages + 5, 5);
    command("KAFKA_RESTART");
    fixture_fill(&f, 10);
    /* Nothing is missing; what was acknowledged last may come again. */
    for (size_t last = 0; !last;) {
        fixture_receive(&f, messages, 1);
        last = strcmp(messages[0]->id, "m-9") == 0 && messages[0]->delivery_count == 0;
        fixture_acknowledge(&f, messages, 1);
    }
    fixture_close(&f);
    assert_true(client_committed(f.queue, f.queue, 0, NULL, 0) >= 20);
    fixture_end(&f);
}

/* Unconfirmed is unknown, and said in time. */
static void test_send_in_doubt(void **state)
{
    fixture f;
    (void)state;
    fixture_begin(&f, 10);
    fixture_fill(&f, 1);
    f.config.confirm_timeout = SECONDS(2);
    command("KAFKA_CRASH");
    wb_operation operations[] = { fixture_operation(f.queue, "a", "a"),
                                  fixture_operation(f.queue, "b", "b") };
    int64_t start = wb_clock_monotonic();
    int result = fixture_send(&f, operations, 2);
    assert_true(since(start) < SECONDS(10));
    assert_true(result == WB_IN_DOUBT || result == WB_NOT_CONNECTED);
    assert_string_not_equal(f.error.text, "");
    for (size_t i = 0; i < 2; i++)
        assert_true(operations[i].result == WB_IN_DOUBT ||
                    operations[i].result == WB_NOT_CONNECTED);
    /* The session says so before handlers run, not after. */
    const wb_incoming *message;
    size_t count = 1;
    assert_int_not_equal(
        f.ops->receive(f.session, fixture_in(SECONDS(1)), &message, 1, &count, &f.error), WB_OK);
    assert_int_equal(count, 0);
    fixture_close(&f);
    command("KAFKA_RESTART");
    fixture_open(&f, 10);
    assert_int_equal(fixture_send(&f, operations, 2), WB_OK);
    fixture_end(&f);
}

/* With messages in hand, and a transaction open. */
static void close_without_broker(int mode)
{
    const wb_incoming *messages[3];
    fixture f;
    fixture_prepare(&f);
    f.endpoint.mode = mode;
    f.config.connect_timeout = SECONDS(5);
    fixture_create(&f);
    assert_int_equal(f.ops->install(f.transport, &f.error), WB_OK);
    fixture sender = f;
    assert_int_equal(f.ops->open(f.transport, WB_SESSION_SEND, 1, &sender.session, &f.error), WB_OK);
    fixture_fill(&sender, 3);
    fixture_close(&sender);
    fixture_open(&f, 10);
    fixture_receive(&f, messages, 3);
    if (mode == WB_MODE_SENDS_ATOMIC) {
        assert_int_equal(f.ops->begin(f.session, &f.error), WB_OK);
        wb_operation operation = fixture_operation(f.queue, "t", "t");
        assert_int_equal(fixture_send(&f, &operation, 1), WB_OK);
    }
    fixture_acknowledge(&f, messages, 1);
    command("KAFKA_CRASH");
    int64_t start = wb_clock_monotonic();
    fixture_close(&f);
    printf("# closed after %d ms\n", (int)(since(start) / WB_MILLISECOND));
    assert_true(since(start) < SECONDS(20));
    int result = f.ops->open(f.transport, WB_SESSION_SEND, 1, &f.session, &f.error);
    fixture_assert_failed(&f, result, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, "reach the brokers");
    command("KAFKA_RESTART");
    fixture_open(&f, 10);
    fixture_receive(&f, messages, 2);
    fixture_end(&f);
}

static void test_close(void **state)
{
    (void)state;
    close_without_broker(WB_MODE_RECEIVE_ONLY);
}

static void test_close_in_transaction(void **state)
{
    (void)state;
    close_without_broker(WB_MODE_SENDS_ATOMIC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_restart),
        cmocka_unit_test(test_send_in_doubt),
        cmocka_unit_test(test_close),
        cmocka_unit_test(test_close_in_transaction),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
