/* SPDX-License-Identifier: Apache-2.0
 *
 * The amqp transport and who has which message: orderly stops give nothing back, slow
 * handlers keep nothing from others, a smaller prefetch holds at once.
 */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/integration/amqp-fixture.h"

#define MANY 64

static void acknowledge(fixture *f, const wb_incoming *const *messages, size_t count)
{
    if (f->ops->acknowledge(f->session, messages, count, &f->error) != WB_OK)
        fail_msg("acknowledge: %s", f->error.text);
}

static void stop_receiving(fixture *f)
{
    assert_true(WB_HAS(f->ops, wb_transport_ops, stop_receiving));
    if (f->ops->stop_receiving(f->session, &f->error) != WB_OK)
        fail_msg("stop_receiving: %s", f->error.text);
}

static void release_prefetched(fixture *f)
{
    assert_true(WB_HAS(f->ops, wb_transport_ops, release_prefetched));
    f->ops->release_prefetched(f->session);
}

/* One receive() with a long deadline, which must not be used. */
static size_t receive_at_once(fixture *f, const wb_incoming **messages, size_t max)
{
    size_t count = 0;
    int64_t then = wb_clock_monotonic();
    if (f->ops->receive(f->session, fixture_in(SECONDS(20)), messages, max, &count, &f->error) !=
        WB_OK)
        fail_msg("receive: %s", f->error.text);
    assert_true(wb_clock_monotonic() - then < SECONDS(2));
    return count;
}

/* Another session of the same endpoint, its worker idle. */
static wb_transport_session *open_another(fixture *f, uint32_t prefetch)
{
    wb_transport_session *first = f->session;
    fixture_open(f, prefetch);
    wb_transport_session *second = f->session;
    f->session = first;
    return second;
}

static void swap(fixture *f, wb_transport_session **other)
{
    wb_transport_session *session = f->session;
    f->session = *other;
    *other = session;
}

/* ---- stops ----------------------------------------------------------------------- */

static void test_stop(void **state)
{
    fixture f;
    const wb_incoming *messages[MANY];
    (void)state;
    fixture_begin(&f, 10);
    fixture_fill(&f, 20);
    fixture_receive(&f, messages, 3);
    stop_receiving(&f);
    stop_receiving(&f); /* twice is once */
    size_t count = 3;
    for (size_t got = 1; got; count += got) {
        assert_true(count <= 10);
        got = receive_at_once(&f, messages + count, 4);
    }
    assert_in_range(count, 3, 10);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(messages[i]->delivery_count, 0);
    fixture_fill(&f, 1); /* sending goes on */
    acknowledge(&f, messages, count);
    assert_int_equal(receive_at_once(&f, messages, 1), 0);
    fixture_close(&f);
    fixture_open(&f, MANY);
    fixture_receive(&f, messages, 21 - count);
    for (size_t i = 0; i < 21 - count; i++)
        assert_int_equal(messages[i]->delivery_count, 0);
    acknowledge(&f, messages, 21 - count);
    fixture_receive_none(&f);
    fixture_end(&f);
}

/* Bodies that fill the memory for what waits: the answer stands behind them. */
static void test_stop_with_a_backlog(void **state)
{
    enum { COUNT = 20, SIZE = 4 << 20 };
    fixture f;
    const wb_incoming *messages[COUNT];
    (void)state;
    fixture_begin(&f, 1);
    char *body = calloc(1, SIZE);
    assert_non_null(body);
    for (int i = 0; i < COUNT; i++) {
        wb_operation operation = fixture_operation(f.queue, "large", "");
        operation.body = body;
        operation.body_size = SIZE;
        assert_int_equal(fixture_send(&f, &operation, 1), WB_OK);
    }
    free(body);
    fixture_close(&f);
    fixture_open(&f, COUNT);
    fixture_receive(&f, messages, 1);
    stop_receiving(&f);
    size_t count = 1;
    for (size_t got = 1; got; count += got) {
        acknowledge(&f, messages, 1);
        got = receive_at_once(&f, messages, 1);
    }
    fixture_close(&f);
    fixture_open(&f, COUNT);
    for (; count < COUNT; count++) {
        fixture_receive(&f, messages, 1);
        assert_int_equal(messages[0]->delivery_count, 0);
        acknowledge(&f, messages, 1);
    }
    fixture_end(&f);
}

static void declare_limited(const char *queue, int limit)
{
    amqp_table_entry_t arguments[] = {
        { amqp_cstring_bytes("x-queue-type"),
          { .kind = AMQP_FIELD_KIND_UTF8, .value.bytes = amqp_cstring_bytes("quorum") } },
        { amqp_cstring_bytes("x-delivery-limit"),
          { .kind = AMQP_FIELD_KIND_I32, .value.i32 = limit } },
    };
    amqp_connection_state_t client = client_open();
    assert_non_null(amqp_queue_declare(client, 1, amqp_cstring_bytes(queue), 0, 1, 0, 0,
                                       (amqp_table_t){ 2, arguments }));
    client_close(client);
}

/* Everything that is in hand when it stops is handled; nothing of it came before. */
static size_t handle_and_stop(fixture *f, char *seen)
{
    const wb_incoming *messages[MANY];
    size_t count = 1;
    fixture_receive(f, messages, 1);
    stop_receiving(f);
    for (size_t got = 1; got; count += got)
        got = receive_at_once(f, messages + count, 1);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(messages[i]->delivery_count, 0);
        seen[atoi(messages[i]->id + 2)]++;
    }
    acknowledge(f, messages, count);
    fixture_close(f);
    return count;
}

/* The broker drops what was given back four times: five orderly stops with everything
 * prefetched lose nothing, because they give nothing back. */
static void test_stops_lose_nothing(void **state)
{
    enum { COUNT = 60, STOPS = 5 };
    fixture f;
    const wb_incoming *messages[COUNT];
    char seen[COUNT] = { 0 };
    size_t total = 0;
    (void)state;
    fixture_prepare(&f);
    fixture_create(&f);
    declare_limited(f.queue, 3);
    if (f.ops->install(f.transport, &f.error) != WB_OK)
        fail_msg("install: %s", f.error.text);
    fixture_open(&f, 6);
    fixture_fill(&f, COUNT);
    for (int stop = 0; stop < STOPS; stop++) {
        if (stop)
            fixture_open(&f, 6);
        total += handle_and_stop(&f, seen);
    }
    fixture_open(&f, COUNT);
    fixture_receive(&f, messages, COUNT - total);
    for (size_t i = 0; i < COUNT - total; i++) {
        assert_int_equal(messages[i]->delivery_count, 0);
        seen[atoi(messages[i]->id + 2)]++;
    }
    acknowledge(&f, messages, COUNT - total);
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(seen[i], 1);
    fixture_receive_none(&f);
    fixture_end(&f);
}

/* ---- slow handlers --------------------------------------------------------------- */

static void release_with(int32_t tls)
{
    static char ca[512];
    fixture f;
    const wb_incoming *held, *messages[MANY];
    fixture_prepare(&f);
    (void)snprintf(ca, sizeof ca, "%s/ca.pem", fixture_directory());
    f.config.tls = tls;
    f.config.tls_ca_file = ca;
    f.config.port = fixture_port(tls == WB_AMQP_TLS_ON ? "AMQPS_PORT" : "AMQP_PORT");
    fixture_create(&f);
    assert_int_equal(f.ops->install(f.transport, &f.error), WB_OK);
    fixture_open(&f, 10);
    fixture_fill(&f, 10);
    fixture_receive(&f, &held, 1);
    wb_transport_session *other = open_another(&f, 20);
    release_prefetched(&f);
    swap(&f, &other);
    fixture_receive(&f, messages, 9);
    fixture_fill(&f, 5); /* nothing of these either */
    fixture_receive(&f, messages + 9, 5);
    acknowledge(&f, messages, 14);
    swap(&f, &other);
    /* It goes on where it asks for more. */
    acknowledge(&f, &held, 1);
    f.ops->close(other);
    fixture_fill(&f, 20);
    fixture_receive(&f, messages, 10);
    for (size_t i = 0; i < 10; i++)
        assert_int_equal(messages[i]->delivery_count, 0);
    release_prefetched(&f);
    release_prefetched(&f);
    acknowledge(&f, messages, 10);
    fixture_receive(&f, messages, 10);
    acknowledge(&f, messages, 10);
    fixture_receive_none(&f);
    fixture_end(&f);
}

static void test_release(void **state)
{
    (void)state;
    release_with(WB_AMQP_TLS_OFF);
}

static void test_release_tls(void **state)
{
    (void)state;
    release_with(WB_AMQP_TLS_ON);
}

static void *release_often(void *argument)
{
    fixture *f = argument;
    for (int i = 0; i < 400; i++) {
        f->ops->release_prefetched(f->session);
        (void)usleep(2500);
    }
    return NULL;
}

/* At any time, whatever the worker does: nothing is lost, nothing comes twice. */
static void test_release_at_any_time(void **state)
{
    enum { COUNT = 400 };
    static char seen[COUNT];
    fixture f;
    pthread_t thread;
    const wb_incoming *messages[8];
    (void)state;
    fixture_begin(&f, 8);
    fixture_fill(&f, COUNT);
    assert_int_equal(pthread_create(&thread, NULL, release_often, &f), 0);
    for (size_t total = 0; total < COUNT;) {
        size_t count = 0;
        if (f.ops->receive(f.session, fixture_in(SECONDS(20)), messages, 8, &count, &f.error) !=
                WB_OK ||
            count == 0)
            fail_msg("receive: %zu %s", count, f.error.text);
        for (size_t i = 0; i < count; i++)
            assert_int_equal(seen[atoi(messages[i]->id + 2)]++, 0);
        (void)usleep(4000);
        acknowledge(&f, messages, count);
        total += count;
    }
    (void)pthread_join(thread, NULL);
    fixture_receive_none(&f);
    fixture_end(&f);
}

/* A session that is released and then stops has nothing more to hand out. */
static void test_release_and_stop(void **state)
{
    fixture f;
    const wb_incoming *messages[MANY];
    (void)state;
    fixture_begin(&f, 10);
    fixture_fill(&f, 10);
    fixture_receive(&f, messages, 1);
    release_prefetched(&f);
    (void)usleep(300000);
    stop_receiving(&f);
    assert_int_equal(receive_at_once(&f, messages + 1, 1), 0);
    acknowledge(&f, messages, 1);
    fixture_close(&f);
    fixture_open(&f, 10);
    fixture_receive(&f, messages, 9);
    acknowledge(&f, messages, 9);
    fixture_end(&f);
}

/* ---- prefetch -------------------------------------------------------------------- */

/* Ten are in hand and two are wanted: the others are for others, at once. */
static void test_smaller_prefetch(void **state)
{
    fixture f;
    const wb_incoming *messages[MANY], *others[MANY];
    (void)state;
    fixture_begin(&f, 10);
    fixture_fill(&f, 10);
    fixture_receive(&f, messages, 5);
    assert_int_equal(f.ops->set_prefetch(f.session, 2, &f.error), WB_OK);
    fixture_fill(&f, 10);
    fixture_receive(&f, messages + 5, 5);
    fixture_receive_none(&f);
    wb_transport_session *other = open_another(&f, 20);
    swap(&f, &other);
    fixture_receive(&f, others, 10);
    acknowledge(&f, others, 10);
    swap(&f, &other);
    acknowledge(&f, messages, 9);
    f.ops->close(other);
    fixture_fill(&f, 4);
    fixture_receive(&f, others, 2); /* one in hand, two more is what a consumer gets */
    fixture_receive_none(&f);
    acknowledge(&f, others, 2);
    fixture_receive(&f, others, 2);
    acknowledge(&f, others, 2);
    acknowledge(&f, messages + 9, 1);
    fixture_receive_none(&f);
    fixture_end(&f);
}

/* Changed all the time, between answers of the broker: nothing is lost, nothing comes
 * twice, and the channel lives. */
static void test_prefetch_at_any_time(void **state)
{
    enum { COUNT = 400 };
    static char seen[COUNT];
    fixture f;
    const wb_incoming *messages[8];
    (void)state;
    fixture_begin(&f, 1);
    fixture_fill(&f, COUNT);
    for (size_t total = 0, changes = 1; total < COUNT; changes++) {
        size_t count = 0;
        for (size_t i = 0; i < changes % 4; i++)
            assert_int_equal(
                f.ops->set_prefetch(f.session, (uint32_t)(changes * 7 + i * 3) % 11, &f.error),
                WB_OK);
        if (f.ops->receive(f.session, fixture_in(SECONDS(20)), messages, 8, &count, &f.error) !=
                WB_OK ||
            count == 0)
            fail_msg("receive: %zu %s", count, f.error.text);
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(messages[i]->delivery_count, 0);
            assert_int_equal(seen[atoi(messages[i]->id + 2)]++, 0);
        }
        acknowledge(&f, messages, count);
        total += count;
    }
    fixture_receive_none(&f);
    fixture_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_stop_with_a_backlog),
        cmocka_unit_test(test_stops_lose_nothing),
        cmocka_unit_test(test_release),
        cmocka_unit_test(test_release_tls),
        cmocka_unit_test(test_release_at_any_time),
        cmocka_unit_test(test_release_and_stop),
        cmocka_unit_test(test_smaller_prefetch),
        cmocka_unit_test(test_prefetch_at_any_time),
    };
    return cmocka_run_group_tests_name("amqp stops", tests, NULL, NULL);
}
