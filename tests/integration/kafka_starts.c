/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a subscriber begins with event_start = "latest", against a real broker: nothing that
 * was published before it came, everything that was published since. One with another's past begins where that ended.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "tests/integration/kafka-fixture.h"

#define PARTITIONS 4

/* An endpoint with one event type; in the topic of the type there is one event a partition
 * already. */
typedef struct subscriber {
    fixture f;
    char type[160];
    const char *types[1];
    rd_kafka_t *client;
} subscriber;

static void publish(const subscriber *s, int32_t partition, const char *body)
{
    client_produce(s->client, s->type, partition, body, strlen(body), NULL);
    client_flush(s->client);
}

static void configure(subscriber *s, const char *type)
{
    (void)snprintf(s->type, sizeof s->type, "%s", type);
    s->types[0] = s->type;
    s->f.endpoint.types = s->types;
    s->f.endpoint.type_count = 1;
    s->f.config.event_start = WB_KAFKA_START_LATEST;
    s->f.config.partitions = -1;
    s->client = client_open();
    client_make_topic(s->client, s->f.queue, 1);
}

static void prepare(subscriber *s, int partitions)
{
    char type[sizeof s->type];
    fixture_prepare(&s->f);
    (void)snprintf(type, sizeof type, "%s.Event", s->f.queue);
    configure(s, type);
    client_make_topic(s->client, s->type, partitions);
    for (int32_t p = 0; p < partitions; p++)
        publish(s, p, "before");
    fixture_create(&s->f);
}

static void finish(subscriber *s)
{
    fixture_end(&s->f);
    client_close(s->client);
}

/* Receive and acknowledge one message of this body. */
static void expect(subscriber *s, const char *body)
{
    const wb_incoming *message;
    fixture_receive(&s->f, &message, 1);
    if (message->body_size != strlen(body) || memcmp(message->body, body, message->body_size) != 0)
        fail_msg("received \"%.*s\" for \"%s\"", (int)message->body_size,
                 (const char *)message->body, body);
    fixture_acknowledge(&s->f, &message, 1);
}

/* The endpoint's own topic comes with the same assignment as the events'. */
static void await_assignment(subscriber *s)
{
    client_produce(s->client, s->f.queue, 0, "own", 3, NULL);
    client_flush(s->client);
    expect(s, "own");
}

static void test_start_is_committed(void **state)
{
    subscriber s;
    (void)state;
    prepare(&s, PARTITIONS);
    fixture_open(&s.f, 32);
    await_assignment(&s);
    for (int32_t p = 0; p < PARTITIONS; p++)
        assert_int_equal(client_committed(s.f.queue, s.type, p, NULL, 0), 1);
    finish(&s);
}

/* It read nothing, ended, and comes back: what was published in between is for it. */
static void test_published_while_away(void **state)
{
    subscriber s;
    (void)state;
    prepare(&s, 1);
    fixture_open(&s.f, 32);
    await_assignment(&s);
    fixture_close(&s.f);
    publish(&s, 0, "while away");
    fixture_open(&s.f, 32);
    expect(&s, "while away");
    fixture_receive_none(&s.f);
    finish(&s);
}

/* A partition that is made later holds nothing that was published before the endpoint came. */
static void test_new_partition(void **state)
{
    subscriber s;
    (void)state;
    prepare(&s, 1);
    fixture_open(&s.f, 32);
    await_assignment(&s);
    publish(&s, 0, "first");
    expect(&s, "first");
    fixture_close(&s.f);
    client_add_partitions(s.client, s.type, 2);
    publish(&s, 1, "in the new partition");
    fixture_open(&s.f, 32);
    expect(&s, "in the new partition");
    fixture_receive_none(&s.f);
    finish(&s);
}

/* Stopped before its topic is deleted, the endpoint reads the one that is made in its place from the
 * first message, though it has more than was read of the old one: with the topic the broker forgets
 * the offsets. */
static void test_topic_made_again(void **state)
{
    subscriber s;
    char body[20];
    (void)state;
    prepare(&s, 1);
    fixture_open(&s.f, 32);
    for (int i = 0; i < 4; i++)
        await_assignment(&s);
    fixture_close(&s.f);
    client_delete_topic(s.client, s.f.queue);
    for (int i = 0; i < 150 && client_committed(s.f.queue, s.f.queue, 0, NULL, 0) >= 0; i++)
        wb_clock_pause(WB_SECOND / 10, NULL);
    assert_int_equal(client_committed(s.f.queue, s.f.queue, 0, NULL, 0), -1001);
    client_make_topic(s.client, s.f.queue, 1);
    for (int i = 0; i < 20; i++)
        client_produce(s.client, s.f.queue, 0, body, (size_t)snprintf(body, sizeof body, "new-%d", i), NULL);
    client_flush(s.client);
    fixture_open(&s.f, 32);
    for (int i = 0; i < 20; i++) {
        (void)snprintf(body, sizeof body, "new-%d", i);
        expect(&s, body);
    }
    finish(&s);
}

static void count_events(subscriber *s, wb_transport_session *session, int *events, int *old)
{
    const wb_incoming *messages[32];
    size_t count = 0;
    if (s->f.ops->receive(session, fixture_in(WB_SECOND / 10), messages, 32, &count, &s->f.error) !=
        WB_OK)
        fail_msg("receive: %s", s->f.error.text);
    for (size_t i = 0; i < count; i++) {
        *events += messages[i]->body_size == 5;
        *old += messages[i]->body_size == 6;
    }
    if (count)
        assert_int_equal(s->f.ops->acknowledge(session, messages, count, &s->f.error), WB_OK);
}

/* Workers that come at the same time begin at one place: none takes a partition whose start
 * another has just chosen for a new one, and none chooses it again. */
static void test_workers(void **state)
{
    enum { WORKERS = 4, ROUNDS = 50 };
    wb_transport_session *sessions[WORKERS];
    subscriber s;
    int events = 0, old = 0;
    (void)state;
    prepare(&s, PARTITIONS);
    s.f.endpoint.concurrency = WORKERS;
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(s.f.ops->open(s.f.transport, WB_SESSION_RECEIVE, 32, &sessions[i],
                                       &s.f.error),
                         WB_OK);
    for (int round = 0; round < 10; round++) /* until all have what is theirs */
        for (int i = 0; i < WORKERS; i++)
            count_events(&s, sessions[i], &events, &old);
    for (int32_t p = 0; p < PARTITIONS; p++)
        publish(&s, p, "event");
    for (int round = 0; round < ROUNDS && events < PARTITIONS; round++)
        for (int i = 0; i < WORKERS; i++)
            count_events(&s, sessions[i], &events, &old);
    assert_int_equal(events, PARTITIONS);
    assert_int_equal(old, 0);
    for (int i = 0; i < WORKERS; i++)
        s.f.ops->close(sessions[i]);
    finish(&s);
}

static void take_over(subscriber *s, const subscriber *former)
{
    if (s->f.ops->take_over(s->f.transport, former->f.queue, &s->f.error) != WB_OK)
        fail_msg("take over: %s", s->f.error.text);
}

static void assert_committed(const subscriber *s, int64_t first, int64_t second)
{
    assert_int_equal(client_committed(s->f.queue, s->type, 0, NULL, 0), first);
    assert_int_equal(client_committed(s->f.queue, s->type, 1, NULL, 0), second);
}

/* Under another name it goes on where it was; and when that is said again, where it has come to since. */
static void test_taken_over(void **state)
{
    subscriber former, s;
    (void)state;
    prepare(&former, 2);
    fixture_open(&former.f, 32);
    await_assignment(&former);
    publish(&former, 0, "first");
    expect(&former, "first");
    fixture_close(&former.f);
    publish(&former, 0, "second");
    fixture_prepare(&s.f);
    configure(&s, former.type);
    fixture_create(&s.f);
    take_over(&s, &former);
    assert_committed(&s, 2, 1);
    fixture_open(&s.f, 32);
    expect(&s, "second");
    fixture_close(&s.f);
    take_over(&s, &former);
    assert_committed(&s, 3, 1);
    finish(&s);
    finish(&former);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_start_is_committed),
        cmocka_unit_test(test_published_while_away),
        cmocka_unit_test(test_new_partition),
        cmocka_unit_test(test_topic_made_again),
        cmocka_unit_test(test_workers),
        cmocka_unit_test(test_taken_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
