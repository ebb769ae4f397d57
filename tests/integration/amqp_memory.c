/* SPDX-License-Identifier: Apache-2.0
 *
 * The amqp transport and messages over the endpoint's limits: memory stays bounded, they
 * arrive whole or with a reason, and who has to wait for memory hangs nobody.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/integration/amqp-fixture.h"

#define MIB ((size_t)1 << 20)
#define LARGE (19 * MIB)

static void acknowledge(fixture *f, const wb_incoming *const *messages, size_t count)
{
    if (f->ops->acknowledge(f->session, messages, count, &f->error) != WB_OK)
        fail_msg("acknowledge: %s", f->error.text);
}

/* ---- how much memory ------------------------------------------------------------- */

static size_t peak(void)
{
    char line[128];
    size_t size = 0;
    FILE *file = fopen("/proc/self/status", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        (void)sscanf(line, "VmHWM: %zu", &size);
    (void)fclose(file);
    return size * 1024;
}

/* The peak so far is forgotten. */
static size_t new_peak(void)
{
    FILE *file = fopen("/proc/self/clear_refs", "w");
    assert_non_null(file);
    assert_true(fputs("5", file) >= 0);
    assert_int_equal(fclose(file), 0);
    return peak();
}

/* ---- sending --------------------------------------------------------------------- */

static void send_sized(fixture *f, const char *id, size_t size)
{
    wb_operation operation = fixture_operation(f->queue, id, "");
    char *body = malloc(size + 1);
    assert_non_null(body);
    for (size_t i = 0; i < size; i++)
        body[i] = (char)(i * 13 + (i >> 12) + (size_t)id[0]);
    operation.body = body;
    operation.body_size = size;
    assert_int_equal(fixture_send(f, &operation, 1), WB_OK);
    assert_int_equal(operation.result, WB_OK);
    free(body);
}

static void expect_sized(const wb_incoming *message, const char *id, size_t size)
{
    const char *body = message->body;
    assert_string_equal(message->id, id);
    assert_null(message->problem);
    assert_int_equal(message->body_size, size);
    for (size_t i = 0; i < size; i++) {
        if (body[i] != (char)(i * 13 + (i >> 12) + (size_t)id[0]))
            fail_msg("byte %zu of %s is another", i, id);
    }
}

/* A queue with these, and nobody connected; bodies over 1 MiB are over the limit. */
static void prepare(fixture *f, const char *vhost, int64_t heartbeat)
{
    fixture_prepare(f);
    f->endpoint.body_max = (int64_t)MIB;
    f->config.heartbeat = heartbeat;
    f->config.vhost = vhost;
    fixture_create(f);
    if (f->ops->install(f->transport, &f->error) != WB_OK)
        fail_msg("install: %s", f->error.text);
}

static void send_all(fixture *f, const char *ids, const size_t *sizes)
{
    fixture_open(f, 1);
    fixture_close(f);
    assert_int_equal(f->ops->open(f->transport, WB_SESSION_SEND, 0, &f->session, &f->error), WB_OK);
    for (size_t i = 0; ids[i]; i++)
        send_sized(f, (const char[]){ ids[i], '\0' }, sizes[i]);
    fixture_close(f);
}

/* ---- bodies ---------------------------------------------------------------------- */

/* Three sessions, twelve messages, one after the other through the process. */
static void test_large_bodies(void **state)
{
    enum { SESSIONS = 3, COUNT = 12 };
    size_t sizes[COUNT];
    wb_transport_session *sessions[SESSIONS];
    unsigned seen = 0;
    fixture f;
    (void)state;
    for (size_t i = 0; i < COUNT; i++)
        sizes[i] = LARGE;
    prepare(&f, "/", SECONDS(1));
    send_all(&f, "abcdefghijkl", sizes);
    size_t before = new_peak();
    for (size_t i = 0; i < SESSIONS; i++) {
        fixture_open(&f, 4);
        sessions[i] = f.session;
    }
    (void)sleep(4); /* nobody takes any, all could be there */
    for (size_t i = 0; seen != (1 << COUNT) - 1; i++) {
        const wb_incoming *message;
        size_t count = 0;
        f.session = sessions[i % SESSIONS];
        if (f.ops->receive(f.session, fixture_in(WB_SECOND / 5), &message, 1, &count, &f.error) !=
            WB_OK)
            fail_msg("receive: %s", f.error.text);
        if (count == 0)
            continue;
        expect_sized(message, message->id, LARGE);
        seen |= 1u << (message->id[0] - 'a');
        acknowledge(&f, &message, 1);
    }
    size_t grown = peak() - before;
    /* One, and another while it grows: the allocator may copy. */
    if (grown > 3 * LARGE)
        fail_msg("%zu MiB for messages of %zu", grown / MIB, LARGE / MIB);
    for (size_t i = 0; i < SESSIONS; i++)
        f.ops->close(sessions[i]);
    f.session = NULL;
    fixture_end(&f);
}

static int64_t milliseconds_since(int64_t then)
{
    return (wb_clock_monotonic() - then) / (WB_SECOND / 1000);
}

/* One session has a large message in hand; the other's next one is as large. */
static void begin_waiting(fixture *holder, fixture *waiter, const wb_incoming **ret_held)
{
    static const size_t sizes[] = { LARGE, 5, LARGE };
    prepare(holder, "/", SECONDS(1));
    prepare(waiter, "/", SECONDS(1));
    send_all(holder, "h", sizes);
    send_all(waiter, "wxy", sizes);
    fixture_open(holder, 1);
    fixture_receive(holder, ret_held, 1);
    fixture_open(waiter, 3);
    fixture_receive_none(waiter);
}

/* For eight heartbeats, and longer than sockets hold data. */
static void test_waiting(void **state)
{
    fixture holder, waiter;
    const wb_incoming *held, *message;
    size_t count;
    (void)state;
    begin_waiting(&holder, &waiter, &held);
    int64_t then = wb_clock_monotonic();
    (void)sleep(8);
    waiter.ops->interrupt(waiter.session);
    if (waiter.ops->receive(waiter.session, fixture_in(SECONDS(20)), &message, 1, &count,
                            &waiter.error) != WB_OK)
        fail_msg("receive: %s", waiter.error.text);
    assert_int_equal(count, 0);
    assert_in_range(milliseconds_since(then), 8000, 12000);
    wb_operation operation = fixture_operation(waiter.queue, "z", "z");
    assert_int_equal(fixture_send(&waiter, &operation, 1), WB_OK); /* sending goes on */
    expect_sized(held, "h", LARGE);
    acknowledge(&holder, &held, 1);
    fixture_receive(&waiter, &message, 1);
    expect_sized(message, "w", LARGE);
    assert_int_equal(message->delivery_count, 0);
    acknowledge(&waiter, &message, 1);
    fixture_receive(&waiter, &message, 1);
    expect_sized(message, "x", 5);
    acknowledge(&waiter, &message, 1);
    fixture_receive(&waiter, &message, 1);
    expect_sized(message, "y", LARGE);
    acknowledge(&waiter, &message, 1);
    fixture_receive(&waiter, &message, 1);
    acknowledge(&waiter, &message, 1);
    fixture_end(&waiter);
    fixture_end(&holder);
}

/* The broker hangs up when nobody reads for 30 seconds: neither who waits for the process's
 * memory nor who has enough to do while its handler is slow lets it come to that. */
static void test_unread(void **state)
{
    enum { COUNT = 12, SIZE = 4 << 20 };
    static const size_t sizes[COUNT] = { SIZE, SIZE, SIZE, SIZE, SIZE, SIZE,
                                         SIZE, SIZE, SIZE, SIZE, SIZE, SIZE };
    fixture holder, waiter, busy;
    const wb_incoming *held, *message;
    (void)state;
    begin_waiting(&holder, &waiter, &held);
    prepare(&busy, "/", SECONDS(1));
    busy.endpoint.body_max = SIZE;
    send_all(&busy, "abcdefghijkl", sizes);
    fixture_open(&busy, COUNT);
    const wb_incoming *handled;
    fixture_receive(&busy, &handled, 1);
    (void)sleep(35);
    acknowledge(&busy, &handled, 1);
    for (size_t i = 1; i < COUNT; i++) {
        fixture_receive(&busy, &message, 1);
        acknowledge(&busy, &message, 1);
    }
    fixture_receive_none(&busy);
    /* What it gave back stood before this. */
    fixture_receive(&waiter, &message, 1);
    expect_sized(message, "x", 5);
    acknowledge(&waiter, &message, 1);
    fixture_receive_none(&waiter);
    acknowledge(&holder, &held, 1);
    for (size_t i = 0; i < 2; i++) {
        fixture_receive(&waiter, &message, 1);
        assert_int_equal(message->delivery_count, 1);
        acknowledge(&waiter, &message, 1);
    }
    fixture_receive_none(&waiter);
    fixture_end(&busy);
    fixture_end(&waiter);
    fixture_end(&holder);
}

/* Whatever is asked of it meanwhile is done at once, and a session that ends lets the
 * next one in. */
static void test_calls_while_waiting(void **state)
{
    fixture holder, waiter;
    const wb_incoming *held, *message;
    size_t count = 1;
    (void)state;
    begin_waiting(&holder, &waiter, &held);
    int64_t then = wb_clock_monotonic();
    assert_int_equal(waiter.ops->set_prefetch(waiter.session, 2, &waiter.error), WB_OK);
    assert_int_equal(waiter.ops->stop_receiving(waiter.session, &waiter.error), WB_OK);
    assert_int_equal(waiter.ops->receive(waiter.session, fixture_in(SECONDS(20)), &message, 1,
                                         &count, &waiter.error),
                     WB_OK);
    assert_int_equal(count, 0);
    fixture_close(&waiter);
    assert_in_range(milliseconds_since(then), 0, 1900);
    fixture_open(&waiter, 3);
    fixture_receive_none(&waiter);
    fixture_close(&holder); /* still in hand */
    fixture_receive(&waiter, &message, 1);
    expect_sized(message, "w", LARGE);
    acknowledge(&waiter, &message, 1);
    fixture_end(&waiter);
    fixture_end(&holder);
}

/* Given back: somebody else gets it, and what stood behind it. */
static void test_release_while_waiting(void **state)
{
    fixture holder, waiter;
    const wb_incoming *held, *messages[3];
    wb_transport_session *busy;
    (void)state;
    begin_waiting(&holder, &waiter, &held);
    waiter.ops->release_prefetched(waiter.session);
    (void)usleep(500000);
    busy = waiter.session;
    fixture_open(&waiter, 3);
    acknowledge(&holder, &held, 1);
    for (size_t i = 0; i < 3; i++) {
        fixture_receive(&waiter, messages, 1);
        assert_int_equal(messages[0]->delivery_count, 1);
        acknowledge(&waiter, messages, 1);
    }
    waiter.ops->close(busy);
    fixture_end(&waiter);
    fixture_end(&holder);
}

/* Its worker is busy elsewhere when the holder's connection dies: its memory is given up
 * all the same. */
static void test_dead_holder(void **state)
{
    static const size_t sizes[] = { LARGE };
    fixture holder, waiter;
    const wb_incoming *message;
    (void)state;
    fixture_broker("ctl", "add_vhost other");
    fixture_broker("ctl", "set_permissions -p other guest '.*' '.*' '.*'");
    prepare(&holder, "other", SECONDS(1));
    prepare(&waiter, "/", SECONDS(1));
    send_all(&holder, "h", sizes);
    send_all(&waiter, "w", sizes);
    fixture_open(&holder, 1);
    (void)sleep(3); /* it is read, and nobody takes it */
    fixture_open(&waiter, 1);
    fixture_receive_none(&waiter);
    fixture_broker("ctl", "close_all_connections -p other test");
    fixture_receive(&waiter, &message, 1);
    expect_sized(message, "w", LARGE);
    acknowledge(&waiter, &message, 1);
    fixture_end(&waiter);
    fixture_end(&holder);
}

/* ---- headers --------------------------------------------------------------------- */

static void publish_headers(const char *queue, int count, size_t messages)
{
    static char names[9000][8];
    static amqp_table_entry_t entries[9000];
    amqp_bytes_t name = amqp_cstring_bytes(queue);
    amqp_basic_properties_t properties = { ._flags = AMQP_BASIC_HEADERS_FLAG | AMQP_BASIC_TYPE_FLAG,
                                           .headers = { count, entries },
                                           .type = amqp_cstring_bytes("Some.Type") };
    for (int i = 0; i < count; i++) {
        (void)snprintf(names[i], sizeof names[i], "%d", i);
        entries[i] = (amqp_table_entry_t){ amqp_cstring_bytes(names[i]),
                                           { .kind = AMQP_FIELD_KIND_VOID } };
    }
    amqp_connection_state_t client = client_open();
    for (size_t i = 0; i < messages; i++)
        assert_int_equal(amqp_basic_publish(client, 1, amqp_empty_bytes, name, 0, 0, &properties,
                                            amqp_cstring_bytes("x")),
                         0);
    client_close(client);
}

static void test_many_headers(void **state)
{
    enum { COUNT = 200 };
    static const wb_incoming *messages[COUNT];
    fixture f;
    (void)state;
    fixture_prepare(&f);
    f.endpoint.headers_max = 320;
    f.endpoint.headers_size_max = 64 << 10;
    fixture_create(&f);
    assert_int_equal(f.ops->install(f.transport, &f.error), WB_OK);
    publish_headers(f.queue, 319, 1);
    publish_headers(f.queue, 9000, COUNT - 1);
    size_t before = new_peak();
    fixture_open(&f, COUNT);
    fixture_receive(&f, messages, COUNT);
    size_t grown = peak() - before;
    if (grown > 12 * MIB)
        fail_msg("%zu MiB for %d messages", grown / MIB, COUNT);
    assert_null(messages[0]->problem);
    assert_int_equal(messages[0]->header_count, 320);
    for (size_t i = 1; i < COUNT; i++) {
        assert_int_equal(messages[i]->header_count, 320);
        assert_string_equal(
            messages[i]->problem,
            "the message has 9001 headers, more than 320: 320 of them were kept");
    }
    acknowledge(&f, messages, COUNT);
    fixture_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_large_bodies),
        cmocka_unit_test(test_waiting),
        cmocka_unit_test(test_unread),
        cmocka_unit_test(test_calls_while_waiting),
        cmocka_unit_test(test_release_while_waiting),
        cmocka_unit_test(test_dead_holder),
        cmocka_unit_test(test_many_headers),
    };
    return cmocka_run_group_tests_name("amqp memory", tests, NULL, NULL);
}
