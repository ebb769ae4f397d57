/* SPDX-License-Identifier: Apache-2.0
 *
 * The kafka transport against a real cluster whose node 2 is down, and a topic that confirms nothing: its
 * replicas are nodes 1 and 2, and it wants both in sync. What is received meanwhile is not at fault.
 */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/integration/kafka-fixture.h"

#define REPLICAS "min.insync.replicas"

typedef struct silence {
    fixture f;
    char deaf[140];
} silence;

static void set_replicas(const char *topic, const char *value)
{
    rd_kafka_t *client = client_open();
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    rd_kafka_ConfigResource_t *change = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic);
    assert_int_equal(rd_kafka_ConfigResource_set_config(change, REPLICAS, value),
                     RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_AlterConfigs(client, &change, 1, NULL, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, 10000);
    assert_non_null(event);
    assert_int_equal(rd_kafka_event_error(event), RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_event_destroy(event);
    rd_kafka_ConfigResource_destroy(change);
    rd_kafka_queue_destroy(queue);
    client_close(client);
}

/* @return whether it is there: a controller may just have gone with the node. */
static int try_to_make(const char *topic)
{
    static int32_t nodes[] = { 1, 2 };
    char text[300] = "";
    rd_kafka_t *client = client_open();
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    rd_kafka_NewTopic_t *wanted = rd_kafka_NewTopic_new(topic, 1, -1, text, sizeof text);
    assert_non_null(wanted);
    assert_int_equal(rd_kafka_NewTopic_set_replica_assignment(wanted, 0, nodes, 2, text, sizeof text),
                     RD_KAFKA_RESP_ERR_NO_ERROR);
    assert_int_equal(rd_kafka_NewTopic_set_config(wanted, REPLICAS, "2"), RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_CreateTopics(client, &wanted, 1, NULL, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, 5000);
    int made = event && client_count_partitions(client, topic) == 1;
    if (event)
        rd_kafka_event_destroy(event);
    rd_kafka_NewTopic_destroy(wanted);
    rd_kafka_queue_destroy(queue);
    client_close(client);
    return made;
}

static void make_deaf(const char *topic)
{
    int64_t deadline = fixture_in(SECONDS(60));
    while (!try_to_make(topic)) {
        if (wb_clock_monotonic() > deadline)
            fail_msg("topic %s cannot be made", topic);
        (void)usleep(200000);
    }
}

static void begin(silence *s, int mode, size_t count)
{
    fixture *f = &s->f;
    fixture_prepare(f);
    f->endpoint.mode = mode;
    f->endpoint.concurrency = 2;
    fixture_create(f);
    /* What the node had is given to others first. */
    int64_t deadline = fixture_in(SECONDS(30));
    while (f->ops->install(f->transport, &f->error) != WB_OK)
        if (wb_clock_monotonic() > deadline)
            fail_msg("install: %s", f->error.text);
    (void)snprintf(s->deaf, sizeof s->deaf, "%s.deaf", f->queue);
    make_deaf(s->deaf);
    assert_int_equal(f->ops->open(f->transport, WB_SESSION_SEND, 1, &f->session, &f->error), WB_OK);
    fixture_fill(f, count);
    fixture_close(f);
    f->config.confirm_timeout = SECONDS(2);
    fixture_open(f, 10);
}

static int send_to(fixture *f, const char *topic)
{
    wb_operation operation = fixture_operation(topic, "m", "body");
    int result = fixture_send(f, &operation, 1);
    assert_true(result == WB_OK ? operation.result == WB_OK
                                : operation.result != WB_OK && operation.result != WB_REJECT);
    return result;
}

/* ---- sending alone begins anew -------------------------------------------------------- */

static void assert_silence(const silence *s, int result)
{
    fixture_assert_failed(&s->f, result, WB_IN_DOUBT, WB_CAUSE_SENDING, s->deaf);
}

/* However often: what is in hand stays there and counts no delivery, other topics take what they are
 * sent, and that one does, too, when it can. */
static void test_stays_in_hand(void **state)
{
    const wb_incoming *messages[3];
    silence s;
    (void)state;
    begin(&s, WB_MODE_RECEIVE_ONLY, 4);
    fixture_receive(&s.f, messages, 2);
    for (int i = 0; i < 3; i++) {
        assert_silence(&s, send_to(&s.f, s.deaf));
        if (i) /* else it is the next receive() that makes the new way out */
            assert_int_equal(send_to(&s.f, s.f.error_queue), WB_OK);
        fixture_receive(&s.f, messages + 2, i < 2);
        for (int k = 2; k < 3 && i < 2; k++) {
            assert_int_equal(messages[k]->delivery_count, 0);
            fixture_acknowledge(&s.f, messages + k, 1);
        }
    }
    set_replicas(s.deaf, "1");
    assert_int_equal(send_to(&s.f, s.deaf), WB_OK);
    assert_string_equal(messages[0]->id, "m-0");
    fixture_acknowledge(&s.f, messages, 2);
    fixture_receive_none(&s.f);
    fixture_close(&s.f);
    assert_int_equal(client_committed(s.f.queue, s.f.queue, 0, NULL, 0), 4);
    fixture_end(&s.f);
}

/* ---- beside others -------------------------------------------------------------------- */

typedef struct other {
    silence *s;
    wb_transport_session *session;
    int result;
    wb_error error;
} other;

static void *send_beside(void *argument)
{
    other *o = argument;
    wb_operation operation = fixture_operation(o->s->deaf, "m", "body"), *one = &operation;
    (void)usleep(1000000);
    o->result = o->s->f.ops->send(o->session, &one, 1, fixture_in(SECONDS(30)), &o->error);
    return NULL;
}

/* Whom it takes along keeps what it has, too: its window is not over, and is purged with the first. */
static void test_beside_others(void **state)
{
    pthread_t thread;
    silence s;
    other o = { .s = &s };
    wb_operation operation = { 0 }, *one = &operation;
    (void)state;
    begin(&s, WB_MODE_RECEIVE_ONLY, 1);
    assert_int_equal(s.f.ops->open(s.f.transport, WB_SESSION_SEND, 1, &o.session, &s.f.error), WB_OK);
    assert_int_equal(pthread_create(&thread, NULL, send_beside, &o), 0);
    assert_silence(&s, send_to(&s.f, s.deaf));
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(o.result, WB_IN_DOUBT);
    assert_int_equal(o.error.cause, WB_CAUSE_SENDING);
    operation = fixture_operation(s.f.error_queue, "m", "body");
    assert_int_equal(s.f.ops->send(o.session, &one, 1, fixture_in(SECONDS(10)), &o.error), WB_OK);
    s.f.ops->close(o.session);
    fixture_end(&s.f);
}

/* ---- in transactions ------------------------------------------------------------------ */

static int is_lost(int result)
{
    return result == WB_NOT_CONNECTED || result == WB_IN_DOUBT;
}

/* As the host does, until the session is lost. */
static int run_transaction(silence *s, const wb_incoming *message)
{
    fixture *f = &s->f;
    int result = f->ops->begin(f->session, &f->error);
    if (is_lost(result))
        return result;
    result = send_to(f, s->deaf);
    assert_int_not_equal(result, WB_OK);
    assert_int_not_equal(f->error.cause, WB_CAUSE_SENDING);
    assert_int_equal(message->delivery_count, 0);
    return is_lost(result) ? result : f->ops->rollback(f->session, &f->error);
}

/* There the session ends with its producer; nobody gets the name's next transaction until the topic
 * has taken the end of this one. What was in hand counts nothing. */
static void test_counts_nothing(void **state)
{
    const wb_incoming *message;
    silence s;
    int result = WB_OK;
    (void)state;
    begin(&s, WB_MODE_SENDS_ATOMIC, 1);
    fixture_receive(&s.f, &message, 1);
    assert_int_equal(message->delivery_count, 0);
    for (int i = 0; i < 5 && !is_lost(result); i++)
        result = run_transaction(&s, message);
    if (!is_lost(result))
        fail_msg("%d: %s", result, s.f.error.text);
    fixture_close(&s.f);
    set_replicas(s.deaf, "1");
    s.f.config.connect_timeout = SECONDS(30);
    fixture_open(&s.f, 10);
    fixture_receive(&s.f, &message, 1);
    assert_int_equal(message->delivery_count, 0);
    fixture_end(&s.f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stays_in_hand),
        cmocka_unit_test(test_beside_others),
        cmocka_unit_test(test_counts_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
