/* SPDX-License-Identifier: Apache-2.0
 *
 * The amqp transport against a real broker: what goes in comes out, byte for byte, and
 * each message of a window gets the result it deserves.
 */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/integration/amqp-fixture.h"
#include "tests/support/text_header.h"

/* ---- helpers --------------------------------------------------------------------- */

static const wb_header *header(const wb_incoming *message, const char *name)
{
    for (size_t i = 0; i < message->header_count; i++) {
        if (message->headers[i].name_size == strlen(name) &&
            memcmp(message->headers[i].name, name, strlen(name)) == 0)
            return &message->headers[i];
    }
    return NULL;
}

static void assert_header(const wb_incoming *message, const char *name, const char *value)
{
    const wb_header *found = header(message, name);
    if (!found)
        fail_msg("no header %s", name);
    assert_string_equal(found->value, value);
    assert_int_equal(found->value_size, strlen(value));
}

static void acknowledge(fixture *f, const wb_incoming *const *messages, size_t count)
{
    if (f->ops->acknowledge(f->session, messages, count, &f->error) != WB_OK)
        fail_msg("acknowledge: %s", f->error.text);
}

/* ---- exactness ------------------------------------------------------------------- */

static void test_bodies(void **state)
{
    static const size_t sizes[] = { 0,      1,      131063,          131064,         131065,
                                    262128, 262129, 16u << 20, 17u << 20 };
    fixture f;
    (void)state;
    fixture_begin(&f, 10);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        unsigned char *body = malloc(sizes[i] + 1);
        assert_non_null(body);
        for (size_t at = 0; at < sizes[i]; at++)
            body[at] = (unsigned char)(at * 31 + (at >> 11) + i);
        wb_operation operation = fixture_operation(f.queue, "body", "");
        operation.body = body;
        operation.body_size = sizes[i];
        assert_int_equal(fixture_send(&f, &operation, 1), WB_OK);
        const wb_incoming *message;
        fixture_receive(&f, &message, 1);
        assert_int_equal(message->body_size, sizes[i]);
        assert_int_equal(memcmp(message->body, body, sizes[i]), 0);
        assert_null(message->problem);
        acknowledge(&f, &message, 1);
        free(body);
    }
    fixture_end(&f);
}

/* What came with one read is handed on at once: for as long as this waits the broker sends nothing else, not even a
 * heartbeat, behind which it would show. */
static void read_together(int32_t tls)
{
    static char ca[512];
    fixture f;
    const wb_incoming *messages[10];
    fixture_prepare(&f);
    (void)snprintf(ca, sizeof ca, "%s/ca.pem", fixture_directory());
    f.config.tls = tls;
    f.config.tls_ca_file = ca;
    f.config.port = fixture_port(tls == WB_AMQP_TLS_ON ? "AMQPS_PORT" : "AMQP_PORT");
    f.config.heartbeat = SECONDS(120);
    fixture_create(&f);
    assert_int_equal(f.ops->install(f.transport, &f.error), WB_OK);
    fixture_open(&f, 10);
    fixture_fill(&f, 10);
    fixture_receive(&f, messages, 10);
    acknowledge(&f, messages, 10);
    fixture_receive_none(&f);
    fixture_end(&f);
}

static void test_read_together(void **state)
{
    (void)state;
    read_together(WB_AMQP_TLS_OFF);
}

static void test_read_together_tls(void **state)
{
    (void)state;
    read_together(WB_AMQP_TLS_ON);
}

static void test_ids(void **state)
{
    enum { COUNT = 255 };
    static char ids[COUNT][COUNT];
    static wb_operation operations[COUNT];
    static const wb_incoming *messages[COUNT];
    fixture f;
    (void)state;
    fixture_begin(&f, COUNT);
    for (int i = 0; i < COUNT; i++) {
        for (int at = 0; at <= i; at++)
            ids[i][at] = (char)(i + at * 7);
        operations[i] = fixture_operation(f.queue, "", "x");
        operations[i].id = ids[i];
        operations[i].id_size = (size_t)i + 1;
    }
    assert_int_equal(fixture_send(&f, operations, COUNT), WB_OK);
    fixture_receive(&f, messages, COUNT);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(operations[i].result, WB_OK);
        assert_int_equal(messages[i]->id_size, i + 1);
        assert_memory_equal(messages[i]->id, ids[i], (size_t)i + 1);
        assert_int_equal(messages[i]->id[i + 1], '\0');
    }
    acknowledge(&f, messages, COUNT);
    fixture_end(&f);
}

static void test_headers(void **state)
{
    enum { COUNT = 300 };
    static wb_header headers[COUNT];
    static char names[COUNT][64];
    static char values[COUNT][300];
    fixture f;
    (void)state;
    fixture_begin(&f, 10);
    for (int i = 0; i < COUNT; i++) {
        int name = snprintf(names[i], sizeof names[i], "schlüssel-ключ-鍵-🔑-%d", i);
        int value = snprintf(values[i], sizeof values[i], "wert „ß“ %d \n\t\r значение 値 🎈", i);
        values[i][value / 2] = i % 3 == 0 ? '\0' : values[i][value / 2];
        headers[i] = (wb_header){ names[i], values[i], (size_t)name, (size_t)value };
    }
    headers[7].value = "";
    headers[7].value_size = 0;
    wb_operation operation = fixture_operation(f.queue, "headers", "x");
    operation.headers = headers;
    operation.header_count = COUNT;
    assert_int_equal(fixture_send(&f, &operation, 1), WB_OK);
    const wb_incoming *message;
    fixture_receive(&f, &message, 1);
    assert_true(message->header_count >= COUNT);
    for (int i = 0; i < COUNT; i++) {
        const wb_header *got = header(message, names[i]); /* RabbitMQ 4 mixes them */
        assert_non_null(got);
        assert_memory_equal(got->name, headers[i].name, got->name_size + 1);
        assert_int_equal(got->value_size, headers[i].value_size);
        assert_memory_equal(got->value, headers[i].value, got->value_size + 1);
    }
    acknowledge(&f, &message, 1);
    fixture_end(&f);
}

static void test_properties_sent(void **state)
{
    static const wb_header headers[] = {
        TEXT_HEADER("NServiceBus.ContentType", "application/json"),
        TEXT_HEADER("NServiceBus.CorrelationId", "corr-1"),
        TEXT_HEADER("NServiceBus.ReplyToAddress", "billing"),
        TEXT_HEADER("NServiceBus.EnclosedMessageTypes", "Sales.PlaceOrder, Sales;Sales.IOrder"),
    };
    fixture f;
    (void)state;
    fixture_begin(&f, 10);
    fixture_close(&f);
    f.ops->open(f.transport, WB_SESSION_SEND, 0, &f.session, &f.error);
    wb_operation operations[2];
    operations[0] = fixture_operation(f.queue, "id-1", "{}");
    operations[0].headers = headers;
    operations[0].header_count = sizeof headers / sizeof headers[0];
    operations[1] = fixture_operation(f.queue, "id-2", "{}");
    operations[1].flags |= WB_OPERATION_NON_PERSISTENT;
    assert_int_equal(fixture_send(&f, operations, 2), WB_OK);

    amqp_connection_state_t client = client_open();
    for (int i = 0; i < 2; i++) {
        amqp_message_t message;
        amqp_rpc_reply_t reply;
        do
            reply = amqp_basic_get(client, 1, amqp_cstring_bytes(f.queue), 1);
        while (reply.reply_type == AMQP_RESPONSE_NORMAL &&
               reply.reply.id == AMQP_BASIC_GET_EMPTY_METHOD);
        assert_int_equal(reply.reply_type, AMQP_RESPONSE_NORMAL);
        assert_int_equal(amqp_read_message(client, 1, &message, 0).reply_type,
                         AMQP_RESPONSE_NORMAL);
        const amqp_basic_properties_t *p = &message.properties;
        assert_int_equal(p->delivery_mode, i == 0 ? 2 : 1);
        assert_memory_equal(p->message_id.bytes, i == 0 ? "id-1" : "id-2", 4);
        if (i == 0) {
            assert_memory_equal(p->content_type.bytes, "application/json", p->content_type.len);
            assert_memory_equal(p->correlation_id.bytes, "corr-1", p->correlation_id.len);
            assert_memory_equal(p->reply_to.bytes, "billing", p->reply_to.len);
            assert_int_equal(p->type.len, strlen("Sales.PlaceOrder"));
            assert_memory_equal(p->type.bytes, "Sales.PlaceOrder", p->type.len);
            assert_in_range(p->headers.num_entries, 4, 5); /* the queue may add its count */
            assert_int_equal(p->headers.entries[0].value.kind, AMQP_FIELD_KIND_UTF8);
        } else {
            assert_memory_equal(p->content_type.bytes, "application/octet-stream",
                                p->content_type.len);
        }
        amqp_destroy_message(&message);
    }
    client_close(client);
    fixture_end(&f);
}

/* ---- foreign messages ------------------------------------------------------------ */

static amqp_table_entry_t text_entry(const char *name, const char *value)
{
    return (amqp_table_entry_t){
        amqp_cstring_bytes(name),
        { .kind = AMQP_FIELD_KIND_UTF8, .value.bytes = amqp_cstring_bytes(value) }
    };
}

static void expect_foreign_values(const wb_incoming *message)
{
    assert_string_equal(message->id, "foreign");
    assert_header(message, "int", "-5");
    assert_header(message, "long", "-9223372036854775808");
    assert_header(message, "bool", "True");
    assert_header(message, "double", "0.1");
    assert_header(message, "stamp", "1970-01-02 00:00:00:000000 Z");
    assert_header(message, "void", "");
    assert_header(message, "bytes", "raw");
    assert_header(message, "decimal", "0.05");
    assert_header(message, "table", "a=1,b=2");
    assert_header(message, "list", "-7;zwei");
    assert_null(header(message, "x-death"));
    assert_null(header(message, "x-first-death-queue"));
    assert_header(message, "NServiceBus.ReplyToAddress", "from property");
    assert_header(message, "NServiceBus.EnclosedMessageTypes", "Kept.Type");
    assert_header(message, "NServiceBus.CorrelationId", "c1");
    assert_header(message, "NServiceBus.ContentType", "text/plain");
    assert_int_equal(message->header_count, 14);
}

static void test_foreign_values(void **state)
{
    fixture f;
    (void)state;
    fixture_begin(&f, 10);
    amqp_field_value_t items[] = {
        { .kind = AMQP_FIELD_KIND_I32, .value.i32 = -7 },
        { .kind = AMQP_FIELD_KIND_UTF8, .value.bytes = amqp_cstring_bytes("zwei") },
    };
    amqp_table_entry_t inner[] = { text_entry("a", "1"), text_entry("b", "2") };
#define VALUE(name, k, ...)                                                                        \
    {                                                                                              \
        amqp_cstring_bytes(name),                                                                  \
        {                                                                                          \
            .kind = AMQP_FIELD_KIND_##k, __VA_ARGS__                                               \
        }                                                                                          \
    }
    amqp_table_entry_t entries[] = {
        VALUE("int", I32, .value.i32 = -5),
        VALUE("long", I64, .value.i64 = INT64_MIN),
        VALUE("bool", BOOLEAN, .value.boolean = 1),
        VALUE("double", F64, .value.f64 = 0.1),
        VALUE("stamp", TIMESTAMP, .value.u64 = 86400),
        VALUE("void", VOID, .value.u64 = 0),
        VALUE("bytes", BYTES, .value.bytes = amqp_cstring_bytes("raw")),
        VALUE("decimal", DECIMAL, .value.decimal = { 2, 5 }),
        VALUE("table", TABLE, .value.table = { 2, inner }),
        VALUE("list", ARRAY, .value.array = { 2, items }),
        text_entry("x-death", "gone"),
        text_entry("x-first-death-queue", "gone"),
        text_entry("NServiceBus.ReplyToAddress", "from header"),
        text_entry("NServiceBus.EnclosedMessageTypes", "Kept.Type"),
    };
    amqp_basic_properties_t properties = {
        ._flags = AMQP_BASIC_HEADERS_FLAG | AMQP_BASIC_REPLY_TO_FLAG | AMQP_BASIC_TYPE_FLAG |
                  AMQP_BASIC_CORRELATION_ID_FLAG | AMQP_BASIC_CONTENT_TYPE_FLAG |
                  AMQP_BASIC_MESSAGE_ID_FLAG,
        .headers = { sizeof entries / sizeof entries[0], entries },
        .reply_to = amqp_cstring_bytes("from property"),
        .type = amqp_cstring_bytes("Dropped.Type"),
        .correlation_id = amqp_cstring_bytes("c1"),
        .content_type = amqp_cstring_bytes("text/plain"),
        .message_id = amqp_cstring_bytes("foreign"),
    };
    client_publish(f.queue, &properties, "x", 1);
    const wb_incoming *message;
    fixture_receive(&f, &message, 1);
    expect_foreign_values(message);
    acknowledge(&f, &message, 1);
    fixture_end(&f);
}

static void test_foreign_ids(void **state)
{
    fixture f;
    const wb_incoming *messages[3];
    (void)state;
    fixture_begin(&f, 10);
    amqp_table_entry_t id = text_entry("NServiceBus.MessageId", "from header");
    amqp_basic_properties_t with_header = { ._flags = AMQP_BASIC_HEADERS_FLAG,
                                            .headers = { 1, &id } };
    amqp_basic_properties_t with_type = { ._flags = AMQP_BASIC_TYPE_FLAG,
                                          .type = amqp_cstring_bytes("Ns.Type") };
    client_publish(f.queue, &with_header, "x", 1);
    fixture_receive(&f, &messages[0], 1);
    client_publish(f.queue, &with_type, "x", 1);
    fixture_receive(&f, &messages[1], 1);
    client_publish(f.queue, NULL, "", 0);
    fixture_receive(&f, &messages[2], 1);
    assert_string_equal(messages[0]->id, "from header");
    assert_int_equal(messages[0]->id_size, strlen("from header"));
    assert_null(messages[1]->id);
    assert_header(messages[1], "NServiceBus.EnclosedMessageTypes", "Ns.Type");
    assert_null(messages[2]->id);
    assert_int_equal(messages[2]->id_size, 0);
    assert_int_equal(messages[2]->header_count, 0);
    acknowledge(&f, messages, 3);
    fixture_end(&f);
}

/* Nested deeper than the library decodes (0.14 and later: 100 levels or so) the message is
 * rejected; nothing else suffers. */
static void receive_nested(fixture *f, const char *name, const char *value)
{
    const wb_incoming *message;
    size_t got = 0;
    if (amqp_version_number() < AMQP_VERSION_CODE(0, 14, 0, 0)) {
        fixture_receive(f, &message, 1);
        assert_header(message, name, value);
    } else {
        int r = f->ops->receive(f->session, fixture_in(SECONDS(20)), &message, 1, &got, &f->error);
        assert_int_equal(r, WB_NOT_CONNECTED);
        if (!strstr(f->error.text, "refuses to decode"))
            fail_msg("receive: %s", f->error.text);
        fixture_close(f);
        fixture_open(f, 10);
        client_publish(f->queue, NULL, "after", 5);
        fixture_receive(f, &message, 1);
        assert_int_equal(message->body_size, 5);
        assert_int_equal(message->delivery_count, 0);
    }
    acknowledge(f, &message, 1);
}

/* A client may nest as deep as a frame allows; nobody's stack may suffer. */
static void test_deep_nesting(void **state)
{
    enum { DEPTH = 18000 };
    static amqp_table_entry_t levels[DEPTH];
    fixture f;
    (void)state;
    fixture_begin(&f, 10);
    levels[DEPTH - 1] = text_entry("end", "x");
    for (int i = DEPTH - 2; i >= 0; i--)
        levels[i] = (amqp_table_entry_t){ amqp_cstring_bytes("d"),
                                          { .kind = AMQP_FIELD_KIND_TABLE,
                                            .value.table = { 1, &levels[i + 1] } } };
    amqp_basic_properties_t properties = { ._flags = AMQP_BASIC_HEADERS_FLAG,
                                           .headers = { 1, levels } };
    client_publish(f.queue, &properties, "x", 1);
    receive_nested(&f, "d", "d=d=d=d=d=d=d=d=");
    fixture_end(&f);
}

/* Another thread reads while the host does something else, and its stack is not what the
 * system gives by default. */
static void test_deep_nesting_meanwhile(void **state)
{
    enum { DEPTH = 25000 };
    static amqp_field_value_t levels[DEPTH];
    pthread_attr_t before, small;
    fixture f;
    (void)state;
    for (int i = DEPTH - 1; i >= 0; i--)
        levels[i] = (amqp_field_value_t){ .kind = AMQP_FIELD_KIND_ARRAY,
                                          .value.array = { i < DEPTH - 1, &levels[i + 1] } };
    amqp_table_entry_t header_entry = { amqp_cstring_bytes("deep"), levels[0] };
    amqp_basic_properties_t properties = { ._flags = AMQP_BASIC_HEADERS_FLAG,
                                           .headers = { 1, &header_entry } };
    assert_int_equal(pthread_getattr_default_np(&before), 0);
    assert_int_equal(pthread_attr_init(&small), 0);
    assert_int_equal(pthread_attr_setstacksize(&small, 256 << 10), 0);
    assert_int_equal(pthread_setattr_default_np(&small), 0);
    fixture_prepare(&f);
    f.config.heartbeat = SECONDS(1);
    fixture_create(&f);
    assert_int_equal(f.ops->install(f.transport, &f.error), WB_OK);
    fixture_open(&f, 10);
    int frames = fixture_crash_points("received_frame");
    client_publish(f.queue, &properties, "x", 1);
    int64_t deadline = fixture_in(SECONDS(20));
    while (fixture_crash_points("received_frame") == frames &&
           !strstr(fixture_last_line(), "refuses to decode") && fixture_in(0) < deadline)
        (void)usleep(10000);
    assert_true(fixture_in(0) < deadline);
    assert_int_equal(pthread_setattr_default_np(&before), 0);
    receive_nested(&f, "deep", "");
    fixture_end(&f);
}

/* ---- results --------------------------------------------------------------------- */

static void assert_rejected(const wb_operation *operation, int cause, const char *text)
{
    assert_int_equal(operation->result, WB_REJECT);
    assert_int_equal(operation->cause, cause);
    assert_non_null(operation->reason);
    if (!strstr(operation->reason, text))
        fail_msg("the reason is: %s", operation->reason);
}

/* Identical ids are told apart by order: of four sends with one id, the two to the
 * queue that is gone are the ones that fail. */
static void test_unroutable(void **state)
{
    fixture f, gone;
    (void)state;
    fixture_begin(&gone, 1);
    fixture_close(&gone);
    client_delete_queue(gone.queue);
    fixture_begin(&f, 10);
    wb_operation operations[] = {
        fixture_operation(f.queue, "same", "1"),    fixture_operation(gone.queue, "same", "2"),
        fixture_operation(f.queue, "same", "3"),    fixture_operation(gone.queue, "same", "4"),
        fixture_operation(gone.queue, "other", "5"), fixture_operation(gone.queue, "same", "6"),
    };
    operations[3].flags = 0; /* not mandatory: confirmed, and lost by its own wish */
    assert_int_equal(fixture_send(&f, operations, 6), WB_OK);
    assert_int_equal(operations[0].result, WB_OK);
    assert_rejected(&operations[1], WB_CAUSE_UNROUTABLE, "no queue is bound to");
    assert_int_equal(operations[2].result, WB_OK);
    assert_int_equal(operations[3].result, WB_OK);
    assert_rejected(&operations[4], WB_CAUSE_UNROUTABLE, gone.queue);
    assert_rejected(&operations[5], WB_CAUSE_UNROUTABLE, gone.queue);
    const wb_incoming *messages[2];
    fixture_receive(&f, messages, 2);
    acknowledge(&f, messages, 2);
    fixture_receive_none(&f);
    fixture_end(&f);
    fixture_end(&gone);
}

static void test_missing_exchange(void **state)
{
    fixture f;
    (void)state;
    fixture_begin(&f, 10);
    char long_name[300];
    memset(long_name, 'n', sizeof long_name);
    long_name[299] = '\0';
    wb_operation operations[] = {
        fixture_operation(f.queue, "1", "1"),     fixture_operation("nowhere", "2", "2"),
        fixture_operation(f.queue, "3", "3"),     fixture_operation("", "4", "4"),
        fixture_operation(long_name, "5", "5"),
    };
    for (int again = 0; again < 2; again++) {
        assert_int_equal(fixture_send(&f, operations, 5), WB_OK);
        assert_int_equal(operations[0].result, WB_OK);
        assert_rejected(&operations[1], WB_CAUSE_UNROUTABLE, "\"nowhere\"");
        assert_int_equal(operations[2].result, WB_OK);
        assert_rejected(&operations[3], WB_CAUSE_UNROUTABLE, "destination");
        assert_rejected(&operations[4], WB_CAUSE_UNROUTABLE, "destination");
    }
    fixture_end(&f);
}

/* Known to exist, then deleted: the channel breaks in the middle of a window. */
static void test_deleted_exchange(void **state)
{
    fixture f, gone;
    (void)state;
    fixture_begin(&gone, 1);
    fixture_begin(&f, 100);
    wb_operation operations[40];
    static char ids[40][8];
    for (int i = 0; i < 40; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "d%d", i);
        operations[i] = fixture_operation(i % 4 == 1 ? gone.queue : f.queue, ids[i], ids[i]);
    }
    assert_int_equal(fixture_send(&f, operations, 40), WB_OK);
    assert_int_equal(operations[1].result, WB_OK);
    client_delete_exchange(gone.queue);
    assert_int_equal(fixture_send(&f, operations, 40), WB_OK);
    for (int i = 0; i < 40; i++) {
        if (i % 4 == 1)
            assert_rejected(&operations[i], WB_CAUSE_UNROUTABLE, gone.queue);
        else
            assert_int_equal(operations[i].result, WB_OK);
    }
    /* Each of the others arrived at least once a send. */
    const wb_incoming *messages[60];
    fixture_receive(&f, messages, 60);
    acknowledge(&f, messages, 60);
    fixture_end(&f);
    fixture_end(&gone);
}

static void test_too_large(void **state)
{
    enum { LARGE = 21 << 20 };
    fixture f;
    (void)state;
    fixture_begin(&f, 10);
    char *body = malloc(LARGE);
    assert_non_null(body);
    memset(body, 'b', LARGE);
    wb_operation operations[] = {
        fixture_operation(f.queue, "1", "1"), fixture_operation(f.queue, "2", ""),
        fixture_operation(f.queue, "3", "3"), fixture_operation(f.queue, "4", "4"),
    };
    operations[1].body = body;
    operations[1].body_size = LARGE;
    assert_int_equal(fixture_send(&f, operations, 4), WB_OK);
    assert_int_equal(operations[0].result, WB_OK);
    assert_rejected(&operations[1], WB_CAUSE_TOO_LARGE, "22020096");
    assert_int_equal(operations[2].result, WB_OK);
    assert_int_equal(operations[3].result, WB_OK);
    const wb_incoming *messages[3];
    fixture_receive(&f, messages, 3);
    acknowledge(&f, messages, 3);
    free(body);
    fixture_end(&f);
}

static void test_too_large_headers(void **state)
{
    fixture f;
    (void)state;
    fixture_begin(&f, 10);
    static char value[140000], name[300];
    memset(value, 'v', sizeof value - 1);
    memset(name, 'n', sizeof name - 1);
    wb_header large = { "large", value, 5, sizeof value - 1 };
    wb_header longest = { name, "x", sizeof name - 1, 1 };
    wb_operation operations[] = { fixture_operation(f.queue, "1", "1"),
                                  fixture_operation(f.queue, "2", "2"),
                                  fixture_operation(f.queue, "3", "3") };
    operations[1].headers = &large;
    operations[1].header_count = 1;
    operations[2].headers = &longest;
    operations[2].header_count = 1;
    assert_int_equal(fixture_send(&f, operations, 3), WB_OK);
    assert_int_equal(operations[0].result, WB_OK);
    assert_rejected(&operations[1], WB_CAUSE_TOO_LARGE, "headers");
    assert_rejected(&operations[2], WB_CAUSE_TOO_LARGE, "255");
    fixture_end(&f);
}

/* A full queue that refuses: the broker takes no responsibility, and says so. */
static void test_nack(void **state)
{
    fixture f;
    (void)state;
    fixture_begin(&f, 1);
    amqp_table_entry_t limits[] = {
        { amqp_cstring_bytes("x-max-length"), { .kind = AMQP_FIELD_KIND_I32, .value.i32 = 1 } },
        text_entry("x-overflow", "reject-publish"),
    };
    amqp_bytes_t name = amqp_cstring_bytes("refuses");
    amqp_connection_state_t client = client_open();
    assert_non_null(amqp_queue_declare(client, 1, name, 0, 0, 0, 0,
                                       (amqp_table_t){ 2, limits }));
    assert_non_null(amqp_exchange_declare(client, 1, name, amqp_cstring_bytes("fanout"), 0, 0, 0, 0,
                                          amqp_empty_table));
    assert_non_null(amqp_queue_bind(client, 1, name, name, amqp_empty_bytes, amqp_empty_table));
    client_close(client);
    wb_operation full = fixture_operation("refuses", "0", "0");
    assert_int_equal(fixture_send(&f, &full, 1), WB_OK);
    wb_operation operations[] = { fixture_operation(f.queue, "1", "1"),
                                  fixture_operation("refuses", "2", "2"),
                                  fixture_operation(f.queue, "3", "3") };
    assert_int_equal(fixture_send(&f, operations, 3), WB_RETRY);
    assert_int_equal(operations[0].result, WB_OK);
    assert_int_equal(operations[1].result, WB_RETRY);
    assert_int_equal(operations[2].result, WB_OK);
    client_delete_queue("refuses");
    assert_int_equal(fixture_send(&f, operations, 3), WB_OK);
    assert_rejected(&operations[1], WB_CAUSE_UNROUTABLE, "refuses");
    fixture_end(&f);
}

static void test_events(void **state)
{
    static const char *const types[] = { "Sales.Orders.OrderPlaced" };
    fixture f;
    (void)state;
    fixture_prepare(&f);
    f.endpoint.types = types;
    f.endpoint.type_count = 1;
    fixture_create(&f);
    assert_int_equal(f.ops->install(f.transport, &f.error), WB_OK);
    fixture_open(&f, 10);
    wb_operation event = fixture_operation("Sales.Orders.OrderPlaced", "e1", "{}");
    event.kind = WB_OPERATION_PUBLISH;
    event.flags = 0;
    wb_operation nobodys = fixture_operation("Sales.NobodyListens", "e2", "{}");
    nobodys.kind = WB_OPERATION_PUBLISH;
    nobodys.flags = 0;
    wb_operation both[] = { event, nobodys };
    const wb_incoming *message;
    assert_int_equal(fixture_send(&f, both, 2), WB_OK);
    fixture_receive(&f, &message, 1);
    assert_string_equal(message->id, "e1");
    acknowledge(&f, &message, 1);
    /* Gone, with its binding: publishing goes on. */
    client_delete_exchange("Sales.Orders:OrderPlaced");
    assert_int_equal(fixture_send(&f, both, 2), WB_OK);
    assert_int_equal(both[0].result, WB_OK);
    fixture_receive_none(&f);
    fixture_end(&f);
}

/* Types of one base that nobody installed: each is bound to it when it is first published. */
static void test_types_of_one_base(void **state)
{
    static const char *const base[] = { "Sales.Base" };
    static const char *const names[] = { "Sales.First", "Sales.Second" };
    static const char *const types[] = { "Sales.First;Sales.Base", "Sales.Second;Sales.Base" };
    const wb_incoming *messages[2];
    wb_operation events[2];
    wb_header headers[2];
    fixture f;
    (void)state;
    fixture_prepare(&f);
    f.endpoint.types = base;
    f.endpoint.type_count = 1;
    fixture_create(&f);
    assert_int_equal(f.ops->install(f.transport, &f.error), WB_OK);
    fixture_open(&f, 10);
    for (size_t i = 0; i < 2; i++) {
        static const char name[] = "NServiceBus.EnclosedMessageTypes";
        headers[i] = (wb_header){ name, types[i], sizeof name - 1, strlen(types[i]) };
        events[i] = fixture_operation(names[i], names[i], "{}");
        events[i].kind = WB_OPERATION_PUBLISH;
        events[i].flags = 0;
        events[i].headers = &headers[i];
        events[i].header_count = 1;
    }
    assert_int_equal(fixture_send(&f, events, 2), WB_OK);
    fixture_receive(&f, messages, 2);
    assert_string_equal(messages[1]->id, names[1]);
    acknowledge(&f, messages, 2);
    fixture_end(&f);
}

/* ---- bases that may not be bound --------------------------------------------------- */

static _Atomic int64_t ahead;

static int64_t later(void)
{
    return wb_clock_monotonic() + ahead;
}

static void publish_child(fixture *f)
{
    const wb_header types = TEXT_HEADER("NServiceBus.EnclosedMessageTypes", "Bases.Child;Bases.Base");
    wb_operation event = fixture_operation("Bases.Child", "child", "{}");
    wb_operation *window = &event;
    event.kind = WB_OPERATION_PUBLISH;
    event.flags = 0;
    event.headers = &types;
    event.header_count = 1;
    assert_int_equal(f->ops->send(f->session, &window, 1, later() + SECONDS(20), &f->error), WB_OK);
    assert_int_equal(event.result, WB_OK);
}

static void listen_to_base(void)
{
    amqp_bytes_t exchange = amqp_cstring_bytes("Bases:Base"), queue = amqp_cstring_bytes("base-listener");
    amqp_connection_state_t client = client_open();
    assert_non_null(amqp_exchange_declare(client, 1, exchange, amqp_cstring_bytes("fanout"), 0, 1, 0, 0,
                                          amqp_empty_table));
    assert_non_null(amqp_queue_declare(client, 1, queue, 0, 1, 0, 0, amqp_empty_table));
    assert_non_null(amqp_queue_bind(client, 1, queue, exchange, amqp_empty_bytes, amqp_empty_table));
    client_close(client);
}

static uint32_t count_heard(void)
{
    amqp_connection_state_t client = client_open();
    amqp_queue_declare_ok_t *ok = amqp_queue_declare(client, 1, amqp_cstring_bytes("base-listener"), 1, 1, 0, 0,
                                                     amqp_empty_table);
    assert_non_null(ok);
    uint32_t count = ok->message_count;
    client_close(client);
    return count;
}

/* The log says it once, whatever the number of workers and sessions; it is asked for again now and then, so
 * that nobody has to start the endpoint anew when the permission is granted. */
static void test_refused_base(void **state)
{
    fixture f;
    (void)state;
    fixture_prepare(&f);
    fixture_create(&f);
    assert_int_equal(f.ops->install(f.transport, &f.error), WB_OK);
    f.ops->destroy(f.transport);
    listen_to_base();
    fixture_broker("ctl", "add_user teller secret");
    fixture_broker("ctl", "set_permissions teller '.*' '^Bases:Child$' '.*'");
    f.config.user = "teller";
    f.config.password = "secret";
    f.config.heartbeat = SECONDS(600);
    f.host.host.now = later;
    fixture_create(&f);
    int warnings = fixture_warnings();
    for (int i = 0; i < 3; i++) {
        fixture_open(&f, 1);
        publish_child(&f);
        publish_child(&f);
        if (i < 2)
            fixture_close(&f);
    }
    assert_int_equal(fixture_warnings(), warnings + 1);
    assert_int_equal(count_heard(), 0);
    fixture_broker("ctl", "set_permissions teller '.*' '.*' '.*'");
    ahead = SECONDS(31);
    publish_child(&f);
    assert_int_equal(count_heard(), 1);
    assert_int_equal(fixture_warnings(), warnings + 1);
    assert_non_null(strstr(fixture_last_line(), "base=Bases:Base"));
    ahead = 0;
    fixture_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_read_together),
        cmocka_unit_test(test_read_together_tls),
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_properties_sent),
        cmocka_unit_test(test_foreign_values),
        cmocka_unit_test(test_foreign_ids),
        cmocka_unit_test(test_deep_nesting),
        cmocka_unit_test(test_deep_nesting_meanwhile),
        cmocka_unit_test(test_unroutable),
        cmocka_unit_test(test_missing_exchange),
        cmocka_unit_test(test_deleted_exchange),
        cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_too_large_headers),
        cmocka_unit_test(test_nack),
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_types_of_one_base),
        cmocka_unit_test(test_refused_base),
    };
    return cmocka_run_group_tests_name("amqp messages", tests, NULL, NULL);
}
