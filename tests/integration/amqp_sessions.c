/* SPDX-License-Identifier: Apache-2.0
 *
 * The amqp transport against a real broker: installing, verifying, connecting, and
 * what becomes of messages that are acknowledged, given back or abandoned.
 */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/integration/amqp-fixture.h"

static void assert_failed(const fixture *f, int got, int result, int cause, const char *text)
{
    if (got != result || f->error.cause != cause || !strstr(f->error.text, text))
        fail_msg("result %d cause %d: %s", got, f->error.cause, f->error.text);
}

static void acknowledge(fixture *f, const wb_incoming *const *messages, size_t count)
{
    if (f->ops->acknowledge(f->session, messages, count, &f->error) != WB_OK)
        fail_msg("acknowledge: %s", f->error.text);
}

/* ---- topology -------------------------------------------------------------------- */

static void test_install(void **state)
{
    static const char *const types[] = { "Test.Installed", "Command" };
    fixture f;
    (void)state;
    fixture_prepare(&f);
    f.endpoint.types = types;
    f.endpoint.type_count = 2;
    fixture_create(&f);
    int result = f.ops->verify(f.transport, &f.error);
    assert_failed(&f, result, WB_FATAL, WB_CAUSE_MISSING, "run waybill install");
    assert_non_null(strstr(f.error.text, f.queue));
    for (int again = 0; again < 2; again++) {
        assert_int_equal(f.ops->install(f.transport, &f.error), WB_OK);
        assert_int_equal(f.ops->verify(f.transport, &f.error), WB_OK);
    }
    client_delete_exchange("Test:Installed");
    result = f.ops->verify(f.transport, &f.error);
    assert_failed(&f, result, WB_FATAL, WB_CAUSE_MISSING, "Test:Installed");
    assert_int_equal(f.ops->install(f.transport, &f.error), WB_OK);
    client_delete_queue(f.error_queue);
    result = f.ops->verify(f.transport, &f.error);
    assert_failed(&f, result, WB_FATAL, WB_CAUSE_MISSING, f.error_queue);
    fixture_end(&f);
}

static void test_mismatch(void **state)
{
    fixture f;
    (void)state;
    fixture_prepare(&f);
    fixture_create(&f);
    client_declare_classic(f.queue);
    int result = f.ops->install(f.transport, &f.error);
    assert_failed(&f, result, WB_FATAL, WB_CAUSE_MISMATCH, "x-queue-type");
    assert_non_null(strstr(f.error.text, f.queue));
    f.config.queue_type = WB_AMQP_QUEUE_CLASSIC;
    assert_int_equal(f.ops->install(f.transport, &f.error), WB_OK);
    assert_int_equal(f.ops->verify(f.transport, &f.error), WB_OK);
    f.config.queue_type = WB_AMQP_QUEUE_QUORUM;
    result = f.ops->verify(f.transport, &f.error);
    assert_failed(&f, result, WB_FATAL, WB_CAUSE_MISMATCH, "x-queue-type");
    fixture_end(&f);
}

/* Others made the error queue, of another type than ours. */
static void test_error_queue_type(void **state)
{
    fixture f;
    (void)state;
    fixture_prepare(&f);
    fixture_create(&f);
    client_declare_classic(f.error_queue);
    int result = f.ops->install(f.transport, &f.error);
    assert_failed(&f, result, WB_FATAL, WB_CAUSE_MISMATCH, "set error_queue_type");
    f.config.error_queue_type = WB_AMQP_ERROR_QUEUE_CLASSIC;
    assert_int_equal(f.ops->install(f.transport, &f.error), WB_OK);
    assert_int_equal(f.ops->verify(f.transport, &f.error), WB_OK);
    client_delete_queue(f.queue);
    client_delete_queue(f.error_queue);
    f.config.queue_type = WB_AMQP_QUEUE_CLASSIC;
    f.config.error_queue_type = WB_AMQP_ERROR_QUEUE_QUORUM;
    assert_int_equal(f.ops->install(f.transport, &f.error), WB_OK);
    f.config.error_queue_type = WB_AMQP_ERROR_QUEUE_SAME;
    result = f.ops->verify(f.transport, &f.error);
    assert_failed(&f, result, WB_FATAL, WB_CAUSE_MISMATCH, "set error_queue_type");
    fixture_end(&f);
}

/* ---- connecting ------------------------------------------------------------------ */

static void test_refused(void **state)
{
    fixture f;
    (void)state;
    fixture_prepare(&f);
    fixture_create(&f);
    f.config.password = "wrong-secret";
    int result = f.ops->verify(f.transport, &f.error);
    assert_failed(&f, result, WB_FATAL, WB_CAUSE_REFUSED, "ACCESS_REFUSED");
    assert_null(strstr(f.error.text, "wrong-secret"));
    result = f.ops->open(f.transport, WB_SESSION_SEND, 1, &f.session, &f.error);
    assert_failed(&f, result, WB_FATAL, WB_CAUSE_REFUSED, "ACCESS_REFUSED");
    f.config.password = "guest";
    f.config.vhost = "no-such-vhost";
    result = f.ops->verify(f.transport, &f.error);
    assert_failed(&f, result, WB_FATAL, WB_CAUSE_MISSING, "no-such-vhost");
    f.config.vhost = "/";
    f.config.port = 1;
    result = f.ops->verify(f.transport, &f.error);
    assert_failed(&f, result, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, "port 1");
    f.config.port = fixture_port("AMQP_PORT");
    result = f.ops->open(f.transport, WB_SESSION_RECEIVE, 1, &f.session, &f.error);
    assert_failed(&f, result, WB_NOT_CONNECTED, WB_CAUSE_MISSING, "run waybill install");
    fixture_end(&f);
}

static int try_create(fixture *f)
{
    return f->ops->create(&f->host.host, &f->endpoint, &f->config, &f->transport, &f->error);
}

static void test_configuration(void **state)
{
    fixture f;
    (void)state;
    fixture_prepare(&f);
    f.config.host = "broker.example";
    f.config.tls = WB_AMQP_TLS_OFF;
    assert_failed(&f, try_create(&f), WB_FATAL, WB_CAUSE_CONFIG, "allow_insecure");
    f.config.allow_insecure = 1;
    assert_failed(&f, try_create(&f), WB_FATAL, WB_CAUSE_CONFIG, "guest");
    f.config.user = "orders";
    assert_int_equal(try_create(&f), WB_OK);
    f.ops->destroy(f.transport);
    f.config.tls_cert_file = "cert.pem";
    assert_failed(&f, try_create(&f), WB_FATAL, WB_CAUSE_CONFIG, "tls_key_file");
}

/* The broker has no way to log in by a certificate, and the error says what it lacks. */
static void test_external_not_offered(void **state)
{
    static char ca[512], certificate[512], key[512];
    fixture f;
    (void)state;
    (void)snprintf(ca, sizeof ca, "%s/ca.pem", fixture_directory());
    (void)snprintf(certificate, sizeof certificate, "%s/clerk.pem", fixture_directory());
    (void)snprintf(key, sizeof key, "%s/clerk.key", fixture_directory());
    fixture_prepare(&f);
    f.config.tls = WB_AMQP_TLS_ON;
    f.config.port = fixture_port("AMQPS_PORT");
    f.config.tls_ca_file = ca;
    f.config.tls_cert_file = certificate;
    f.config.tls_key_file = key;
    f.config.sasl = WB_AMQP_SASL_EXTERNAL;
    fixture_create(&f);
    int result = f.ops->install(f.transport, &f.error);
    assert_failed(&f, result, WB_FATAL, WB_CAUSE_REFUSED, "rabbitmq_auth_mechanism_ssl");
    fixture_end(&f);
}

static void test_tls(void **state)
{
    static char ca[512];
    static unsigned char body[3 << 20];
    fixture f;
    (void)state;
    fixture_prepare(&f);
    fixture_create(&f);
    f.config.tls = WB_AMQP_TLS_ON;
    f.config.port = fixture_port("AMQPS_PORT");
    int result = f.ops->install(f.transport, &f.error);
    assert_failed(&f, result, WB_FATAL, WB_CAUSE_REFUSED, "certificate");
    (void)snprintf(ca, sizeof ca, "%s/ca.pem", fixture_directory());
    f.config.tls_ca_file = ca;
    f.config.host = "127.0.0.1"; /* not a name in the certificate */
    result = f.ops->install(f.transport, &f.error);
    assert_failed(&f, result, WB_FATAL, WB_CAUSE_REFUSED, "certificate");
    f.config.host = "localhost";
    if (f.ops->install(f.transport, &f.error) != WB_OK)
        fail_msg("install: %s", f.error.text);
    fixture_open(&f, 100);
    fixture_fill(&f, 50);
    for (size_t i = 0; i < sizeof body; i++)
        body[i] = (unsigned char)(i * 7);
    wb_operation operations[] = { fixture_operation("nowhere", "n", "n"),
                                  fixture_operation(f.queue, "large", "") };
    operations[1].body = body;
    operations[1].body_size = sizeof body;
    assert_int_equal(fixture_send(&f, operations, 2), WB_OK);
    assert_int_equal(operations[0].result, WB_REJECT);
    assert_int_equal(operations[1].result, WB_OK);
    const wb_incoming *messages[51];
    fixture_receive(&f, messages, 51);
    assert_int_equal(messages[50]->body_size, sizeof body);
    assert_memory_equal(messages[50]->body, body, sizeof body);
    acknowledge(&f, messages, 51);
    fixture_receive_none(&f);
    fixture_end(&f);
}

/* ---- settling -------------------------------------------------------------------- */

static void test_delivery_count(void **state)
{
    fixture f;
    const wb_incoming *message;
    (void)state;
    fixture_begin(&f, 1);
    fixture_fill(&f, 1);
    for (uint32_t count = 0; count < 3; count++) {
        fixture_receive(&f, &message, 1);
        assert_int_equal(message->delivery_count, count);
        assert_int_equal(f.ops->give_back(f.session, &message, 1, &f.error), WB_OK);
    }
    /* A session that ends with a message in hand counts as well. */
    fixture_receive(&f, &message, 1);
    assert_int_equal(message->delivery_count, 3);
    fixture_close(&f);
    fixture_open(&f, 1);
    fixture_receive(&f, &message, 1);
    assert_int_equal(message->delivery_count, 4);
    acknowledge(&f, &message, 1);
    fixture_end(&f);
}

static void test_classic_queue(void **state)
{
    fixture f;
    const wb_incoming *message;
    (void)state;
    fixture_prepare(&f);
    f.config.queue_type = WB_AMQP_QUEUE_CLASSIC;
    fixture_create(&f);
    assert_int_equal(f.ops->install(f.transport, &f.error), WB_OK);
    fixture_open(&f, 1);
    fixture_fill(&f, 1);
    fixture_receive(&f, &message, 1);
    assert_int_equal(message->delivery_count, 0);
    assert_int_equal(f.ops->give_back(f.session, &message, 1, &f.error), WB_OK);
    fixture_receive(&f, &message, 1);
    assert_int_equal(message->delivery_count, 1);
    acknowledge(&f, &message, 1);
    fixture_end(&f);
}

/* Every pattern of settling: what was not settled comes back, nothing else does. */
static void test_any_order(void **state)
{
    enum { COUNT = 30 };
    fixture f;
    const wb_incoming *messages[COUNT], *chosen[COUNT];
    char left[COUNT] = { 0 };
    size_t count = 0, expected = 0;
    (void)state;
    fixture_begin(&f, COUNT);
    fixture_fill(&f, COUNT);
    fixture_receive(&f, messages, COUNT);
    acknowledge(&f, &messages[5], 1);
    acknowledge(&f, messages, 5); /* the oldest, up to the gap */
    for (size_t i = COUNT; i-- > 6;) {
        if (i % 3 == 0)
            chosen[count++] = messages[i]; /* backwards, with gaps */
        else
            left[i] = 1, expected++;
    }
    acknowledge(&f, chosen, count);
    fixture_close(&f);
    fixture_open(&f, COUNT);
    fixture_receive(&f, messages, expected);
    for (size_t i = 0; i < expected; i++) {
        int number = atoi(messages[i]->id + 2);
        assert_true(left[number]);
        left[number] = 0;
    }
    acknowledge(&f, messages, expected);
    fixture_receive_none(&f);
    fixture_close(&f);
    fixture_open(&f, COUNT);
    fixture_receive_none(&f);
    fixture_end(&f);
}

static void test_prefetch(void **state)
{
    fixture f;
    const wb_incoming *messages[40];
    (void)state;
    fixture_begin(&f, 2);
    fixture_fill(&f, 40);
    fixture_receive(&f, messages, 2);
    fixture_receive_none(&f);
    assert_int_equal(f.ops->set_prefetch(f.session, 20, &f.error), WB_OK);
    fixture_receive(&f, messages + 2, 20);
    assert_int_equal(f.ops->set_prefetch(f.session, 20, &f.error), WB_OK);
    acknowledge(&f, messages, 22);
    /* Some of these are on their way while the consumer is exchanged. */
    assert_int_equal(f.ops->set_prefetch(f.session, 5, &f.error), WB_OK);
    for (size_t got = 22; got < 40;) {
        fixture_receive(&f, messages + got, 1);
        acknowledge(&f, messages + got, 1);
        got++;
    }
    fixture_receive_none(&f);
    fixture_end(&f);
}

/* Far more than is kept in memory at a time waits to be read. */
static void test_large_backlog(void **state)
{
    enum { COUNT = 12, SIZE = 8 << 20 };
    fixture f;
    (void)state;
    fixture_begin(&f, COUNT);
    char *body = calloc(1, SIZE);
    assert_non_null(body);
    for (int i = 0; i < COUNT; i++) {
        wb_operation operation = fixture_operation(f.queue, "large", "");
        operation.body = body;
        operation.body_size = SIZE;
        assert_int_equal(fixture_send(&f, &operation, 1), WB_OK);
    }
    for (int i = 0; i < COUNT; i++) {
        const wb_incoming *message;
        fixture_receive(&f, &message, 1);
        assert_int_equal(message->body_size, SIZE);
        acknowledge(&f, &message, 1);
    }
    fixture_receive_none(&f);
    free(body);
    fixture_end(&f);
}

static void test_deleted_queue(void **state)
{
    fixture f;
    const wb_incoming *messages[2];
    size_t count;
    (void)state;
    fixture_begin(&f, 10);
    fixture_fill(&f, 2);
    fixture_receive(&f, messages, 2);
    client_delete_queue(f.queue);
    int result =
        f.ops->receive(f.session, fixture_in(SECONDS(5)), messages, 2, &count, &f.error);
    assert_failed(&f, result, WB_NOT_CONNECTED, WB_CAUSE_MISSING, "cancelled the consumer");
    assert_int_equal(count, 0);
    assert_int_not_equal(f.ops->acknowledge(f.session, messages, 1, &f.error), WB_OK);
    fixture_close(&f);
    result = f.ops->open(f.transport, WB_SESSION_RECEIVE, 1, &f.session, &f.error);
    assert_failed(&f, result, WB_NOT_CONNECTED, WB_CAUSE_MISSING, "run waybill install");
    assert_int_equal(f.ops->install(f.transport, &f.error), WB_OK);
    fixture_open(&f, 10);
    fixture_fill(&f, 1);
    fixture_receive(&f, messages, 1);
    acknowledge(&f, messages, 1);
    fixture_end(&f);
}

static void *interrupt_soon(void *argument)
{
    fixture *f = argument;
    (void)usleep(200000);
    f->ops->interrupt(f->session);
    return NULL;
}

static void test_interrupt(void **state)
{
    fixture f;
    pthread_t thread;
    const wb_incoming *message;
    size_t count = 1;
    (void)state;
    fixture_begin(&f, 1);
    int64_t before = wb_clock_monotonic();
    assert_int_equal(pthread_create(&thread, NULL, interrupt_soon, &f), 0);
    assert_int_equal(f.ops->receive(f.session, fixture_in(SECONDS(20)), &message, 1, &count,
                                    &f.error),
                     WB_OK);
    assert_int_equal(count, 0);
    assert_true(wb_clock_monotonic() - before < SECONDS(5));
    (void)pthread_join(thread, NULL);
    /* And the next one, when none was waiting; but only one. */
    f.ops->interrupt(f.session);
    before = wb_clock_monotonic();
    assert_int_equal(f.ops->receive(f.session, fixture_in(SECONDS(20)), &message, 1, &count,
                                    &f.error),
                     WB_OK);
    assert_true(wb_clock_monotonic() - before < SECONDS(5));
    before = wb_clock_monotonic();
    fixture_receive_none(&f);
    assert_true(wb_clock_monotonic() - before >= WB_SECOND / 4);
    fixture_end(&f);
}

static void test_crash_points(void **state)
{
    static const char *const names[] = { "received_frame", "half_dispatched",
                                         "dispatch_unconfirmed", "half_confirmed",
                                         "acknowledge_sent" };
    fixture f;
    const wb_incoming *messages[100];
    (void)state;
    fixture_begin(&f, 100);
    for (int i = 0; i < 20 && fixture_crash_points("half_confirmed") < 1; i++) {
        fixture_fill(&f, 100);
        fixture_receive(&f, messages, 100);
        acknowledge(&f, messages, 100);
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (fixture_crash_points(names[i]) < 1)
            fail_msg("crash point %s was not passed", names[i]);
    }
    fixture_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_install),       cmocka_unit_test(test_mismatch),
        cmocka_unit_test(test_refused),       cmocka_unit_test(test_configuration),
        cmocka_unit_test(test_external_not_offered),
        cmocka_unit_test(test_error_queue_type),
        cmocka_unit_test(test_tls),           cmocka_unit_test(test_delivery_count),
        cmocka_unit_test(test_classic_queue), cmocka_unit_test(test_any_order),
        cmocka_unit_test(test_prefetch),      cmocka_unit_test(test_large_backlog),
        cmocka_unit_test(test_deleted_queue), cmocka_unit_test(test_interrupt),
        cmocka_unit_test(test_crash_points),
    };
    return cmocka_run_group_tests_name("amqp sessions", tests, NULL, NULL);
}
