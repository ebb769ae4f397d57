/* SPDX-License-Identifier: Apache-2.0
 *
 * The kafka transport against a real broker: messages, byte for byte, and what becomes of
 * sends that cannot arrive.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/integration/kafka-fixture.h"
#include "tests/support/text_header.h"

/* ---- exact ----------------------------------------------------------------------- */

static void test_headers(void **state)
{
    static const wb_header headers[] = {
        TEXT_HEADER("NServiceBus.EnclosedMessageTypes", "Sales.PlaceOrder"),
        { "empty", "not meant", 5, 0 },
        { "nul", "a\0b", 3, 3 },
        { "twice", "1", 5, 1 },
        { "twice", "2", 5, 1 },
        TEXT_HEADER("\xf0\x9f\x9a\x9a \xc3\xa9", "\xf0\x9f\x93\xa6 \xc3\xbc"),
    };
    enum { COUNT = sizeof headers / sizeof headers[0] };
    fixture f;
    const wb_incoming *message;
    (void)state;
    fixture_begin(&f, 10);
    wb_operation operation = fixture_operation(f.queue, "id-1", "body");
    operation.headers = headers;
    operation.header_count = COUNT;
    operation.key = "k\0y";
    operation.key_size = 3;
    assert_int_equal(fixture_send(&f, &operation, 1), WB_OK);
    fixture_receive(&f, &message, 1);
    assert_int_equal(message->id_size, 4);
    assert_string_equal(message->id, "id-1");
    assert_int_equal(message->header_count, COUNT + 1);
    for (size_t i = 0; i < COUNT; i++) {
        const size_t size = headers[i].value_size;
        assert_string_equal(message->headers[i].name, headers[i].name);
        assert_int_equal(message->headers[i].name_size, strlen(headers[i].name));
        assert_int_equal(message->headers[i].value_size, size);
        assert_memory_equal(message->headers[i].value, headers[i].value, size);
        assert_int_equal(message->headers[i].value[size], '\0');
    }
    assert_string_equal(message->headers[COUNT].name, "NServiceBus.MessageId");
    assert_int_equal(message->key_size, 3);
    assert_memory_equal(message->key, "k\0y", 4);
    assert_int_equal(message->delivery_count, 0);
    fixture_acknowledge(&f, &message, 1);
    fixture_end(&f);
}

static void test_bodies(void **state)
{
    static const size_t sizes[] = { 0, 1, 1000, 70000, 1 << 20, 16 << 20 };
    enum { COUNT = sizeof sizes / sizeof sizes[0] };
    unsigned char *body = malloc(sizes[COUNT - 1]);
    wb_operation operations[COUNT];
    const wb_incoming *messages[COUNT];
    fixture f;
    (void)state;
    assert_non_null(body);
    for (size_t i = 0; i < sizes[COUNT - 1]; i++)
        body[i] = (unsigned char)(i * 7 + i / 251);
    fixture_begin(&f, 10);
    for (size_t i = 0; i < COUNT; i++) {
        operations[i] = fixture_operation(f.queue, "large", "");
        operations[i].body = body;
        operations[i].body_size = sizes[i];
    }
    if (fixture_send(&f, operations, COUNT) != WB_OK)
        fail_msg("send: %s", f.error.text);
    fixture_receive(&f, messages, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(messages[i]->body_size, sizes[i]);
        assert_memory_equal(messages[i]->body, body, sizes[i]);
    }
    fixture_acknowledge(&f, messages, COUNT);
    fixture_end(&f);
    free(body);
}

/* What clients that know nothing of Waybill send. */
static void test_foreign(void **state)
{
    char x[] = "x";
    fixture f;
    const wb_incoming *messages[2];
    (void)state;
    fixture_begin(&f, 10);
    rd_kafka_t *client = client_open();
    /* Without the macros that check types: they are no ISO C. */
    assert_int_equal(rd_kafka_producev(client, RD_KAFKA_VTYPE_TOPIC, f.queue, RD_KAFKA_VTYPE_VALUE,
                                       NULL, (size_t)0, RD_KAFKA_VTYPE_END),
                     RD_KAFKA_RESP_ERR_NO_ERROR);
    assert_int_equal(rd_kafka_producev(client, RD_KAFKA_VTYPE_TOPIC, f.queue, RD_KAFKA_VTYPE_VALUE,
                                       x, (size_t)1, RD_KAFKA_VTYPE_HEADER, "null", NULL,
                                       (ssize_t)0, RD_KAFKA_VTYPE_HEADER, "NServiceBus.MessageId",
                                       "f", (ssize_t)1, RD_KAFKA_VTYPE_MSGFLAGS,
                                       RD_KAFKA_MSG_F_COPY, RD_KAFKA_VTYPE_END),
                     RD_KAFKA_RESP_ERR_NO_ERROR);
    assert_int_equal(rd_kafka_flush(client, 10000), RD_KAFKA_RESP_ERR_NO_ERROR);
    client_close(client);
    fixture_receive(&f, messages, 2);
    assert_null(messages[0]->id);
    assert_null(messages[0]->key);
    assert_int_equal(messages[0]->body_size, 0);
    assert_int_equal(messages[0]->header_count, 0);
    assert_string_equal(messages[1]->id, "f");
    assert_int_equal(messages[1]->headers[0].value_size, 0);
    assert_string_equal(messages[1]->headers[0].value, "");
    fixture_acknowledge(&f, messages, 2);
    fixture_end(&f);
}

/* ---- where it goes --------------------------------------------------------------- */

/* The partitions Java's clients choose among 7 for these keys: toPositive(murmur2(key)) % 7,
 * with the hashes of Kafka's own test (UtilsTest.testMurmur2). */
static void test_partitions(void **state)
{
    static const struct {
        const char *key;
        int32_t hash;
    } vectors[] = { { "21", -973932308 },
                    { "foobar", -790332482 },
                    { "a-little-bit-long-string", -985981536 },
                    { "a-little-bit-longer-string", -1486304829 },
                    { "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971 } };
    enum { COUNT = sizeof vectors / sizeof vectors[0] };
    wb_operation operations[COUNT];
    fixture f;
    (void)state;
    fixture_prepare(&f);
    f.config.partitions = 7;
    fixture_create(&f);
    assert_int_equal(f.ops->install(f.transport, &f.error), WB_OK);
    assert_int_equal(f.ops->open(f.transport, WB_SESSION_SEND, 1, &f.session, &f.error), WB_OK);
    for (size_t i = 0; i < COUNT; i++) {
        operations[i] = fixture_operation(f.queue, "id", "");
        operations[i].key = vectors[i].key;
        operations[i].key_size = strlen(vectors[i].key);
        assert_int_equal(fixture_send(&f, &operations[i], 1), WB_OK);
    }
    rd_kafka_t *client = client_open();
    int64_t expected[7] = { 0 };
    for (size_t i = 0; i < COUNT; i++)
        expected[(vectors[i].hash & 0x7fffffff) % 7]++;
    for (int32_t partition = 0; partition < 7; partition++) {
        int64_t low, high;
        assert_int_equal(
            rd_kafka_query_watermark_offsets(client, f.queue, partition, &low, &high, 10000),
            RD_KAFKA_RESP_ERR_NO_ERROR);
        assert_int_equal(high, expected[partition]);
    }
    client_close(client);
    fixture_end(&f);
}

static void test_unroutable(void **state)
{
    fixture f;
    char missing[128];
    const wb_incoming *message;
    (void)state;
    fixture_begin(&f, 10);
    fixture_name(missing, sizeof missing);
    wb_operation operations[] = { fixture_operation(missing, "a", "a"),
                                  fixture_operation(f.queue, "b", "b"),
                                  fixture_operation("no topic/at all", "c", "c"),
                                  fixture_operation("", "d", "d") };
    int64_t started = wb_clock_monotonic();
    assert_int_equal(fixture_send(&f, operations, 4), WB_OK);
    assert_true(wb_clock_monotonic() - started < SECONDS(10));
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(operations[i].result, i == 1 ? WB_OK : WB_REJECT);
        assert_int_equal(operations[i].cause, i == 1 ? 0 : WB_CAUSE_UNROUTABLE);
    }
    assert_non_null(strstr(operations[0].reason, missing));
    fixture_receive(&f, &message, 1);
    assert_string_equal(message->id, "b");
    fixture_acknowledge(&f, &message, 1);
    /* The question did not make it, and once it is there, it is found. */
    rd_kafka_t *client = client_open();
    assert_int_equal(client_count_partitions(client, missing), 0);
    client_make_topic(client, missing, 1);
    assert_int_equal(fixture_send(&f, operations, 1), WB_OK);
    assert_int_equal(operations[0].result, WB_OK);
    client_close(client);
    fixture_end(&f);
}

static void publish(const char *type_end, const char *topic_end)
{
    char type[160];
    char qualified[200];
    fixture f;
    fixture_prepare(&f);
    (void)snprintf(type, sizeof type, "%s%s", f.queue, topic_end);
    (void)snprintf(qualified, sizeof qualified, "%s%s, Assembly, Version=1", f.queue, type_end);
    f.config.partitions = 3;
    fixture_create(&f);
    assert_int_equal(f.ops->install(f.transport, &f.error), WB_OK);
    assert_int_equal(f.ops->open(f.transport, WB_SESSION_SEND, 1, &f.session, &f.error), WB_OK);
    /* Nobody has subscribed yet. */
    wb_operation event = fixture_operation(qualified, "e", "event");
    event.kind = WB_OPERATION_PUBLISH;
    event.flags = 0;
    assert_int_equal(fixture_send(&f, &event, 1), WB_OK);
    assert_int_equal(event.result, WB_OK);
    rd_kafka_t *client = client_open();
    assert_int_equal(client_count_partitions(client, type), 1); /* the broker's default */
    client_close(client);
    fixture_close(&f);
    f.ops->destroy(f.transport);
    /* Whoever subscribes later receives it. */
    const char *types[] = { qualified };
    const wb_incoming *message;
    f.endpoint.types = types;
    f.endpoint.type_count = 1;
    fixture_start(&f, 10);
    fixture_receive(&f, &message, 1);
    assert_string_equal(message->id, "e");
    fixture_acknowledge(&f, &message, 1);
    fixture_end(&f);
}

static void test_publish(void **state)
{
    (void)state;
    publish(".Happened", ".Happened");
    /* what no topic's name can hold */
    publish(".Outer+Wrapper`1[[System.Int32, Lib]]", ".Outer-2BWrapper-601-5B-5BSystem.Int32-5D-5D");
}

static void test_too_large(void **state)
{
    static char body[3 << 20];
    wb_operation operations[20];
    const wb_incoming *messages[19];
    char small[128];
    fixture f;
    (void)state;
    fixture_prepare(&f);
    f.endpoint.body_max = 1 << 20;
    f.config.message_max = 2 << 20;
    fixture_start(&f, 100);
    /* One librdkafka refuses, and one the broker does: that topic takes 1 MiB. */
    rd_kafka_t *client = client_open();
    fixture_name(small, sizeof small);
    client_make_topic(client, small, 1);
    client_close(client);
    for (size_t i = 0; i < 20; i++) {
        operations[i] = fixture_operation(i < 10 ? f.queue : small, "id", "");
        operations[i].body = body;
        operations[i].body_size = i == 5 ? (3 << 20) : i == 15 ? (2 << 20) - 1000 : 100;
    }
    if (fixture_send(&f, operations, 20) != WB_OK)
        fail_msg("send: %s", f.error.text);
    for (size_t i = 0; i < 20; i++) {
        int large = i == 5 || i == 15;
        assert_int_equal(operations[i].result, large ? WB_REJECT : WB_OK);
        if (!large)
            continue;
        assert_int_equal(operations[i].cause, WB_CAUSE_TOO_LARGE);
        assert_non_null(strstr(operations[i].reason, "message_max = 2097152"));
    }
    fixture_receive(&f, messages, 9);
    fixture_acknowledge(&f, messages, 9);
    fixture_receive_none(&f);
    fixture_end(&f);
}

static void test_window(void **state)
{
    static const wb_incoming *messages[2000];
    fixture f;
    (void)state;
    fixture_prepare(&f);
    /* Far fewer than the window: librdkafka's queue runs full. */
    static const char *const names[] = { "queue.buffering.max.messages" };
    static const char *const values[] = { "50" };
    const wb_option_map map = { 1, names, values };
    f.config.properties = &map;
    fixture_start(&f, 2000);
    fixture_fill(&f, 2000);
    fixture_receive(&f, messages, 2000);
    for (size_t i = 0; i < 2000; i++) {
        char id[32];
        (void)snprintf(id, sizeof id, "m-%zu", i);
        assert_string_equal(messages[i]->id, id);
    }
    fixture_acknowledge(&f, messages, 2000);
    assert_true(fixture_crash_points("received_frame") >= 2000);
    assert_true(fixture_crash_points("half_dispatched") > 0);
    assert_true(fixture_crash_points("dispatch_unconfirmed") > 0);
    assert_true(fixture_crash_points("half_confirmed") > 0);
    assert_true(fixture_crash_points("acknowledge_sent") > 0);
    fixture_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_headers),    cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_foreign),    cmocka_unit_test(test_partitions),
        cmocka_unit_test(test_unroutable), cmocka_unit_test(test_publish),
        cmocka_unit_test(test_too_large),  cmocka_unit_test(test_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
