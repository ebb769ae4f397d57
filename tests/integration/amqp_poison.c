/* SPDX-License-Identifier: Apache-2.0
 *
 * The amqp transport and values that mean harm: whatever stands in an operation, its
 * neighbours are confirmed, the connection lives, and it is either sent or refused
 * with a cause. What came in can also go out again, to the error queue.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugins/common/rabbitmq.h"
#include "tests/integration/amqp-fixture.h"
#include "tests/support/text_header.h"

#define LONGEST 255

static char longest[LONGEST + 2];  /* 255 times 'l' */
static char too_long[LONGEST + 2]; /* 256 times 't' */
static char no_text[LONGEST + 1];  /* 255 times FF */

typedef struct bytes {
    const char *data;
    size_t size;
} bytes;

/* One by one in every place that takes a string. */
static const bytes nasty[] = {
    { "\xff\xfe", 2 },
    { "\xc3", 1 },                      /* cut off */
    { "\xc0\xaf", 2 },                  /* longer than it need be */
    { "\xed\xa0\x80", 3 },              /* a surrogate */
    { "\xf5\x80\x80\x80", 4 },          /* beyond the last character */
    { "a\0b", 3 },
    { "\0", 1 },
    { "a\r\nb", 4 },
    { "\x01\x02\x1b[2J", 6 },
    { "\x7f", 1 },
    { "amq.rabbitmq.reply-to", 21 },
    { "amq.rabbitmq.reply-to.g1h2AA5yZXBseUAxMjM0NTY3OA", 48 },
    { "amq.", 4 },
    { " ", 1 },
    { "{\"a\":1}", 7 },
    { longest, LONGEST },
    { too_long, LONGEST + 1 },
    { no_text, LONGEST },
};
#define NASTY (sizeof nasty / sizeof nasty[0])

/* Header names the broker looks at itself. */
static const char *const names[] = {
    "CC", "BCC", "x-death", "x-first-death-queue", "x-delivery-count", "x-delay", "x-match",
    "x-exchange", "x-routing-key", "x-opt-anything", "x-basic-type", "x-acquired-count",
    "x-stream-offset", "x-message-ttl", "x-dead-letter-exchange", "expiration", "deaths", "",
};

static int fill_strings(void **state)
{
    (void)state;
    memset(longest, 'l', LONGEST);
    memset(too_long, 't', LONGEST + 1);
    memset(no_text, 0xff, LONGEST);
    return 0;
}

static void acknowledge(fixture *f, const wb_incoming *const *messages, size_t count)
{
    if (f->ops->acknowledge(f->session, messages, count, &f->error) != WB_OK)
        fail_msg("acknowledge: %s", f->error.text);
}

/* Send it between two good ones; hands back what became of it, and leaves nothing in the
 * queue. */
static int send_between(fixture *f, wb_operation *bad, const char *what)
{
    const wb_incoming *message;
    wb_operation first = fixture_operation(f->queue, "first", "1");
    wb_operation last = fixture_operation(f->queue, "last", "3");
    wb_operation *window[] = { &first, bad, &last };
    int result = f->ops->send(f->session, window, 3, fixture_in(SECONDS(20)), &f->error);
    if (result != WB_OK)
        fail_msg("%s: send: %d %s", what, result, f->error.text);
    if (first.result != WB_OK || last.result != WB_OK)
        fail_msg("%s: a neighbour has result %d, %d", what, first.result, last.result);
    if (bad->result == WB_REJECT &&
        (!bad->reason || (bad->cause != WB_CAUSE_UNROUTABLE && bad->cause != WB_CAUSE_TOO_LARGE)))
        fail_msg("%s: refused with cause %d: %s", what, bad->cause, bad->reason);
    if (bad->result != WB_OK && bad->result != WB_REJECT)
        fail_msg("%s: result %d", what, bad->result);
    size_t expected = bad->result == WB_OK && strcmp(bad->destination, f->queue) == 0 ? 3 : 2;
    for (size_t i = 0; i < expected; i++) {
        fixture_receive(f, &message, 1);
        acknowledge(f, &message, 1);
    }
    return bad->result;
}

/* ---- where it goes --------------------------------------------------------------- */

static void test_destinations(void **state)
{
    fixture f;
    (void)state;
    fixture_begin(&f, 10);
    for (size_t i = 0; i < NASTY; i++) {
        char what[64];
        (void)snprintf(what, sizeof what, "destination %zu", i);
        wb_operation bad = fixture_operation(nasty[i].data, "bad", "2");
        assert_int_equal(send_between(&f, &bad, what), WB_REJECT);
        assert_int_equal(bad.cause, WB_CAUSE_UNROUTABLE);
    }
    fixture_end(&f);
}

static void test_types(void **state)
{
    fixture f;
    (void)state;
    fixture_begin(&f, 10);
    for (size_t i = 0; i < NASTY; i++) {
        char what[64], name[600];
        (void)snprintf(what, sizeof what, "type %zu", i);
        wb_operation bad = fixture_operation(nasty[i].data, "bad", "2");
        bad.kind = WB_OPERATION_PUBLISH;
        bad.flags = 0;
        (void)send_between(&f, &bad, what);
        (void)snprintf(name, sizeof name, "amq.%s.%s", nasty[i].data, nasty[i].data);
        bad = fixture_operation(name, "bad", "2");
        bad.kind = WB_OPERATION_PUBLISH;
        bad.flags = 0;
        (void)send_between(&f, &bad, what);
    }
    fixture_end(&f);
}

/* A line end is cut out of the names that are asked for, not of those published to: what
 * is asked for may be there. */
static void test_line_ends(void **state)
{
    fixture f;
    char name[80];
    (void)state;
    fixture_begin(&f, 10);
    (void)snprintf(name, sizeof name, "%s\n", f.queue);
    wb_operation bad = fixture_operation(name, "bad", "2");
    assert_int_equal(send_between(&f, &bad, "line end"), WB_REJECT);
    assert_int_equal(bad.cause, WB_CAUSE_UNROUTABLE);
    assert_non_null(strstr(bad.reason, "control character"));
    fixture_end(&f);
}

/* ---- what it says ---------------------------------------------------------------- */

static int too_long_for_a_name(const bytes *value)
{
    return value->size > LONGEST;
}

static void test_ids(void **state)
{
    fixture f;
    (void)state;
    fixture_begin(&f, 10);
    for (size_t i = 0; i < NASTY; i++) {
        char what[64];
        (void)snprintf(what, sizeof what, "id %zu", i);
        wb_operation bad = fixture_operation(f.queue, "", "2");
        bad.id = nasty[i].data;
        bad.id_size = nasty[i].size;
        assert_int_equal(send_between(&f, &bad, what),
                         too_long_for_a_name(&nasty[i]) ? WB_REJECT : WB_OK);
    }
    fixture_end(&f);
}

static void send_header(fixture *f, bytes name, bytes value, const char *what, int expected)
{
    wb_header header = { name.data, value.data, name.size, value.size };
    wb_operation bad = fixture_operation(f->queue, "bad", "2");
    bad.headers = &header;
    bad.header_count = 1;
    if (send_between(f, &bad, what) != expected)
        fail_msg("%s: %d %s", what, bad.result, bad.reason ? bad.reason : "");
    if (expected == WB_REJECT)
        assert_int_equal(bad.cause, WB_CAUSE_TOO_LARGE);
}

static void test_header_names(void **state)
{
    fixture f;
    (void)state;
    fixture_begin(&f, 10);
    for (size_t i = 0; i < NASTY; i++) {
        char what[64];
        (void)snprintf(what, sizeof what, "header name %zu", i);
        send_header(&f, nasty[i], (bytes){ "v", 1 }, what,
                    too_long_for_a_name(&nasty[i]) ? WB_REJECT : WB_OK);
    }
    fixture_end(&f);
}

/* Also in the headers that become properties, and in those the broker reads. */
static void test_header_values(void **state)
{
    static const char *const ours[] = {
        "NServiceBus.ContentType",
        "NServiceBus.CorrelationId",
        "NServiceBus.ReplyToAddress",
        "NServiceBus.EnclosedMessageTypes",
        "NServiceBus.MessageId",
        "any",
    };
    fixture f;
    (void)state;
    fixture_begin(&f, 10);
    for (size_t i = 0; i < NASTY; i++) {
        for (size_t n = 0; n < sizeof ours / sizeof ours[0]; n++) {
            char what[100];
            (void)snprintf(what, sizeof what, "header %s %zu", ours[n], i);
            send_header(&f, (bytes){ ours[n], strlen(ours[n]) }, nasty[i], what, WB_OK);
        }
        for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
            char what[100];
            (void)snprintf(what, sizeof what, "header %s %zu", names[n], i);
            send_header(&f, (bytes){ names[n], strlen(names[n]) }, nasty[i], what, WB_OK);
        }
    }
    fixture_end(&f);
}

/* ---- what came in goes out ------------------------------------------------------- */

static amqp_bytes_t raw(const char *data, size_t size)
{
    return (amqp_bytes_t){ size, (void *)(uintptr_t)data };
}

static amqp_table_entry_t entry(const char *name, int kind)
{
    return (amqp_table_entry_t){ amqp_cstring_bytes(name), { .kind = (uint8_t)kind } };
}

/* Received headers of other types are text afterwards, also those that the broker reads
 * when they are sent. */
static void test_error_copy(void **state)
{
    fixture f;
    const wb_incoming *message, *copy;
    (void)state;
    fixture_begin(&f, 10);
    amqp_field_value_t keys[] = {
        { .kind = AMQP_FIELD_KIND_UTF8, .value.bytes = amqp_cstring_bytes("one") },
        { .kind = AMQP_FIELD_KIND_UTF8, .value.bytes = amqp_cstring_bytes("two") },
    };
    amqp_table_entry_t entries[] = { entry("CC", AMQP_FIELD_KIND_ARRAY),
                                     entry("\xff\xfe", AMQP_FIELD_KIND_I32),
                                     entry("", AMQP_FIELD_KIND_VOID),
                                     entry("x-message-ttl", AMQP_FIELD_KIND_BYTES),
                                     entry("NServiceBus.ReplyToAddress", AMQP_FIELD_KIND_UTF8) };
    entries[0].value.value.array = (amqp_array_t){ 2, keys };
    entries[3].value.value.bytes = raw("\xff\0\xfe", 3);
    entries[4].value.value.bytes = amqp_cstring_bytes("amq.rabbitmq.reply-to");
    amqp_basic_properties_t properties = {
        ._flags = AMQP_BASIC_HEADERS_FLAG | AMQP_BASIC_CORRELATION_ID_FLAG | AMQP_BASIC_TYPE_FLAG |
                  AMQP_BASIC_CONTENT_TYPE_FLAG | AMQP_BASIC_MESSAGE_ID_FLAG,
        .headers = { sizeof entries / sizeof entries[0], entries },
        .correlation_id = raw("\xff\xfe", 2),
        .type = raw(no_text, LONGEST),
        .content_type = raw("\xc3\x28", 2),
        .message_id = raw("\xff\0\xfe", 3),
    };
    client_publish(f.queue, &properties, "\xff", 1);
    fixture_receive(&f, &message, 1);
    wb_operation moved = { .struct_size = sizeof moved,
                           .kind = WB_OPERATION_SEND,
                           .flags = WB_OPERATION_MANDATORY,
                           .destination = f.queue,
                           .id = message->id,
                           .id_size = message->id_size,
                           .headers = message->headers,
                           .header_count = message->header_count,
                           .body = message->body,
                           .body_size = message->body_size };
    wb_operation *window = &moved;
    if (f.ops->send(f.session, &window, 1, fixture_in(SECONDS(20)), &f.error) != WB_OK ||
        moved.result != WB_OK)
        fail_msg("send: %s %s", f.error.text, moved.reason ? moved.reason : "");
    fixture_receive(&f, &copy, 1);
    assert_int_equal(copy->id_size, 3);
    assert_memory_equal(copy->id, "\xff\0\xfe", 3);
    assert_int_equal(copy->header_count, message->header_count);
    for (size_t i = 0; i < copy->header_count; i++) {
        const wb_header *got = &copy->headers[i], *expected = NULL;
        for (size_t at = 0; at < message->header_count && !expected; at++) {
            if (message->headers[at].name_size == got->name_size &&
                memcmp(message->headers[at].name, got->name, got->name_size) == 0)
                expected = &message->headers[at];
        }
        assert_non_null(expected);
        assert_int_equal(got->value_size, expected->value_size);
        assert_memory_equal(got->value, expected->value, got->value_size);
    }
    acknowledge(&f, &message, 1);
    acknowledge(&f, &copy, 1);
    fixture_end(&f);
}

/* ---- where else it goes ------------------------------------------------------------ */

static uint32_t depth_of(const char *queue)
{
    amqp_connection_state_t client = client_open();
    amqp_queue_declare_ok_t *ok = amqp_queue_declare(client, 1, amqp_cstring_bytes(queue), 1, 1, 0,
                                                     0, amqp_empty_table);
    assert_non_null(ok);
    uint32_t depth = ok->message_count;
    client_close(client);
    return depth;
}

static void send_with(fixture *f, const char *address, const char *header, const char *route, int expected)
{
    const wb_header headers[] = { text_header(header, route), text_header(header, route) };
    wb_operation operation = fixture_operation(address, "m", "x");
    operation.headers = headers;
    operation.header_count = 2;
    assert_int_equal(fixture_send(f, &operation, 1), WB_OK);
    if (operation.result != expected)
        fail_msg("to %s with %s: result %d %s", address, header, operation.result,
                 operation.reason ? operation.reason : "");
}

/* Headers that the broker reads as routes: not a peer's, whose message is moved to the error queue,
 * nor anybody else's. Nor are they a place that a message to nobody arrives at. */
static void test_nowhere_else(void **state)
{
    static const char *const headers[] = { "CC", "BCC" };
    static const int topologies[] = { WB_AMQP_TOPOLOGY_CONVENTIONAL, WB_AMQP_TOPOLOGY_DIRECT };
    fixture f;
    const wb_incoming *message;
    char own[100], other[100];
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        const char *header = headers[i % 2];
        fixture_prepare(&f);
        f.config.topology = topologies[i / 2];
        fixture_create(&f);
        assert_int_equal(f.ops->install(f.transport, &f.error), WB_OK);
        fixture_open(&f, 10);
        (void)snprintf(own, sizeof own, "queue:%s", f.queue);
        (void)snprintf(other, sizeof other, "queue:%s", f.error_queue);
        send_with(&f, f.queue, header, f.error_queue, WB_OK);
        send_with(&f, own, header, f.error_queue, WB_OK);
        assert_int_equal(depth_of(f.error_queue), 0);
        for (int sent = 0; sent < 2; sent++) {
            fixture_receive(&f, &message, 1);
            acknowledge(&f, &message, 1);
        }
        send_with(&f, f.error_queue, header, f.queue, WB_OK);
        send_with(&f, other, header, f.queue, WB_OK);
        send_with(&f, "queue:nowhere-else", header, f.queue, WB_REJECT);
        fixture_receive_none(&f);
        assert_int_equal(depth_of(f.error_queue), 2);
        fixture_end(&f);
    }
}

/* ---- sizes ----------------------------------------------------------------------- */

/* The largest headers that a frame holds: the broker's count, added when it delivers them
 * again, does not fit the frame any more. */
static void test_full_frame(void **state)
{
    enum { SIZE = 131072 - 60 };
    static char value[SIZE];
    fixture f;
    const wb_incoming *message;
    (void)state;
    fixture_begin(&f, 1);
    memset(value, 'v', SIZE);
    for (size_t size = SIZE; size > SIZE - 24; size -= 3) {
        amqp_table_entry_t large = entry("large", AMQP_FIELD_KIND_UTF8);
        large.value.value.bytes = (amqp_bytes_t){ size, value };
        amqp_basic_properties_t properties = { ._flags = AMQP_BASIC_HEADERS_FLAG,
                                               .headers = { 1, &large } };
        client_publish(f.queue, &properties, "x", 1);
        for (uint32_t i = 0; i < 3; i++) {
            fixture_receive(&f, &message, 1);
            assert_int_equal(message->delivery_count, i);
            assert_int_equal(f.ops->give_back(f.session, &message, 1, &f.error), WB_OK);
        }
        fixture_receive(&f, &message, 1);
        acknowledge(&f, &message, 1);
    }
    fixture_end(&f);
}

/* A client that negotiated larger frames than we did sends a header none of ours holds. */
static void publish_large_header(const char *queue)
{
    enum { SIZE = 600000 };
    static char value[SIZE];
    memset(value, 'v', SIZE);
    amqp_table_entry_t large = entry("large", AMQP_FIELD_KIND_UTF8);
    large.value.value.bytes = (amqp_bytes_t){ SIZE, value };
    amqp_basic_properties_t properties = { ._flags = AMQP_BASIC_HEADERS_FLAG,
                                           .headers = { 1, &large } };
    amqp_connection_state_t client = amqp_new_connection();
    amqp_socket_t *socket = amqp_tcp_socket_new(client);
    assert_int_equal(amqp_socket_open(socket, "127.0.0.1", fixture_port("AMQP_PORT")), 0);
    assert_int_equal(amqp_login(client, "/", 0, 1 << 20, 0, AMQP_SASL_METHOD_PLAIN, "guest",
                                "guest")
                         .reply_type,
                     AMQP_RESPONSE_NORMAL);
    assert_non_null(amqp_channel_open(client, 1));
    assert_int_equal(amqp_basic_publish(client, 1, amqp_empty_bytes, amqp_cstring_bytes(queue), 0,
                                        0, &properties, amqp_cstring_bytes("large")),
                     0);
    client_close(client);
}

/* Receive until nothing comes, acknowledging all, on as many sessions as it takes.
 * @return how many messages there were. */
static size_t receive_all(fixture *f, size_t *ret_sessions)
{
    size_t total = 0, got;
    *ret_sessions = 1;
    do {
        const wb_incoming *messages[10];
        got = 0;
        int result = f->ops->receive(f->session, fixture_in(SECONDS(1)), messages, 10, &got,
                                     &f->error);
        if (result == WB_NOT_CONNECTED) {
            if (!strstr(f->error.text, "refuses to decode"))
                fail_msg("receive: %s", f->error.text);
            fixture_close(f);
            fixture_open(f, 10);
            ++*ret_sessions;
            got = 1;
            continue;
        }
        assert_int_equal(result, WB_OK);
        for (size_t i = 0; i < got; i++)
            if (messages[i]->delivery_count > 1)
                fail_msg("session %zu: message %zu of %zu behind %zu others came back %u times", *ret_sessions, i + 1,
                         got, total, messages[i]->delivery_count);
        if (got)
            assert_int_equal(f->ops->acknowledge(f->session, messages, got, &f->error), WB_OK);
        total += got;
    } while (got);
    return total;
}

/* What cannot be decoded is rejected, to where the operator wants it; its neighbours come, and pay one delivery at most. */
static void test_unreadable(void **state)
{
    enum { UNREADABLE = 5 };
    fixture f;
    size_t sessions;
    (void)state;
    fixture_broker("ctl", "eval 'application:set_env(rabbit, frame_max, 1048576).'");
    for (int tls = 0; tls < 2; tls++) {
        char authority[600];
        fixture_prepare(&f);
        if (tls) {
            (void)snprintf(authority, sizeof authority, "%s/ca.pem", fixture_directory());
            f.config.tls = WB_AMQP_TLS_ON;
            f.config.tls_ca_file = authority;
            f.config.port = fixture_port("AMQPS_PORT");
        }
        f.config.dead_letter_exchange = tls ? NULL : f.error_queue;
        fixture_create(&f);
        assert_int_equal(f.ops->install(f.transport, &f.error), WB_OK);
        int warnings = fixture_warnings();
        fixture_open(&f, 10);
        fixture_fill(&f, 3);
        for (int i = 0; i < UNREADABLE; i++)
            publish_large_header(f.queue);
        fixture_fill(&f, 3);
        assert_int_equal(receive_all(&f, &sessions), 6);
        assert_int_equal(sessions, 1 + UNREADABLE);
        assert_int_equal(fixture_warnings(), warnings + UNREADABLE);
        assert_int_equal(depth_of(f.error_queue), tls ? 0 : UNREADABLE);
        fixture_end(&f);
    }
}

/* What is in hand is settled first: who only looks is not told to connect again. */
static void test_unreadable_beside_another(void **state)
{
    fixture f;
    const wb_incoming *message, *none;
    size_t got;
    (void)state;
    fixture_begin(&f, 10);
    fixture_fill(&f, 1);
    fixture_receive(&f, &message, 1);
    publish_large_header(f.queue);
    int64_t deadline = fixture_in(SECONDS(20));
    for (int after = 0; after < 3 && fixture_in(0) < deadline; (void)usleep(10000)) {
        after += strstr(fixture_last_line(), "refuses to decode") != NULL;
        if (f.ops->receive(f.session, 0, &none, 1, &got, &f.error) != WB_OK)
            fail_msg("receive: %s", f.error.text);
        assert_int_equal(got, 0);
    }
    assert_non_null(strstr(fixture_last_line(), "refuses to decode"));
    acknowledge(&f, &message, 1);
    assert_int_equal(f.ops->receive(f.session, fixture_in(SECONDS(1)), &none, 1, &got, &f.error),
                     WB_NOT_CONNECTED);
    fixture_close(&f);
    fixture_open(&f, 10);
    fixture_receive_none(&f);
    fixture_end(&f);
}

static void test_forged_count(void **state)
{
    fixture f;
    const wb_incoming *message;
    (void)state;
    fixture_begin(&f, 1);
    for (int i = 0; i < 2; i++) {
        amqp_table_entry_t forged = entry("x-delivery-count", AMQP_FIELD_KIND_I64);
        forged.value.value.i64 = i == 0 ? 1000 : -7;
        amqp_basic_properties_t properties = { ._flags = AMQP_BASIC_HEADERS_FLAG,
                                               .headers = { 1, &forged } };
        client_publish(f.queue, &properties, "x", 1);
        fixture_receive(&f, &message, 1);
        assert_int_equal(message->delivery_count, 0);
        assert_int_equal(f.ops->give_back(f.session, &message, 1, &f.error), WB_OK);
        fixture_receive(&f, &message, 1);
        assert_int_equal(message->delivery_count, 1);
        acknowledge(&f, &message, 1);
    }
    fixture_end(&f);
}

/* The broker writes its count over the first of them, and leaves others behind it. */
static void test_forged_count_twice(void **state)
{
    fixture f;
    const wb_incoming *message;
    (void)state;
    fixture_begin(&f, 1);
    amqp_table_entry_t forged[] = { entry("x-delivery-count", AMQP_FIELD_KIND_I64),
                                    entry("x-delivery-count", AMQP_FIELD_KIND_I64) };
    forged[0].value.value.i64 = 1000;
    forged[1].value.value.i64 = 2000;
    amqp_basic_properties_t properties = { ._flags = AMQP_BASIC_HEADERS_FLAG,
                                           .headers = { 2, forged } };
    client_publish(f.queue, &properties, "x", 1);
    for (uint32_t i = 0; i < 3; i++) {
        fixture_receive(&f, &message, 1);
        assert_int_equal(message->delivery_count, i);
        assert_int_equal(f.ops->give_back(f.session, &message, 1, &f.error), WB_OK);
    }
    fixture_receive(&f, &message, 1);
    assert_int_equal(f.ops->acknowledge(f.session, &message, 1, &f.error), WB_OK);
    fixture_end(&f);
}

/* A classic queue counts nothing and hands a forged count on. */
static void test_forged_count_classic(void **state)
{
    fixture f;
    const wb_incoming *message;
    (void)state;
    fixture_prepare(&f);
    f.config.queue_type = WB_AMQP_QUEUE_CLASSIC;
    fixture_create(&f);
    assert_int_equal(f.ops->install(f.transport, &f.error), WB_OK);
    fixture_open(&f, 1);
    amqp_table_entry_t forged = entry("x-delivery-count", AMQP_FIELD_KIND_I32);
    forged.value.value.i32 = 1000;
    amqp_basic_properties_t properties = { ._flags = AMQP_BASIC_HEADERS_FLAG,
                                           .headers = { 1, &forged } };
    client_publish(f.queue, &properties, "x", 1);
    for (uint32_t i = 0; i < 2; i++) {
        fixture_receive(&f, &message, 1);
        assert_int_equal(message->delivery_count, i);
        assert_int_equal(f.ops->give_back(f.session, &message, 1, &f.error), WB_OK);
    }
    fixture_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_destinations),  cmocka_unit_test(test_types),
        cmocka_unit_test(test_line_ends),     cmocka_unit_test(test_ids),
        cmocka_unit_test(test_header_names),  cmocka_unit_test(test_header_values),
        cmocka_unit_test(test_error_copy),    cmocka_unit_test(test_nowhere_else),
        cmocka_unit_test(test_full_frame),    cmocka_unit_test(test_unreadable),
        cmocka_unit_test(test_unreadable_beside_another),
        cmocka_unit_test(test_forged_count),  cmocka_unit_test(test_forged_count_classic),
        cmocka_unit_test(test_forged_count_twice),
    };
    return cmocka_run_group_tests_name("amqp poison", tests, fill_strings, NULL);
}
