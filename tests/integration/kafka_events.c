/* SPDX-License-Identifier: Apache-2.0
 *
 * The kafka transport against a real broker: events with bases, of which each is a record in a topic of
 * its own, and topics that do not take theirs. However often one is sent again, no topic gets it twice.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/integration/kafka-fixture.h"

#define TRIES 5

/* What makes a topic one that takes no record: as others see it, and as its broker does. */
enum { TAKES, COLLIDES, COMPACTED, SMALL, KINDS };

typedef struct event {
    char types[3][160]; /* itself, and its bases */
    char list[512];
    wb_header header;
} event;

static int64_t count_in(const char *topic)
{
    int64_t low = 0, high = 0;
    rd_kafka_t *client = client_open();
    if (rd_kafka_query_watermark_offsets(client, topic, 0, &low, &high, 10000) !=
        RD_KAFKA_RESP_ERR_NO_ERROR)
        high = 0;
    client_close(client);
    return high;
}

static void make_topic(const char *topic, int kind)
{
    char other[170];
    rd_kafka_t *client = client_open();
    if (kind == COLLIDES) { /* differs in '.' and '_' alone */
        (void)snprintf(other, sizeof other, "%s", topic);
        *strrchr(other, '.') = '_';
        client_make_topic(client, other, 1);
    } else if (kind == COMPACTED) {
        client_make_topic_with(client, topic, 1, "cleanup.policy", "compact");
    } else if (kind == SMALL) {
        client_make_topic_with(client, topic, 1, "max.message.bytes", "300");
    } else {
        client_make_topic(client, topic, 1);
    }
    client_close(client);
}

static void prepare(event *e, const fixture *f, int own, int base, int further)
{
    static int number;
    const int kinds[] = { own, base, further };
    int size = 0;
    number++;
    for (int i = 0; i < 3; i++) {
        (void)snprintf(e->types[i], sizeof e->types[i], "%s.e%d.t%d", f->queue, number, i);
        make_topic(e->types[i], kinds[i]);
        size += snprintf(e->list + size, sizeof e->list - (size_t)size, "%s%s", i ? ";" : "", e->types[i]);
    }
    e->header = (wb_header){ "NServiceBus.EnclosedMessageTypes", e->list, 32, (size_t)size };
}

/* No key, and larger than the small topic takes. */
static wb_operation publication(const event *e, const char *id)
{
    static const char body[500] = "event";
    wb_operation operation = fixture_operation(e->types[0], id, "");
    operation.kind = WB_OPERATION_PUBLISH;
    operation.headers = &e->header;
    operation.header_count = 1;
    operation.body = body;
    operation.body_size = sizeof body;
    return operation;
}

/* What is refused for one topic says whether others have it. */
static void send_one(fixture *f, const event *e, const char *id, int result, int partly)
{
    wb_operation operation = publication(e, id);
    if (fixture_send(f, &operation, 1) != WB_OK)
        fail_msg("send: %s", f->error.text);
    if (operation.result != result)
        fail_msg("%d instead of %d: %s", operation.result, result, operation.reason);
    assert_int_equal(operation.flags & WB_OPERATION_PARTLY_SENT, partly ? WB_OPERATION_PARTLY_SENT : 0);
}

static void assert_counts(const event *e, int own, int base, int further)
{
    const int wanted[] = { own, base, further };
    for (int i = 0; i < 3; i++)
        if (count_in(e->types[i]) != wanted[i])
            fail_msg("%d instead of %d in %s", (int)count_in(e->types[i]), wanted[i], e->types[i]);
}

/* ---- no topic, and none can be made -------------------------------------------------- */

/* Nobody has subscribed to it: the others get the event, and there is one line. */
static void try_absent(int mode)
{
    fixture f;
    event e;
    fixture_prepare(&f);
    f.endpoint.mode = mode;
    fixture_start(&f, 1);
    prepare(&e, &f, TAKES, COLLIDES, TAKES);
    int warnings = fixture_warnings();
    for (int i = 0; i < 3; i++) {
        if (mode == WB_MODE_SENDS_ATOMIC)
            assert_int_equal(f.ops->begin(f.session, &f.error), WB_OK);
        send_one(&f, &e, i == 0 ? "a" : i == 1 ? "b" : "c", WB_OK, 0);
        if (mode == WB_MODE_SENDS_ATOMIC)
            assert_int_equal(f.ops->commit(f.session, &f.error), WB_OK);
    }
    assert_int_equal(fixture_warnings(), warnings + 1);
    assert_true(fixture_logged(e.types[1]));
    if (mode != WB_MODE_SENDS_ATOMIC) /* else there are markers, too */
        assert_counts(&e, 3, 0, 3);
    assert_true(count_in(e.types[0]) >= 3 && count_in(e.types[2]) >= 3);
    fixture_end(&f);
}

static void test_absent(void **state)
{
    (void)state;
    try_absent(WB_MODE_RECEIVE_ONLY);
}

static void test_absent_in_transactions(void **state)
{
    (void)state;
    try_absent(WB_MODE_SENDS_ATOMIC);
}

/* The event's own has to be there: nothing goes to the bases. */
static void test_own_absent(void **state)
{
    fixture f;
    event e;
    (void)state;
    fixture_begin(&f, 1);
    prepare(&e, &f, COLLIDES, TAKES, TAKES);
    for (int i = 0; i < TRIES; i++)
        send_one(&f, &e, "own", WB_REJECT, 0);
    assert_counts(&e, 0, 0, 0);
    fixture_end(&f);
}

/* ---- a topic that refuses what is sent to it ----------------------------------------- */

/* Each place in the list, each way: the others get it once, also where another session sends it
 * again; one with another id is another event. */
static void try_refusal(fixture *f, int place, int kind)
{
    event e;
    int counts[3];
    fixture second = *f;
    fixture_open(&second, 1);
    prepare(&e, f, place == 0 ? kind : TAKES, place == 1 ? kind : TAKES, place == 2 ? kind : TAKES);
    for (int i = 0; i < 3; i++)
        counts[i] = i != place;
    for (int i = 0; i < TRIES; i++)
        send_one(i % 2 ? &second : f, &e, "one", WB_REJECT, 1);
    assert_counts(&e, counts[0], counts[1], counts[2]);
    send_one(f, &e, "two", WB_REJECT, 1);
    assert_counts(&e, 2 * counts[0], 2 * counts[1], 2 * counts[2]);
    fixture_close(&second);
}

static void test_refusals(void **state)
{
    fixture f;
    (void)state;
    fixture_begin(&f, 1);
    for (int place = 0; place < 3; place++)
        for (int kind = COMPACTED; kind < KINDS; kind++)
            try_refusal(&f, place, kind);
    fixture_end(&f);
}

/* When its topic takes it, it is sent there alone; and sent once more, it goes to all. */
static void test_mended(void **state)
{
    fixture f;
    event e;
    (void)state;
    fixture_begin(&f, 1);
    prepare(&e, &f, TAKES, SMALL, TAKES);
    send_one(&f, &e, "one", WB_REJECT, 1);
    assert_counts(&e, 1, 0, 1);
    rd_kafka_t *client = client_open();
    client_delete_topic(client, e.types[1]);
    while (client_count_partitions(client, e.types[1]))
        (void)usleep(100000);
    make_topic(e.types[1], TAKES);
    client_close(client);
    wb_operation operation = publication(&e, "one");
    for (int i = 0; i < 100 && operation.result != WB_OK; i++) {
        int result = fixture_send(&f, &operation, 1);
        if (result != WB_OK && result != WB_IN_DOUBT)
            fail_msg("send: %s", f.error.text);
        (void)usleep(100000);
    }
    assert_int_equal(operation.result, WB_OK);
    assert_counts(&e, 1, 1, 1);
    send_one(&f, &e, "one", WB_OK, 0);
    assert_counts(&e, 2, 2, 2);
    fixture_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_absent),     cmocka_unit_test(test_absent_in_transactions),
        cmocka_unit_test(test_own_absent), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_mended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
