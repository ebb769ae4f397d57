/* SPDX-License-Identifier: Apache-2.0
 *
 * The kafka transport against a real broker: installing and verifying, what becomes of
 * messages that are acknowledged, given back or abandoned, and partitions that move.
 */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plugins/transport/kafka/kafka-identity.h"
#include "tests/integration/kafka-fixture.h"

/* ---- topology -------------------------------------------------------------------- */

static void test_install(void **state)
{
    const char *types[2] = { NULL, "Ns.Twice, Assembly" };
    char type[160];
    fixture f;
    (void)state;
    fixture_prepare(&f);
    (void)snprintf(type, sizeof type, "%s.Installed, Assembly", f.queue);
    types[0] = types[1] = type;
    f.endpoint.types = types;
    f.endpoint.type_count = 2;
    f.config.partitions = 2;
    fixture_create(&f);
    int result = f.ops->verify(f.transport, &f.error);
    fixture_assert_failed(&f, result, WB_FATAL, WB_CAUSE_MISSING, "run waybill install");
    assert_non_null(strstr(f.error.text, f.queue));
    for (int again = 0; again < 2; again++) {
        assert_int_equal(f.ops->install(f.transport, &f.error), WB_OK);
        assert_int_equal(f.ops->verify(f.transport, &f.error), WB_OK);
    }
    *strchr(type, ',') = '\0';
    rd_kafka_t *client = client_open();
    /* Of others' topics it says nothing: not how they are made, nor how they must be. */
    assert_int_equal(client_count_partitions(client, f.queue), 2);
    assert_int_equal(client_count_partitions(client, type), 1);
    assert_int_equal(client_count_partitions(client, f.error_queue), 1);
    client_delete_topic(client, type);
    client_make_topic(client, type, 3);
    assert_int_equal(f.ops->install(f.transport, &f.error), WB_OK);
    assert_int_equal(f.ops->verify(f.transport, &f.error), WB_OK);
    client_delete_topic(client, type);
    client_close(client);
    result = f.ops->verify(f.transport, &f.error);
    fixture_assert_failed(&f, result, WB_FATAL, WB_CAUSE_MISSING, type);
    fixture_end(&f);
}

static void test_mismatch(void **state)
{
    fixture f;
    (void)state;
    fixture_prepare(&f);
    fixture_create(&f);
    rd_kafka_t *client = client_open();
    client_make_topic(client, f.queue, 2);
    client_close(client);
    int result = f.ops->install(f.transport, &f.error);
    fixture_assert_failed(&f, result, WB_FATAL, WB_CAUSE_MISMATCH, "partitions = 2");
    assert_non_null(strstr(f.error.text, f.queue));
    f.config.partitions = 2;
    f.config.replication = 3;
    result = f.ops->install(f.transport, &f.error);
    fixture_assert_failed(&f, result, WB_FATAL, WB_CAUSE_MISMATCH, "replication = 1");
    f.config.replication = -1;
    assert_int_equal(f.ops->install(f.transport, &f.error), WB_OK);
    f.endpoint.concurrency = 3;
    int warnings = fixture_warnings();
    assert_int_equal(f.ops->verify(f.transport, &f.error), WB_OK);
    assert_int_equal(fixture_warnings(), warnings + 1);
    f.config.partitions = 1;
    result = f.ops->verify(f.transport, &f.error);
    fixture_assert_failed(&f, result, WB_FATAL, WB_CAUSE_MISMATCH, "partitions = 2");
    fixture_end(&f);
}

static void *install_in_thread(void *argument)
{
    fixture *f = argument;
    if (f->ops->install(f->transport, &f->error) != WB_OK)
        return f->error.text;
    return NULL;
}

/* Two that install at a time both succeed. */
static void test_install_race(void **state)
{
    fixture f, g;
    pthread_t thread;
    void *failed;
    (void)state;
    fixture_prepare(&f);
    fixture_create(&f);
    g = f;
    assert_int_equal(pthread_create(&thread, NULL, install_in_thread, &g), 0);
    assert_null(install_in_thread(&f));
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_null(failed);
    fixture_end(&f);
}

static void test_refused(void **state)
{
    fixture f;
    (void)state;
    fixture_prepare(&f);
    fixture_create(&f);
    int result = f.ops->open(f.transport, WB_SESSION_RECEIVE, 1, &f.session, &f.error);
    fixture_assert_failed(&f, result, WB_NOT_CONNECTED, WB_CAUSE_MISSING, "run waybill install");
    f.config.brokers = "127.0.0.1:1";
    fixture_forget_lines();
    int64_t started = wb_clock_monotonic();
    result = f.ops->verify(f.transport, &f.error);
    fixture_assert_failed(&f, result, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, "127.0.0.1:1");
    result = f.ops->open(f.transport, WB_SESSION_SEND, 1, &f.session, &f.error);
    fixture_assert_failed(&f, result, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, "127.0.0.1:1");
    assert_true(wb_clock_monotonic() - started < SECONDS(8));
    assert_false(fixture_logged("librdkafka")); /* it is said here, once, and not at each of its tries */
    fixture_end(&f);
}

static void assert_gone(rd_kafka_t *client, const char *topic)
{
    for (int64_t end = fixture_in(SECONDS(30)); client_count_partitions(client, topic);)
        if (wb_clock_monotonic() > end)
            fail_msg("topic \"%s\" is there", topic);
}

/* An error topic that holds a message stays, whoever has read it; an empty one goes, and only when that is asked for. */
static void test_uninstall(void **state)
{
    char empty[160];
    const char *names[] = { empty };
    fixture f;
    (void)state;
    fixture_prepare(&f);
    (void)snprintf(empty, sizeof empty, "%s.type", f.error_queue);
    f.endpoint.error_queues = names;
    f.endpoint.error_queue_count = 1;
    fixture_create(&f);
    assert_int_equal(f.ops->install(f.transport, &f.error), WB_OK);
    rd_kafka_t *client = client_open();
    client_produce(client, f.error_queue, 0, "failed", 6, NULL);
    client_flush(client);
    assert_int_equal(f.ops->uninstall(f.transport, 0, &f.error), WB_OK);
    assert_gone(client, f.queue);
    assert_int_equal(client_count_partitions(client, empty), 1);
    assert_int_equal(f.ops->uninstall(f.transport, WB_UNINSTALL_ERROR_QUEUES, &f.error), WB_OK);
    assert_gone(client, empty); /* the other one would have gone before */
    assert_int_equal(client_count_partitions(client, f.error_queue), 1);
    client_close(client);
    fixture_end(&f);
}

/* ---- settling -------------------------------------------------------------------- */

/* The offset below which all is done, whatever the order. */
static void test_low_water(void **state)
{
    fixture f;
    const wb_incoming *messages[6];
    (void)state;
    fixture_begin(&f, 10);
    fixture_fill(&f, 6);
    fixture_receive(&f, messages, 6);
    fixture_acknowledge(&f, messages + 4, 1);
    fixture_acknowledge(&f, messages + 1, 2);
    fixture_close(&f);
    assert_int_equal(client_committed(f.queue, f.queue, 0, NULL, 0), 0);
    fixture_open(&f, 10);
    fixture_receive(&f, messages, 6);
    fixture_acknowledge(&f, messages, 4);
    fixture_acknowledge(&f, messages + 5, 1);
    fixture_close(&f);
    assert_int_equal(client_committed(f.queue, f.queue, 0, NULL, 0), 4);
    fixture_open(&f, 10);
    fixture_receive(&f, messages, 2);
    assert_string_equal(messages[0]->id, "m-4");
    fixture_acknowledge(&f, messages, 2);
    fixture_receive_none(&f);
    fixture_end(&f);
    assert_int_equal(client_committed(f.queue, f.queue, 0, NULL, 0), 6);
}

static void test_prefetch(void **state)
{
    fixture f;
    const wb_incoming *messages[8];
    size_t count;
    (void)state;
    fixture_begin(&f, 2);
    fixture_fill(&f, 8);
    fixture_receive(&f, messages, 1);
    assert_int_equal(f.ops->receive(f.session, fixture_in(SECONDS(5)), messages + 1, 7, &count, &f.error),
                     WB_OK);
    assert_int_equal(count, 1);
    fixture_receive_none(&f);
    assert_int_equal(f.ops->set_prefetch(f.session, 4, &f.error), WB_OK);
    fixture_receive(&f, messages + 2, 2);
    fixture_receive_none(&f);
    fixture_acknowledge(&f, messages, 4);
    fixture_receive(&f, messages, 4);
    assert_string_equal(messages[0]->id, "m-4");
    fixture_acknowledge(&f, messages, 4);
    fixture_end(&f);
}

static void test_give_back(void **state)
{
    fixture f;
    const wb_incoming *messages[8];
    const wb_incoming *two[2];
    (void)state;
    fixture_begin(&f, 10);
    fixture_fill(&f, 8);
    fixture_receive(&f, messages, 6);
    two[0] = messages[3];
    two[1] = messages[1];
    assert_int_equal(f.ops->give_back(f.session, two, 2, &f.error), WB_OK);
    /* In order, and before those that were not received yet. */
    fixture_receive(&f, two, 2);
    assert_string_equal(two[0]->id, "m-1");
    assert_string_equal(two[1]->id, "m-3");
    assert_int_equal(two[0]->delivery_count, 1);
    fixture_acknowledge(&f, two, 2);
    assert_int_equal(f.ops->give_back(f.session, messages, 1, &f.error), WB_OK);
    fixture_acknowledge(&f, messages + 4, 2);
    fixture_acknowledge(&f, messages + 2, 1);
    fixture_receive(&f, messages, 3);
    assert_string_equal(messages[0]->id, "m-0");
    assert_string_equal(messages[1]->id, "m-6");
    fixture_acknowledge(&f, messages, 3);
    fixture_end(&f);
    assert_int_equal(client_committed(f.queue, f.queue, 0, NULL, 0), 8);
}

static void test_mode_none(void **state)
{
    fixture f;
    const wb_incoming *messages[3];
    (void)state;
    fixture_prepare(&f);
    f.endpoint.mode = WB_MODE_NONE;
    fixture_start(&f, 10);
    fixture_fill(&f, 3);
    fixture_receive(&f, messages, 3);
    assert_int_equal(client_committed(f.queue, f.queue, 0, NULL, 0), 3);
    fixture_close(&f);
    fixture_open(&f, 10);
    fixture_receive_none(&f);
    fixture_end(&f);
}

static void test_retention(void **state)
{
    fixture f;
    const wb_incoming *messages[10];
    (void)state;
    fixture_begin(&f, 10);
    fixture_fill(&f, 10);
    fixture_receive(&f, messages, 2);
    fixture_acknowledge(&f, messages, 2);
    fixture_close(&f);
    rd_kafka_t *client = client_open();
    client_delete_records(client, f.queue, 7);
    client_close(client);
    fixture_open(&f, 10);
    fixture_receive(&f, messages, 3);
    assert_string_equal(messages[0]->id, "m-7");
    assert_true(fixture_logged("messages=5"));
    fixture_acknowledge(&f, messages, 3);
    fixture_end(&f);
}

/* ---- partitions that move --------------------------------------------------------- */

typedef struct worker {
    fixture *f;
    wb_transport_session *session;
    atomic_int *left;
    int received;
    int failed;
} worker;

static void *work(void *argument)
{
    worker *w = argument;
    const wb_transport_ops *ops = w->f->ops;
    const wb_incoming *messages[16];
    wb_error error;
    while (atomic_load(w->left) > 0) {
        size_t count = 0;
        if (ops->receive(w->session, fixture_in(SECONDS(1) / 5), messages, 16, &count, &error) != WB_OK ||
            (count && ops->acknowledge(w->session, messages, count, &error) != WB_OK)) {
            printf("# worker: %s\n", error.text);
            w->failed = 1;
            break;
        }
        w->received += (int)count;
        atomic_fetch_sub(w->left, (int)count);
    }
    return NULL;
}

/* Of two processes each message once: the first lets go of what it has in hand before the second
 * begins. */
static void test_two_processes(void **state)
{
    enum { COUNT = 1000 };
    static char keys[COUNT][8];
    static wb_operation operations[COUNT];
    atomic_int left = COUNT;
    const wb_incoming *messages[10];
    fixture f, other;
    pthread_t threads[2];
    (void)state;
    fixture_prepare(&f);
    f.config.partitions = 4;
    fixture_start(&f, 32);
    other = f;
    fixture_create(&other);
    for (int i = 0; i < COUNT; i++) {
        (void)snprintf(keys[i], sizeof keys[i], "%d", i % 50);
        operations[i] = fixture_operation(f.queue, keys[i], "x");
        operations[i].key = keys[i];
        operations[i].key_size = strlen(keys[i]);
    }
    assert_int_equal(fixture_send(&f, operations, COUNT), WB_OK);
    fixture_receive(&f, messages, 10);
    worker workers[2] = { { .f = &f, .session = f.session, .left = &left },
                          { .f = &other, .left = &left } };
    assert_int_equal(f.ops->open(other.transport, WB_SESSION_RECEIVE, 32, &workers[1].session,
                                 &f.error),
                     WB_OK);
    const wb_incoming *first;
    size_t count;
    assert_int_equal(f.ops->receive(workers[1].session, fixture_in(SECONDS(1)), &first, 1, &count,
                                    &f.error),
                     WB_OK);
    assert_int_equal(count, 0);
    fixture_acknowledge(&f, messages, 10);
    assert_int_equal(f.ops->receive(workers[1].session, fixture_in(SECONDS(30)), &first, 1, &count,
                                    &f.error),
                     WB_OK);
    assert_int_equal(count, 1);
    assert_int_equal(f.ops->acknowledge(workers[1].session, &first, 1, &f.error), WB_OK);
    atomic_fetch_sub(&left, 11);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(workers[i].failed, 0);
    }
    assert_int_equal(workers[0].received + workers[1].received + 11, COUNT);
    assert_true(workers[0].received > 0);
    f.ops->close(workers[1].session);
    other.session = NULL;
    fixture_end(&other);
    fixture_end(&f);
    int64_t committed = 0;
    for (int32_t partition = 0; partition < 4; partition++) {
        int64_t offset = client_committed(f.queue, f.queue, partition, NULL, 0);
        committed += offset > 0 ? offset : 0;
    }
    assert_int_equal(committed, COUNT);
}

/* A handler may take longer than max.poll.interval.ms. */
static void test_long_handler(void **state)
{
    static const char *const names[] = { "max.poll.interval.ms" };
    static const char *const values[] = { "6000" };
    const wb_option_map map = { 1, names, values };
    const wb_incoming *messages[2];
    fixture f;
    (void)state;
    fixture_prepare(&f);
    f.config.properties = &map;
    fixture_start(&f, 10);
    fixture_fill(&f, 2);
    fixture_receive(&f, messages, 1);
    int warnings = fixture_warnings();
    (void)sleep(8); /* nothing to await: it is about time that passes */
    fixture_acknowledge(&f, messages, 1);
    fixture_receive(&f, messages, 1);
    assert_string_equal(messages[0]->id, "m-1");
    fixture_acknowledge(&f, messages, 1);
    assert_int_equal(fixture_warnings(), warnings);
    fixture_end(&f);
    assert_int_equal(client_committed(f.queue, f.queue, 0, NULL, 0), 2);
}

/* ---- interrupt, twins, purposes --------------------------------------------------- */

static void *interrupt(void *argument)
{
    fixture *f = argument;
    (void)usleep(200000);
    f->ops->interrupt(f->session);
    return NULL;
}

static void test_interrupt(void **state)
{
    const wb_incoming *message;
    fixture f;
    pthread_t thread;
    size_t count = 9;
    (void)state;
    fixture_begin(&f, 10);
    int64_t started = wb_clock_monotonic();
    assert_int_equal(pthread_create(&thread, NULL, interrupt, &f), 0);
    assert_int_equal(f.ops->receive(f.session, fixture_in(SECONDS(60)), &message, 1, &count, &f.error),
                     WB_OK);
    assert_int_equal(count, 0);
    assert_true(wb_clock_monotonic() - started < SECONDS(30));
    assert_int_equal(pthread_join(thread, NULL), 0);
    /* Also the next one, when none waits. */
    f.ops->interrupt(f.session);
    assert_int_equal(f.ops->receive(f.session, fixture_in(SECONDS(60)), &message, 1, &count, &f.error),
                     WB_OK);
    assert_int_equal(count, 0);
    fixture_end(&f);
}

/* Whoever comes second under a name takes the place of the first, which is told so, and with
 * time, when neither gives in, that it is not alone. */
static void test_twin(void **state)
{
    const wb_incoming *message;
    fixture f, twin;
    size_t count;
    int result;
    (void)state;
    fixture_prepare(&f);
    f.config.instance = "same";
    fixture_start(&f, 10);
    fixture_fill(&f, 1);
    fixture_receive(&f, &message, 1);
    twin = f;
    fixture_create(&twin);
    fixture_open(&twin, 10);
    fixture_receive(&twin, &message, 1);
    fixture_acknowledge(&twin, &message, 1);
    do
        result = f.ops->receive(f.session, fixture_in(SECONDS(20)), &message, 1, &count, &f.error);
    while (result == WB_OK && count);
    fixture_assert_failed(&f, result, WB_NOT_CONNECTED, WB_CAUSE_OTHER, "same instance name");
    fixture_end(&twin);
    fixture_end(&f);
}

/* @return what the twin is told when the other has come (again). */
static int fence(fixture *f, fixture *twin)
{
    const wb_incoming *message;
    size_t count;
    int result;
    fixture_close(f);
    fixture_open(f, 10);
    do
        result = twin->ops->receive(twin->session, fixture_in(SECONDS(20)), &message, 1, &count,
                                    &twin->error);
    while (result == WB_OK && count);
    return result;
}

static void test_twins_for_long(void **state)
{
    fixture f, twin;
    int result = WB_NOT_CONNECTED, fences = 0;
    (void)state;
    fixture_prepare(&f);
    f.config.instance = "same";
    fixture_start(&f, 10);
    twin = f;
    fixture_create(&twin);
    fixture_open(&twin, 10);
    for (; result == WB_NOT_CONNECTED && fences < 2 * WB_KAFKA_FENCES; fences++) {
        fixture *one = fences % 2 ? &f : &twin, *other = fences % 2 ? &twin : &f;
        result = fence(one, other);
        if (result != WB_OK)
            fixture_assert_failed(other, result, result, WB_CAUSE_OTHER, "same instance name");
    }
    assert_int_equal(result, WB_FATAL);
    fixture_end(&twin);
    fixture_end(&f);
}

static void test_purpose(void **state)
{
    const wb_incoming *message;
    fixture f;
    size_t count;
    (void)state;
    fixture_prepare(&f);
    fixture_create(&f);
    assert_int_equal(f.ops->open(f.transport, WB_SESSION_SEND, 1, &f.session, &f.error), WB_OK);
    int result = f.ops->receive(f.session, fixture_in(SECONDS(1)), &message, 1, &count, &f.error);
    fixture_assert_failed(&f, result, WB_FATAL, WB_CAUSE_OTHER, "not opened to receive");
    f.ops->interrupt(f.session);
    fixture_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_install),        cmocka_unit_test(test_mismatch),
        cmocka_unit_test(test_install_race),   cmocka_unit_test(test_refused),
        cmocka_unit_test(test_uninstall),
        cmocka_unit_test(test_low_water),      cmocka_unit_test(test_prefetch),
        cmocka_unit_test(test_give_back),      cmocka_unit_test(test_mode_none),
        cmocka_unit_test(test_retention),      cmocka_unit_test(test_two_processes),
        cmocka_unit_test(test_long_handler),   cmocka_unit_test(test_interrupt),
        cmocka_unit_test(test_twin),           cmocka_unit_test(test_twins_for_long),
        cmocka_unit_test(test_purpose),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
