/* SPDX-License-Identifier: Apache-2.0
 *
 * The amqp transport on bad days: slow handlers, a broker that is killed, one that
 * blocks publishing, one that stops answering, a queue that is another one.
 */
#include "config.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/integration/amqp-fixture.h"

static void acknowledge(fixture *f, const wb_incoming *const *messages, size_t count)
{
    if (f->ops->acknowledge(f->session, messages, count, &f->error) != WB_OK)
        fail_msg("acknowledge: %s", f->error.text);
}

static int64_t seconds_since(int64_t then)
{
    return (wb_clock_monotonic() - then) / WB_SECOND;
}

/* The pid of the broker, to stop it without ending it. */
static pid_t broker_pid(void)
{
    char path[512];
    int pid = 0;
    (void)snprintf(path, sizeof path, "%s/broker.pid", fixture_directory());
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%d", &pid), 1);
    (void)fclose(file);
    return (pid_t)pid;
}

/* Nobody calls the plugin for eight times the heartbeat: the broker would have hung up
 * after two or three. With a message in hand, so that a loss would show. */
static void pause_with(int32_t tls)
{
    static char ca[512];
    fixture f;
    const wb_incoming *message;
    fixture_prepare(&f);
    (void)snprintf(ca, sizeof ca, "%s/ca.pem", fixture_directory());
    f.config.heartbeat = SECONDS(1);
    f.config.tls = tls;
    f.config.tls_ca_file = ca;
    f.config.port = fixture_port(tls == WB_AMQP_TLS_ON ? "AMQPS_PORT" : "AMQP_PORT");
    fixture_create(&f);
    assert_int_equal(f.ops->install(f.transport, &f.error), WB_OK);
    fixture_open(&f, 10);
    fixture_fill(&f, 2);
    fixture_receive(&f, &message, 1);
    (void)sleep(8);
    wb_operation operation = fixture_operation(f.queue, "after", "after");
    if (fixture_send(&f, &operation, 1) != WB_OK)
        fail_msg("send: %s", f.error.text);
    acknowledge(&f, &message, 1);
    for (int i = 0; i < 2; i++) {
        fixture_receive(&f, &message, 1);
        assert_int_equal(message->delivery_count, 0);
        acknowledge(&f, &message, 1);
    }
    fixture_receive_none(&f);
    fixture_end(&f);
}

static void test_slow_handler(void **state)
{
    (void)state;
    pause_with(WB_AMQP_TLS_OFF);
}

static void test_slow_handler_tls(void **state)
{
    (void)state;
    pause_with(WB_AMQP_TLS_ON);
}

/* A long wait for messages keeps the sending connection alive, too. */
static void test_long_wait(void **state)
{
    fixture f;
    const wb_incoming *message;
    size_t count;
    (void)state;
    fixture_prepare(&f);
    f.config.heartbeat = SECONDS(1);
    fixture_create(&f);
    assert_int_equal(f.ops->install(f.transport, &f.error), WB_OK);
    fixture_open(&f, 10);
    if (f.ops->receive(f.session, fixture_in(SECONDS(5)), &message, 1, &count, &f.error) != WB_OK)
        fail_msg("receive: %s", f.error.text);
    assert_int_equal(count, 0);
    fixture_fill(&f, 1);
    fixture_end(&f);
}

/* Stopped, not dead: its sockets are open, and nothing comes. */
static void test_frozen_broker(void **state)
{
    fixture f;
    const wb_incoming *message;
    size_t count;
    (void)state;
    fixture_prepare(&f);
    f.config.heartbeat = SECONDS(1);
    fixture_create(&f);
    assert_int_equal(f.ops->install(f.transport, &f.error), WB_OK);
    fixture_open(&f, 10);
    pid_t pid = broker_pid();
    int64_t then = wb_clock_monotonic();
    assert_int_equal(kill(pid, SIGSTOP), 0);
    int result = f.ops->receive(f.session, fixture_in(SECONDS(20)), &message, 1, &count, &f.error);
    int64_t took = seconds_since(then);
    fixture_close(&f); /* may not hang either */
    int64_t closed = seconds_since(then);
    assert_int_equal(kill(pid, SIGCONT), 0);
    assert_int_equal(result, WB_NOT_CONNECTED);
    assert_in_range(took, 1, 6);
    assert_in_range(closed, 1, 8);
    assert_non_null(strstr(f.error.text, "no sign of life"));
    fixture_end(&f);
}

static void test_killed_broker(void **state)
{
    fixture f;
    const wb_incoming *messages[3];
    size_t count;
    (void)state;
    fixture_begin(&f, 10);
    fixture_fill(&f, 3);
    fixture_receive(&f, messages, 3);
    acknowledge(&f, messages, 1);
    fixture_receive_none(&f); /* the acknowledgement has arrived by now */
    fixture_broker("kill", "");
    wb_operation operation = fixture_operation(f.queue, "lost", "lost");
    assert_int_equal(fixture_send(&f, &operation, 1), WB_NOT_CONNECTED);
    assert_int_not_equal(operation.result, WB_OK);
    assert_int_not_equal(operation.result, WB_REJECT);
    assert_int_equal(f.ops->receive(f.session, fixture_in(SECONDS(5)), messages, 1, &count,
                                    &f.error),
                     WB_NOT_CONNECTED);
    fixture_close(&f);
    assert_int_equal(f.ops->open(f.transport, WB_SESSION_RECEIVE, 1, &f.session, &f.error),
                     WB_NOT_CONNECTED);
    assert_int_equal(f.error.cause, WB_CAUSE_UNREACHABLE);
    fixture_broker("start", "");
    fixture_open(&f, 10);
    fixture_receive(&f, messages, 2);
    assert_string_equal(messages[0]->id, "m-1");
    assert_string_equal(messages[1]->id, "m-2");
    acknowledge(&f, messages, 2);
    fixture_fill(&f, 1);
    fixture_receive(&f, messages, 1);
    acknowledge(&f, messages, 1);
    fixture_receive_none(&f);
    fixture_end(&f);
}

static int send_within(fixture *f, wb_operation *operation, int64_t duration)
{
    return f->ops->send(f->session, &operation, 1, fixture_in(duration), &f->error);
}

/* The memory alarm: publishing waits, no longer than it was told to; receiving and
 * acknowledging go on; the log says it once. */
static void alarm_with(int32_t tls)
{
    static char ca[512];
    static char body[8 << 20];
    fixture f;
    const wb_incoming *message;
    fixture_prepare(&f);
    (void)snprintf(ca, sizeof ca, "%s/ca.pem", fixture_directory());
    f.config.tls = tls;
    f.config.tls_ca_file = ca;
    f.config.port = fixture_port(tls == WB_AMQP_TLS_ON ? "AMQPS_PORT" : "AMQP_PORT");
    fixture_create(&f);
    assert_int_equal(f.ops->install(f.transport, &f.error), WB_OK);
    fixture_open(&f, 1);
    fixture_fill(&f, 2);
    int warnings = fixture_warnings();
    fixture_broker("ctl", "set_vm_memory_high_watermark 0");
    for (int i = 0; i < 3; i++) {
        wb_operation operation = fixture_operation(f.queue, "blocked", "b");
        /* The last one does not fit the socket's buffers: writing itself is stuck. */
        if (i == 2) {
            operation.body = body;
            operation.body_size = sizeof body;
            fixture_close(&f);
            fixture_open(&f, 1);
        }
        int64_t then = wb_clock_monotonic();
        int result = send_within(&f, &operation, SECONDS(2));
        assert_true(result == WB_IN_DOUBT || result == WB_RETRY || result == WB_NOT_CONNECTED);
        assert_int_equal(i == 1 ? WB_RETRY : result, result);
        assert_int_not_equal(operation.result, WB_OK);
        assert_int_not_equal(operation.result, WB_REJECT);
        assert_in_range(seconds_since(then), 0, 5);
    }
    assert_int_equal(fixture_warnings(), warnings + 1);
    fixture_close(&f);
    fixture_open(&f, 1);
    for (int i = 0; i < 2; i++) {
        fixture_receive(&f, &message, 1);
        acknowledge(&f, &message, 1);
    }
    wb_operation operation = fixture_operation(f.queue, "patient", "p");
    fixture_broker("ctl", "set_vm_memory_high_watermark 0.6");
    assert_int_equal(send_within(&f, &operation, SECONDS(20)), WB_OK);
    assert_int_equal(fixture_warnings(), warnings + 1);
    fixture_end(&f);
}

static void test_alarm(void **state)
{
    (void)state;
    alarm_with(WB_AMQP_TLS_OFF);
}

static void test_alarm_tls(void **state)
{
    (void)state;
    alarm_with(WB_AMQP_TLS_ON);
}

/* What is in a queue, by the broker's own count. */
static int count_in(const char *queue)
{
    amqp_connection_state_t client = client_open();
    amqp_queue_declare_ok_t *ok =
        amqp_queue_declare(client, 1, amqp_cstring_bytes(queue), 1, 0, 0, 0, amqp_empty_table);
    assert_non_null(ok);
    int count = (int)ok->message_count;
    client_close(client);
    return count;
}

static void raise_alarm(void)
{
    fixture_broker("ctl", "eval 'rabbit_alarm:set_alarm({{resource_limit, memory, node()}, []}).'");
}

static void clear_alarm(void)
{
    fixture_broker("ctl", "eval 'rabbit_alarm:clear_alarm({resource_limit, memory, node()}).'");
}

/* A window that is not confirmed costs the sending connection alone: what is in hand stays
 * there, and counts no delivery. The new one asks before it publishes. */
static void keep_with(int32_t tls, size_t body_size)
{
    static char ca[512];
    static char body[8 << 20];
    fixture f;
    const wb_incoming *messages[3];
    fixture_prepare(&f);
    (void)snprintf(ca, sizeof ca, "%s/ca.pem", fixture_directory());
    f.config.tls = tls;
    f.config.tls_ca_file = ca;
    f.config.port = fixture_port(tls == WB_AMQP_TLS_ON ? "AMQPS_PORT" : "AMQP_PORT");
    fixture_create(&f);
    assert_int_equal(f.ops->install(f.transport, &f.error), WB_OK);
    fixture_open(&f, 10);
    fixture_fill(&f, 3);
    fixture_receive(&f, messages, 2); /* the third is prefetched */
    raise_alarm();
    wb_operation operation = fixture_operation(f.error_queue, "blocked", "b");
    operation.body = body;
    operation.body_size = body_size;
    assert_int_equal(send_within(&f, &operation, SECONDS(2)), WB_IN_DOUBT);
    assert_int_equal(f.error.cause, WB_CAUSE_SENDING);
    assert_int_not_equal(operation.result, WB_OK);
    assert_int_not_equal(operation.result, WB_REJECT);
    acknowledge(&f, messages, 1); /* receiving lives */
    fixture_receive(&f, messages, 1);
    assert_string_equal(messages[0]->id, "m-2");
    assert_int_equal(messages[0]->delivery_count, 0);
    /* It is known before anything is published. */
    for (int i = 0; i < 2; i++) {
        assert_int_equal(send_within(&f, &operation, SECONDS(2)), WB_RETRY);
        assert_int_equal(f.error.cause, WB_CAUSE_SERVER);
        assert_int_equal(operation.result, WB_RETRY);
    }
    clear_alarm();
    assert_int_equal(send_within(&f, &operation, SECONDS(20)), WB_OK);
    acknowledge(&f, messages, 1);
    acknowledge(&f, &messages[1], 1);
    fixture_receive_none(&f);
    /* once what was tried first, perhaps, and once what was confirmed; no probe */
    assert_in_range(count_in(f.error_queue), 1, 2);
    assert_int_equal(count_in(f.queue), 0);
    fixture_end(&f);
}

static void test_alarm_keeps_what_is_in_hand(void **state)
{
    (void)state;
    keep_with(WB_AMQP_TLS_OFF, 1);
}

static void test_alarm_keeps_what_is_in_hand_tls(void **state)
{
    (void)state;
    keep_with(WB_AMQP_TLS_ON, 1);
}

static void begin_impatient(fixture *f)
{
    fixture_prepare(f);
    f->config.heartbeat = SECONDS(1);
    fixture_create(f);
    assert_int_equal(f->ops->install(f->transport, &f->error), WB_OK);
    fixture_open(f, 10);
}

/* What has come from the broker and lies in sockets unread. */
static unsigned long count_unread(void)
{
    const unsigned port = (unsigned)fixture_port("AMQP_PORT");
    unsigned long all = 0;
    unsigned connections = 0;
    char line[256];
    FILE *file = fopen("/proc/self/net/tcp", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        unsigned remote, state;
        unsigned long unread;
        if (sscanf(line, " %*d: %*x:%*x %*x:%x %x %*x:%lx", &remote, &state, &unread) == 3 && remote == port &&
            state == 1) {
            all += unread;
            connections++;
        }
    }
    (void)fclose(file);
    assert_in_range(connections, 2, 2);
    return all;
}

/* Heartbeats come twice a second. One may just have come: the least of many looks, for longer than anything may
 * lie unread. */
static void *look_for_unread(void *argument)
{
    unsigned long *least = argument;
    (void)usleep(3000000);
    for (int i = 0; i < 20; i++) {
        unsigned long unread = count_unread();
        if (unread < *least)
            *least = unread;
        (void)usleep(20000);
    }
    return NULL;
}

/* A receiving connection is heard while others hold the session for as long as that: in one wait for a confirmation,
 * or in many short ones. */
static void test_sends_in_a_row(void **state)
{
    fixture f;
    unsigned long least = ULONG_MAX;
    const wb_incoming *messages[2];
    pthread_t watcher;
    (void)state;
    begin_impatient(&f);
    fixture_fill(&f, 2);
    fixture_receive(&f, messages, 1);
    assert_int_equal(pthread_create(&watcher, NULL, look_for_unread, &least), 0);
    for (int64_t until = fixture_in(SECONDS(5)); wb_clock_monotonic() < until;) {
        wb_operation operation = fixture_operation(f.error_queue, "one", "of many");
        assert_int_equal(fixture_send(&f, &operation, 1), WB_OK);
    }
    assert_int_equal(pthread_join(watcher, NULL), 0);
    assert_int_equal(least, 0);
    acknowledge(&f, messages, 1);
    fixture_receive(&f, messages, 1);
    acknowledge(&f, messages, 1);
    fixture_end(&f);
}

static void test_alarm_outlasts_heartbeats(void **state)
{
    fixture f;
    unsigned long least = ULONG_MAX;
    const wb_incoming *messages[2];
    pthread_t watcher;
    (void)state;
    begin_impatient(&f);
    fixture_fill(&f, 2);
    fixture_receive(&f, messages, 1);
    raise_alarm();
    assert_int_equal(pthread_create(&watcher, NULL, look_for_unread, &least), 0);
    wb_operation operation = fixture_operation(f.error_queue, "blocked", "b");
    int result = send_within(&f, &operation, SECONDS(5));
    clear_alarm();
    assert_int_equal(pthread_join(watcher, NULL), 0);
    assert_int_equal(least, 0);
    assert_int_equal(result, WB_IN_DOUBT);
    acknowledge(&f, messages, 1);
    fixture_receive(&f, messages, 1);
    assert_string_equal(messages[0]->id, "m-1");
    assert_int_equal(messages[0]->delivery_count, 0);
    acknowledge(&f, messages, 1);
    fixture_end(&f);
}

/* Writing itself is stuck. */
static void test_alarm_stops_writing(void **state)
{
    (void)state;
    keep_with(WB_AMQP_TLS_OFF, 8 << 20);
}

static void test_alarm_stops_writing_tls(void **state)
{
    (void)state;
    keep_with(WB_AMQP_TLS_ON, 8 << 20);
}

/* ---- a queue that is another one ------------------------------------------------- */

/* As an operator does it who wants other arguments: in one go, so that nobody meets the gap. */
static void make_anew(const char *queue)
{
    amqp_table_entry_t argument = { amqp_cstring_bytes("x-queue-type"),
                                    { .kind = AMQP_FIELD_KIND_UTF8,
                                      .value.bytes = amqp_cstring_bytes("quorum") } };
    amqp_table_t arguments = { 1, &argument };
    amqp_connection_state_t client = client_open();
    assert_non_null(amqp_queue_delete(client, 1, amqp_cstring_bytes(queue), 0, 0));
    assert_non_null(amqp_queue_declare(client, 1, amqp_cstring_bytes(queue), 0, 1, 0, 0, arguments));
    client_close(client);
}

/* What receive() says, which is called again and again as a worker does. */
static int receive_for(fixture *f, const wb_incoming **message, int64_t duration)
{
    int64_t until = fixture_in(duration);
    size_t count = 0;
    int result = WB_OK;
    while (result == WB_OK && count == 0 && wb_clock_monotonic() < until)
        result = f->ops->receive(f->session, fixture_in(WB_SECOND / 2), message, 1, &count, &f->error);
    return result != WB_OK || count ? result : -1;
}

static void handle_one(fixture *f)
{
    const wb_incoming *message;
    fixture_receive(f, &message, 1);
    assert_int_equal(message->delivery_count, 0);
    acknowledge(f, &message, 1);
}

/* Now and then the broker notices, and cancels the consumer. @return 0 when it always does. */
static int make_anew_unnoticed(fixture *f)
{
    const wb_incoming *message;
    for (int i = 0; i < 10; i++) {
        make_anew(f->queue);
        int result = receive_for(f, &message, WB_SECOND);
        if (result == -1)
            return 1;
        assert_int_equal(result, WB_NOT_CONNECTED);
        fixture_close(f);
        fixture_open(f, 10);
    }
    return 0;
}

/* RabbitMQ 3.10 does not tell the consumer, and what it delivers to it then does not arrive. One that tells, or
 * delivers, is no worse. */
static void await_anew(fixture *f, int is_unnoticed)
{
    const wb_incoming *message;
    int warnings = fixture_warnings();
    if (receive_for(f, &message, SECONDS(20)) != WB_OK)
        fail_msg("receive: %s", f->error.text);
    assert_true(message->delivery_count == 0 || (message->delivery_count == 1 && is_unnoticed));
    assert_int_equal(fixture_warnings(), warnings + (int)message->delivery_count);
    if (message->delivery_count)
        assert_non_null(strstr(fixture_last_line(), f->queue));
    acknowledge(f, &message, 1);
}

static void test_queue_made_anew(void **state)
{
    fixture f;
    (void)state;
    begin_impatient(&f);
    int is_unnoticed = make_anew_unnoticed(&f);
    client_publish(f.queue, NULL, "anew", 4);
    await_anew(&f, is_unnoticed);
    client_publish(f.queue, NULL, "next", 4);
    handle_one(&f);
    fixture_close(&f);
    assert_int_equal(count_in(f.queue), 0);
    fixture_end(&f);
}

/* More than the consumer may have at a time: the rest comes to the other one, and has to be settled before the
 * channel can end. */
static void test_queue_made_anew_full(void **state)
{
    fixture f;
    enum { COUNT = 15 };
    (void)state;
    begin_impatient(&f);
    (void)make_anew_unnoticed(&f);
    for (int i = 0; i < COUNT; i++)
        client_publish(f.queue, NULL, "anew", 4);
    for (int i = 0; i < COUNT; i++) {
        const wb_incoming *message;
        if (receive_for(&f, &message, SECONDS(20)) != WB_OK)
            fail_msg("receive %d: %s", i, f.error.text);
        acknowledge(&f, &message, 1);
    }
    fixture_close(&f);
    assert_int_equal(count_in(f.queue), 0);
    fixture_end(&f);
}

/* Nothing was sent to it before the consumer was exchanged, so nothing is amiss. */
static void test_queue_made_anew_quietly(void **state)
{
    fixture f;
    const wb_incoming *message;
    (void)state;
    begin_impatient(&f);
    (void)make_anew_unnoticed(&f);
    int warnings = fixture_warnings();
    if (receive_for(&f, &message, SECONDS(10)) != -1)
        fail_msg("receive: %s", f.error.text);
    client_publish(f.queue, NULL, "anew", 4);
    handle_one(&f);
    assert_int_equal(fixture_warnings(), warnings);
    fixture_close(&f);
    assert_int_equal(count_in(f.queue), 0);
    fixture_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slow_handler),  cmocka_unit_test(test_slow_handler_tls),
        cmocka_unit_test(test_long_wait),     cmocka_unit_test(test_alarm),
        cmocka_unit_test(test_alarm_tls),     cmocka_unit_test(test_frozen_broker),
        cmocka_unit_test(test_killed_broker), cmocka_unit_test(test_alarm_keeps_what_is_in_hand),
        cmocka_unit_test(test_alarm_outlasts_heartbeats), cmocka_unit_test(test_sends_in_a_row),
        cmocka_unit_test(test_alarm_keeps_what_is_in_hand_tls),
        cmocka_unit_test(test_alarm_stops_writing), cmocka_unit_test(test_alarm_stops_writing_tls),
        cmocka_unit_test(test_queue_made_anew), cmocka_unit_test(test_queue_made_anew_quietly),
        cmocka_unit_test(test_queue_made_anew_full),
    };
    return cmocka_run_group_tests_name("amqp faults", tests, NULL, NULL);
}
