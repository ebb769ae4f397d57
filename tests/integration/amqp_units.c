/* SPDX-License-Identifier: Apache-2.0
 *
 * The amqp transport without a broker: whose fault what is, what is counted, and limits
 * that hold before memory is used; the ports of hosts; the routing keys of delays.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/transport/amqp/amqp-consume.h"
#include "plugins/transport/amqp/amqp-delay.h"
#include "plugins/transport/amqp/amqp-headers.h"
#include "plugins/transport/amqp/amqp-gate.h"
#include "plugins/transport/amqp/amqp-hosts.h"
#include "plugins/transport/amqp/amqp-management.h"
#include "plugins/transport/amqp/amqp-map.h"
#include "plugins/transport/amqp/amqp-message.h"
#include "plugins/transport/amqp/amqp-queue.h"
#include "plugins/transport/amqp/amqp-receive.h"

/* ---- whose fault ----------------------------------------------------------------- */

/* RabbitMQ's own words, 3.10 and 4.0. */
static const struct {
    int code;
    const char *text;
    int result;
    int cause;
} closes[] = {
    { 320, "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'",
      WB_NOT_CONNECTED, WB_CAUSE_SERVER },
    { 320, "CONNECTION_FORCED - Closed via management plugin", WB_NOT_CONNECTED, WB_CAUSE_SERVER },
    { 541, "INTERNAL_ERROR", WB_NOT_CONNECTED, WB_CAUSE_SERVER },
    { 541, "INTERNAL_ERROR - access to vhost '/' refused for user 'guest': vhost '/' is down",
      WB_NOT_CONNECTED, WB_CAUSE_SERVER },
    { 506, "RESOURCE_ERROR", WB_NOT_CONNECTED, WB_CAUSE_SERVER },
    { 530, "NOT_ALLOWED - access to vhost '/' refused for user 'guest': connection limit (1) is "
           "reached",
      WB_NOT_CONNECTED, WB_CAUSE_SERVER },
    { 530, "NOT_ALLOWED - connection refused for user 'guest': user connection limit (1) is reached",
      WB_NOT_CONNECTED, WB_CAUSE_SERVER },
    { 530, "NOT_ALLOWED - access to vhost '/' refused for user 'guest': vhost '/' is down",
      WB_NOT_CONNECTED, WB_CAUSE_SERVER },
    { 530, "NOT_ALLOWED - vhost nowhere not found", WB_FATAL, WB_CAUSE_MISSING },
    { 530, "NOT_ALLOWED - access to vhost '/' refused for user 'guest'", WB_FATAL,
      WB_CAUSE_REFUSED },
    { 403, "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN.", WB_FATAL,
      WB_CAUSE_REFUSED },
    /* What we sent. */
    { 501, "FRAME_ERROR", WB_NOT_CONNECTED, WB_CAUSE_OTHER },
    { 502, "SYNTAX_ERROR", WB_NOT_CONNECTED, WB_CAUSE_OTHER },
    { 503, "COMMAND_INVALID - unexpected method", WB_NOT_CONNECTED, WB_CAUSE_OTHER },
    { 504, "CHANNEL_ERROR - expected 'channel.open'", WB_NOT_CONNECTED, WB_CAUSE_OTHER },
    { 505, "UNEXPECTED_FRAME", WB_NOT_CONNECTED, WB_CAUSE_OTHER },
    { 540, "NOT_IMPLEMENTED", WB_NOT_CONNECTED, WB_CAUSE_OTHER },
    { 530, "", WB_NOT_CONNECTED, WB_CAUSE_OTHER },
};

static void test_closed_connections(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof closes / sizeof closes[0]; i++) {
        wb_amqp_failure failure = { 0 };
        int result = wb_amqp_map_connection_close(&failure, closes[i].code,
                                                  amqp_cstring_bytes(closes[i].text));
        if (result != closes[i].result || failure.cause != closes[i].cause)
            fail_msg("%d %s: result %d cause %d", closes[i].code, closes[i].text, result,
                     failure.cause);
        assert_int_equal(failure.result, result);
        assert_int_equal(failure.code, closes[i].code);
        assert_non_null(strstr(failure.text, closes[i].text));
    }
}

static void test_closed_channels(void **state)
{
    static const struct {
        int code;
        int cause;
    } expected[] = {
        { 311, WB_CAUSE_TOO_LARGE }, { 320, WB_CAUSE_SERVER },   { 403, WB_CAUSE_REFUSED },
        { 404, WB_CAUSE_MISSING },   { 405, WB_CAUSE_OTHER },    { 406, WB_CAUSE_MISMATCH },
        { 506, WB_CAUSE_SERVER },    { 541, WB_CAUSE_SERVER },   { 540, WB_CAUSE_OTHER },
    };
    (void)state;
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        assert_int_equal(wb_amqp_map_cause(expected[i].code), expected[i].cause);
}

/* Whatever RabbitMQ says, the sentence ends with the permission that is missing. */
static void test_missing_permissions(void **state)
{
    static const struct {
        int code, class_id, method_id;
        const char *permission; /* NULL: nothing to grant */
    } expected[] = {
        { 403, 50, 10, "configure permission" }, { 403, 40, 10, "configure permission" },
        { 403, 50, 20, "write permission" },     { 403, 40, 30, "write permission" },
        { 403, 60, 20, "read permission" },      { 403, 60, 40, "write permission" },
        { 403, 20, 10, NULL },                   { 404, 60, 40, NULL },
    };
    (void)state;
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        amqp_channel_close_t close = { .reply_code = (uint16_t)expected[i].code,
                                       .class_id = (uint16_t)expected[i].class_id,
                                       .method_id = (uint16_t)expected[i].method_id };
        const char *remedy = wb_amqp_map_remedy(&close);
        if (!expected[i].permission)
            assert_string_equal(remedy, "");
        else if (!strstr(remedy, expected[i].permission) || !strstr(remedy, "set_permissions"))
            fail_msg("%zu: \"%s\"", i, remedy);
    }
}

static void test_statuses(void **state)
{
    static const struct {
        int status;
        int result;
        int cause;
    } expected[] = {
        { AMQP_STATUS_NO_MEMORY, WB_NOT_CONNECTED, WB_CAUSE_SERVER },
        { AMQP_STATUS_CONNECTION_CLOSED, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE },
        { AMQP_STATUS_SOCKET_ERROR, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE },
        { AMQP_STATUS_TIMEOUT, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE },
        { AMQP_STATUS_HEARTBEAT_TIMEOUT, WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE },
        { AMQP_STATUS_BAD_AMQP_DATA, WB_NOT_CONNECTED, WB_CAUSE_OTHER },
        { AMQP_STATUS_TABLE_TOO_BIG, WB_NOT_CONNECTED, WB_CAUSE_OTHER },
        { AMQP_STATUS_SSL_PEER_VERIFY_FAILED, WB_FATAL, WB_CAUSE_REFUSED },
        { AMQP_STATUS_SSL_HOSTNAME_VERIFY_FAILED, WB_FATAL, WB_CAUSE_REFUSED },
    };
    (void)state;
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        wb_amqp_failure failure = { 0 };
        assert_int_equal(wb_amqp_map_status(&failure, expected[i].status, "test"),
                         expected[i].result);
        assert_int_equal(failure.cause, expected[i].cause);
    }
}

/* ---- counts ---------------------------------------------------------------------- */

static uint32_t count_with(amqp_field_value_t value, int redelivered)
{
    amqp_table_entry_t entry = { amqp_cstring_bytes("x-delivery-count"), value };
    amqp_basic_properties_t properties = { ._flags = AMQP_BASIC_HEADERS_FLAG,
                                           .headers = { 1, &entry } };
    return wb_amqp_delivery_count(&properties, redelivered);
}

#define VALUE(k, field, v)                                                                         \
    (amqp_field_value_t)                                                                           \
    {                                                                                              \
        .kind = AMQP_FIELD_KIND_##k, .value.field = (v)                                            \
    }

static void test_delivery_count(void **state)
{
    amqp_basic_properties_t none = { ._flags = 0 };
    (void)state;
    assert_int_equal(wb_amqp_delivery_count(&none, 0), 0);
    assert_int_equal(wb_amqp_delivery_count(&none, 1), 1);
    assert_int_equal(count_with(VALUE(I32, i32, 5), 0), 0); /* forged: never delivered */
    assert_int_equal(count_with(VALUE(I8, i8, 5), 1), 5);
    assert_int_equal(count_with(VALUE(U8, u8, 200), 1), 200);
    assert_int_equal(count_with(VALUE(I16, i16, 5), 1), 5);
    assert_int_equal(count_with(VALUE(U16, u16, 60000), 1), 60000);
    assert_int_equal(count_with(VALUE(I32, i32, 5), 1), 5);
    assert_int_equal(count_with(VALUE(U32, u32, 4000000000u), 1), 4000000000u);
    assert_int_equal(count_with(VALUE(I64, i64, 5), 1), 5);
    assert_int_equal(count_with(VALUE(I64, i64, INT64_MAX), 1), UINT32_MAX);
    assert_int_equal(count_with(VALUE(I8, i8, -1), 1), 1);
    assert_int_equal(count_with(VALUE(I16, i16, -1), 1), 1);
    assert_int_equal(count_with(VALUE(I32, i32, -1), 1), 1);
    assert_int_equal(count_with(VALUE(I64, i64, -1), 1), 1);
    assert_int_equal(count_with(VALUE(I32, i32, 0), 1), 1);
    assert_int_equal(count_with(VALUE(UTF8, bytes, amqp_cstring_bytes("9")), 1), 1);
}

/* ---- limits on headers ----------------------------------------------------------- */

static amqp_table_entry_t text(const char *name, const char *value)
{
    return (amqp_table_entry_t){
        amqp_cstring_bytes(name),
        { .kind = AMQP_FIELD_KIND_UTF8, .value.bytes = amqp_cstring_bytes(value) }
    };
}

static wb_amqp_message *message_of(const amqp_basic_properties_t *properties, uint32_t count,
                                   int64_t size)
{
    static wb_endpoint_info endpoint;
    static wb_transport transport;
    endpoint = (wb_endpoint_info){ .struct_size = sizeof endpoint,
                                   .body_max = 1000,
                                   .headers_max = count,
                                   .headers_size_max = size };
    transport.endpoint = &endpoint;
    wb_amqp_message *message = wb_amqp_message_new(&transport, properties, 0);
    assert_non_null(message);
    return message;
}

static const char *value_in(const wb_amqp_message *message, const char *name)
{
    for (size_t i = 0; i < message->incoming.header_count; i++) {
        if (strcmp(message->incoming.headers[i].name, name) == 0)
            return message->incoming.headers[i].value;
    }
    return NULL;
}

static void expect_problem(const wb_amqp_message *message, const char *expected)
{
    if (!expected)
        assert_null(message->incoming.problem);
    else
        assert_string_equal(message->incoming.problem, expected);
}

static void test_header_count(void **state)
{
    amqp_table_entry_t entries[] = { text("a", "1"), text("x-death", "2"), text("b", "3"),
                                     text("c", "4"), text("NServiceBus.ReplyToAddress", "5"),
                                     text("NServiceBus.ReplyToAddress", "6") };
    amqp_basic_properties_t properties = { ._flags = AMQP_BASIC_HEADERS_FLAG,
                                           .headers = { 4, entries } };
    (void)state;
    wb_amqp_message *message = message_of(&properties, 3, 0);
    expect_problem(message, NULL); /* bookkeeping does not count */
    assert_int_equal(message->incoming.header_count, 3);
    wb_amqp_message_free(message);
    message = message_of(&properties, 0, 0); /* no limits */
    expect_problem(message, NULL);
    wb_amqp_message_free(message);
    message = message_of(&properties, 2, 0);
    expect_problem(message, "the message has 3 headers, more than 2: 2 of them were kept");
    assert_string_equal(value_in(message, "a"), "1");
    assert_string_equal(value_in(message, "b"), "3");
    wb_amqp_message_free(message);
    /* What a property says is kept, whatever else there is; but once. */
    properties.headers.num_entries = 6;
    properties._flags |= AMQP_BASIC_REPLY_TO_FLAG;
    properties.reply_to = amqp_cstring_bytes("billing");
    message = message_of(&properties, 2, 0);
    expect_problem(message, "the message has 5 headers, more than 2: 2 of them were kept");
    assert_string_equal(value_in(message, "a"), "1");
    assert_string_equal(value_in(message, "NServiceBus.ReplyToAddress"), "billing");
    wb_amqp_message_free(message);
}

/* Exactly at both limits, with a property that its header stands for as well. */
static void test_limits_are_inclusive(void **state)
{
    amqp_table_entry_t entries[] = { text("a", "1"),
                                     text("NServiceBus.EnclosedMessageTypes", "T"),
                                     text("NServiceBus.CorrelationId", "c") };
    amqp_basic_properties_t properties = { ._flags = AMQP_BASIC_HEADERS_FLAG |
                                                     AMQP_BASIC_TYPE_FLAG |
                                                     AMQP_BASIC_CORRELATION_ID_FLAG,
                                           .headers = { 3, entries },
                                           .type = amqp_cstring_bytes("T"),
                                           .correlation_id = amqp_cstring_bytes("c") };
    (void)state;
    wb_amqp_message *message = message_of(&properties, 3, 2 + 33 + 26);
    expect_problem(message, NULL);
    assert_int_equal(message->incoming.header_count, 3);
    wb_amqp_message_free(message);
    message = message_of(&properties, 3, 2 + 33 + 25);
    expect_problem(message, "the headers of the message have 61 bytes, more than 60: 2 of 3 "
                            "headers were kept");
    wb_amqp_message_free(message);
}

/* Text grows: a list of timestamps takes three times as much as on the wire. */
static void test_header_size(void **state)
{
    enum { COUNT = 5000 };
    static amqp_field_value_t stamps[COUNT];
    for (int i = 0; i < COUNT; i++)
        stamps[i] = (amqp_field_value_t){ .kind = AMQP_FIELD_KIND_TIMESTAMP };
    amqp_table_entry_t entries[] = { text("before", "1"), text("stamps", ""), text("after", "2") };
    entries[1].value = (amqp_field_value_t){ .kind = AMQP_FIELD_KIND_ARRAY,
                                             .value.array = { COUNT, stamps } };
    amqp_basic_properties_t properties = { ._flags = AMQP_BASIC_HEADERS_FLAG,
                                           .headers = { 3, entries } };
    (void)state;
    wb_amqp_message *message = message_of(&properties, 320, 65536);
    expect_problem(message, "the headers of the message have 145018 bytes, more than 65536: 2 of 3 "
                            "headers were kept");
    assert_string_equal(value_in(message, "before"), "1");
    assert_string_equal(value_in(message, "after"), "2");
    wb_amqp_message_free(message);
}

/* ---- large bodies ---------------------------------------------------------------- */

static wb_amqp_message *large(uint64_t size)
{
    static wb_endpoint_info endpoint = { .struct_size = sizeof endpoint, .body_max = 1000 };
    static wb_transport transport = { .endpoint = &endpoint };
    amqp_basic_properties_t none = { ._flags = 0 };
    return wb_amqp_message_new(&transport, &none, size);
}

/* The announced size is believed when it has come. */
static void test_body_grows(void **state)
{
    static char part[100000];
    wb_amqp_message *message = large(UINT64_C(400) << 20);
    (void)state;
    memset(part, 'p', sizeof part);
    assert_int_equal(message->body_capacity, 0);
    assert_true(wb_amqp_message_may_read(message));
    for (size_t i = 1; i <= 50; i++) {
        wb_amqp_message_add(message, (amqp_bytes_t){ sizeof part, part });
        assert_int_equal(message->body_size, i * sizeof part);
        assert_in_range(message->body_capacity, message->body_size + 1,
                        (2 << 20) + 2 * message->body_size);
    }
    assert_int_equal(((const char *)message->incoming.body)[50 * sizeof part - 1], 'p');
    wb_amqp_message_free(message);
    /* Beyond what any broker keeps: never. */
    message = large((UINT64_C(512) << 20) + 1);
    assert_true(wb_amqp_message_may_read(message));
    wb_amqp_message_add(message, (amqp_bytes_t){ sizeof part, part });
    assert_int_equal(message->incoming.body_size, 0);
    assert_non_null(strstr(message->incoming.problem, "larger than the memory"));
    wb_amqp_message_free(message);
}

static void test_gate(void **state)
{
    wb_amqp_message *first = large(2000), *second = large(2000), *small = large(1000);
    (void)state;
    assert_true(wb_amqp_message_may_read(first));
    assert_true(wb_amqp_message_may_read(first)); /* is inside */
    assert_false(wb_amqp_message_may_read(second));
    assert_true(wb_amqp_message_may_read(small));
    wb_amqp_message_free(small);
    assert_false(wb_amqp_message_may_read(second));
    wb_amqp_message_free(first);
    assert_true(wb_amqp_message_may_read(second));
    wb_amqp_message_free(second);
    assert_true(wb_amqp_gate_enter());
    assert_false(wb_amqp_gate_enter());
    wb_amqp_gate_leave();
}

/* ---- delivery limits ------------------------------------------------------------- */

#define REFUSAL(name, received, current)                                                           \
    "PRECONDITION_FAILED - inequivalent arg 'x-delivery-limit' for queue '" name                   \
    "' in vhost '/': received " received " but current is " current

static void test_limit_read(void **state)
{
    static const struct {
        const char *text;
        int read;
        wb_amqp_limit limit;
    } texts[] = {
        { REFUSAL("q", "none", "the value '3' of type 'signedint'"), 1, { WB_AMQP_LIMIT_SET, 3 } },
        { REFUSAL("q", "the value '-1' of type 'long'", "none"), 1, { WB_AMQP_LIMIT_NONE, 0 } },
        { REFUSAL("q", "the value '-1' of type 'long'", "the value '9' of type 'long'"),
          1,
          { WB_AMQP_LIMIT_SET, 9 } },
        { REFUSAL("but current is none", "none", "the value '-1' of type 'long'"),
          1,
          { WB_AMQP_LIMIT_SET, -1 } },
        { REFUSAL("q", "'-1'", "'3'"), 1, { WB_AMQP_LIMIT_SET, 3 } },
        { REFUSAL("q", "'3'", "'-1'"), 1, { WB_AMQP_LIMIT_SET, -1 } },
        { REFUSAL("q", "'-1'", "'12..."), 1, { WB_AMQP_LIMIT_UNREADABLE, 0 } },
        { REFUSAL("q", "'-1'", "''"), 1, { WB_AMQP_LIMIT_UNREADABLE, 0 } },
        { REFUSAL("q", "'-1'", ""), 1, { WB_AMQP_LIMIT_UNREADABLE, 0 } },
        { REFUSAL("q", "none", "the val..."), 1, { WB_AMQP_LIMIT_UNREADABLE, 0 } },
        { REFUSAL("q", "none", "the value '12..."), 1, { WB_AMQP_LIMIT_UNREADABLE, 0 } },
        { REFUSAL("q", "none", "the value '' of type 'long'"), 1, { WB_AMQP_LIMIT_UNREADABLE, 0 } },
        { "PRECONDITION_FAILED - inequivalent arg 'x-delivery-limit' for queue 'nnnn...",
          1,
          { WB_AMQP_LIMIT_UNREADABLE, 0 } },
        { "PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for queue 'x-delivery-limit' in "
          "vhost '/': received none but current is the value '3' of type 'signedint'",
          0,
          { 0, 0 } },
        { "", 0, { 0, 0 } },
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        wb_amqp_limit limit = { 0, 0 };
        assert_int_equal(wb_amqp_limit_read(texts[i].text, &limit), texts[i].read);
        if (limit.is != texts[i].limit.is || limit.value != texts[i].limit.value)
            fail_msg("%s: %d %lld", texts[i].text, limit.is, (long long)limit.value);
    }
}

#define ARGUMENT_REFUSAL                                                                           \
    "PRECONDITION_FAILED - inequivalent arg '%s' for queue 'q' in vhost '/': received none"

static wb_amqp_argument argument_of(const char *name, const char *current)
{
    wb_amqp_argument argument;
    char text[400];
    (void)snprintf(text, sizeof text, ARGUMENT_REFUSAL " but current is %s", name, current);
    text[255] = '\0'; /* as the broker does */
    assert_int_equal(wb_amqp_argument_read(text, &argument), 1);
    assert_string_equal(argument.name, name);
    return argument;
}

static void test_argument_read(void **state)
{
    wb_amqp_argument argument = argument_of("x-max-length", "the value '1000' of type 'signedint'");
    char cut[300];
    (void)state;
    assert_int_equal(argument.kind, AMQP_FIELD_KIND_I64);
    assert_int_equal(argument.number, 1000);
    argument = argument_of("x-a", "the value 'it's' of type 'longstr'");
    assert_int_equal(argument.kind, AMQP_FIELD_KIND_UTF8);
    assert_string_equal(argument.text, "it's");
    argument = argument_of("x-single-active-consumer", "the value 'true' of type 'bool'");
    assert_int_equal(argument.kind, AMQP_FIELD_KIND_BOOLEAN);
    assert_int_equal(argument.number, 1);
    assert_int_equal(argument_of("x-a", "the value '[1,2]' of type 'array'").kind, 0);
    assert_int_equal(argument_of("x-a", "none").kind, 0);
    assert_int_equal(argument_of("x-a", "the value '' of type 'longstr'").kind,
                     AMQP_FIELD_KIND_UTF8);
    memset(cut, 'c', sizeof cut);
    cut[sizeof cut - 1] = '\0';
    memcpy(cut, "the value '", 11);
    assert_int_equal(argument_of("x-a", cut).kind, 0);
    assert_int_equal(argument_of("x-a", "the value 'v' of type 'longst").kind, 0);
    assert_int_equal(wb_amqp_argument_read("inequivalent arg 'durable' for queue 'q'", &argument),
                     0);
    assert_int_equal(wb_amqp_argument_read("no queue 'q' in vhost '/'", &argument), 0);
}

static const char *broken(int own, const char *first, const char *second)
{
    wb_amqp_arguments arguments = { .count = 0 };
    const char *const words[] = { first, second };
    const char *why;
    for (int i = 0; i < 2 && words[i]; i++) {
        wb_amqp_argument argument = { .kind = AMQP_FIELD_KIND_UTF8 };
        (void)sscanf(words[i], "%63[^=]=%255s", argument.name, argument.text);
        assert_int_equal(wb_amqp_arguments_add(&arguments, &argument), 1);
        assert_int_equal(wb_amqp_arguments_add(&arguments, &argument), 0);
    }
    const wb_amqp_argument *found = wb_amqp_arguments_broken(&arguments, own, &why);
    return found ? why : NULL;
}

static void test_arguments_broken(void **state)
{
    (void)state;
    assert_null(broken(1, NULL, NULL));
    assert_non_null(broken(1, "x-message-ttl=5", NULL));
    assert_null(broken(0, "x-message-ttl=5", NULL));
    assert_non_null(broken(0, "x-expires=5", NULL));
    assert_non_null(broken(1, "x-max-length=5", NULL));
    assert_non_null(broken(1, "x-max-length-bytes=5", "x-overflow=drop-head"));
    assert_null(broken(1, "x-max-length-bytes=5", "x-overflow=reject-publish"));
    assert_null(broken(0, "x-max-length=5", "x-overflow=reject-publish-dlx"));
    assert_null(broken(1, "x-overflow=drop-head", "x-max-priority=5"));
}

static void test_limit_resolve(void **state)
{
    static const wb_amqp_limit none = { WB_AMQP_LIMIT_NONE, 0 };
    static const wb_amqp_limit off = { WB_AMQP_LIMIT_SET, -1 };
    static const wb_amqp_limit zero = { WB_AMQP_LIMIT_SET, 0 };
    static const wb_amqp_limit three = { WB_AMQP_LIMIT_SET, 3 };
    static const wb_amqp_limit nine = { WB_AMQP_LIMIT_SET, 9 };
    static const wb_amqp_limit huge = { WB_AMQP_LIMIT_SET, INT64_MAX };
    static const wb_amqp_limit unreadable = { WB_AMQP_LIMIT_UNREADABLE, 0 };
    (void)state;
    assert_int_equal(wb_amqp_limit_resolve(3, none, none), 0);
    assert_int_equal(wb_amqp_limit_resolve(4, none, none), 20);
    assert_int_equal(wb_amqp_limit_resolve(5, none, none), 20);
    assert_int_equal(wb_amqp_limit_resolve(0, none, none), WB_LIMIT_UNKNOWN);
    assert_int_equal(wb_amqp_limit_resolve(0, three, none), 3);
    assert_int_equal(wb_amqp_limit_resolve(4, off, none), 0);
    assert_int_equal(wb_amqp_limit_resolve(4, off, nine), 9);
    assert_int_equal(wb_amqp_limit_resolve(4, off, off), 0);
    assert_int_equal(wb_amqp_limit_resolve(4, none, off), WB_LIMIT_UNKNOWN);
    assert_int_equal(wb_amqp_limit_resolve(4, three, nine), 3);
    assert_int_equal(wb_amqp_limit_resolve(4, nine, three), 3);
    assert_int_equal(wb_amqp_limit_resolve(4, none, three), 3);
    assert_int_equal(wb_amqp_limit_resolve(4, three, off), 3);
    assert_int_equal(wb_amqp_limit_resolve(3, zero, none), 1);
    assert_int_equal(wb_amqp_limit_resolve(3, huge, none), WB_LIMIT_UNKNOWN - 1);
    assert_int_equal(wb_amqp_limit_resolve(4, unreadable, three), WB_LIMIT_UNKNOWN);
    assert_int_equal(wb_amqp_limit_resolve(4, three, unreadable), WB_LIMIT_UNKNOWN);
}

static int major_of(const char *product, const char *version)
{
    amqp_table_entry_t entries[] = { text("product", product), text("version", version) };
    return wb_amqp_major_of(&(amqp_table_t){ 2, entries });
}

static void test_major(void **state)
{
    amqp_table_t nothing = { 0, NULL };
    (void)state;
    assert_int_equal(major_of("RabbitMQ", "3.10.8"), 3);
    assert_int_equal(major_of("RabbitMQ", "4.0.5"), 4);
    assert_int_equal(major_of("RabbitMQ", "12.1"), 12);
    assert_int_equal(major_of("RabbitMQ", "unknown"), 0);
    assert_int_equal(major_of("Other", "2.0"), 0);
    assert_int_equal(wb_amqp_major_of(&nothing), 0);
}

#ifdef HAVE_LIBCURL
static void assert_limit_equal(const wb_amqp_limit *limit, const wb_amqp_limit *expected)
{
    assert_int_equal(limit->is, expected->is);
    assert_int_equal(limit->value, expected->value);
}

static void test_management_read(void **state)
{
    static const struct {
        const char *json;
        int told;
        wb_amqp_limit argument, policy;
    } answers[] = {
        { "{\"arguments\":{\"x-queue-type\":\"quorum\",\"x-delivery-limit\":3},"
          "\"effective_policy_definition\":{\"delivery-limit\":5}}",
          1,
          { WB_AMQP_LIMIT_SET, 3 },
          { WB_AMQP_LIMIT_SET, 5 } },
        { "{\"arguments\":{},\"effective_policy_definition\":{}}", 1, { 0, 0 }, { 0, 0 } },
        { "{\"arguments\":{\"x-delivery-limit\":\"3\"},\"effective_policy_definition\":"
          "{\"delivery-limit\":2.5}}",
          1,
          { WB_AMQP_LIMIT_UNREADABLE, 0 },
          { WB_AMQP_LIMIT_UNREADABLE, 0 } },
        { "{\"arguments\":{\"x-delivery-limit\":3}}", -1, { 0, 0 }, { 0, 0 } },
        { "{\"error\":\"Object Not Found\"}", 0, { 0, 0 }, { 0, 0 } },
        { "[]", 0, { 0, 0 }, { 0, 0 } },
        { "<html>", 0, { 0, 0 }, { 0, 0 } },
        { "", 0, { 0, 0 }, { 0, 0 } },
    };
    (void)state;
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        wb_amqp_managed_queue queue = { .problem = "" };
        int told = wb_amqp_management_read(answers[i].json, strlen(answers[i].json), &queue);
        assert_int_equal(told, answers[i].told);
        assert_int_equal(told == 1, queue.problem[0] == '\0');
        assert_limit_equal(&queue.argument, &answers[i].argument);
        assert_limit_equal(&queue.policy, &answers[i].policy);
    }
}
#endif

/* ---- hosts ----------------------------------------------------------------------- */

/* Who has no port has that of TLS, or not, as all of them: one that is not on this machine is
 * enough, wherever it stands. */
static void test_ports(void **state)
{
    static const struct {
        wb_amqp_config config;
        int uses_tls, ports[3];
    } rows[] = {
        { { .host = "localhost" }, 0, { 5672 } },
        { { .host = "localhost", .tls = WB_AMQP_TLS_ON }, 1, { 5671 } },
        { { .host = "localhost", .port = 7 }, 0, { 7 } },
        { { .host = "b1" }, 1, { 5671 } },
        { { .host = "b1", .tls = WB_AMQP_TLS_OFF }, 0, { 5672 } },
        { { .host = "b1", .port = 7 }, 1, { 7 } },
        { { .hosts = "localhost,127.0.0.1,[::1]" }, 0, { 5672, 5672, 5672 } },
        { { .hosts = "localhost,::1", .tls = WB_AMQP_TLS_ON }, 1, { 5671, 5671 } },
        { { .hosts = "b1,b2,b3" }, 1, { 5671, 5671, 5671 } },
        { { .hosts = "b1,b2", .tls = WB_AMQP_TLS_OFF }, 0, { 5672, 5672 } },
        { { .hosts = "b1,localhost,::1" }, 1, { 5671, 5671, 5671 } },
        { { .hosts = "localhost, b1, ::1" }, 1, { 5671, 5671, 5671 } },
        { { .hosts = "localhost,::1,b1" }, 1, { 5671, 5671, 5671 } },
        { { .hosts = "b1:5673,localhost" }, 1, { 5673, 5671 } },
        { { .hosts = "localhost,b1:5673" }, 1, { 5671, 5673 } },
        { { .hosts = "localhost:5671,[::1]:5673,127.0.0.1" }, 0, { 5671, 5673, 5672 } },
        { { .hosts = "b1,localhost:8,::1", .port = 7 }, 1, { 7, 8, 7 } },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        wb_amqp_hosts hosts;
        assert_null(wb_amqp_hosts_read(&rows[i].config, &hosts));
        for (size_t k = 0; k < 3; k++)
            if ((k < hosts.count ? hosts.list[k].port : 0) != rows[i].ports[k])
                fail_msg("row %zu: \"%s\" has the port %d", i, hosts.list[k].name, hosts.list[k].port);
        assert_int_equal(wb_amqp_config_uses_tls(&rows[i].config), rows[i].uses_tls);
    }
}

/* ---- delays ---------------------------------------------------------------------- */

#define ZEROS_24 "0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0."
#define ONES_24 "1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1."

/* Those of NServiceBus' own tests. */
static const struct {
    int64_t seconds;
    const char *address, *exchange, *key;
} delay_routes[] = {
    { 0, "some-address", "nsb.v2.delay-level-00", ZEROS_24 "0.0.0.0.some-address" },
    { 1, "some-address", "nsb.v2.delay-level-00", ZEROS_24 "0.0.0.1.some-address" },
    { 2, "some-address", "nsb.v2.delay-level-01", ZEROS_24 "0.0.1.0.some-address" },
    { 3, "some-address", "nsb.v2.delay-level-01", ZEROS_24 "0.0.1.1.some-address" },
    { 10, "some-address", "nsb.v2.delay-level-03", ZEROS_24 "1.0.1.0.some-address" },
    { 15, "some-address", "nsb.v2.delay-level-03", ZEROS_24 "1.1.1.1.some-address" },
    { 28, "some-address", "nsb.v2.delay-level-04",
      "0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.1.1.1.0.0.some-address" },
    { WB_AMQP_DELAY_MAX, "some-address", "nsb.v2.delay-level-27", ONES_24 "1.1.1.1.some-address" },
    { -123, "some-address", "nsb.v2.delay-level-00", ZEROS_24 "0.0.0.0.some-address" },
    { 0, "", "nsb.v2.delay-level-00", ZEROS_24 "0.0.0.0." },
    { 1, "some-\xe6\xb6\x88\xe6\x81\xaf", "nsb.v2.delay-level-00",
      ZEROS_24 "0.0.0.1.some-\xe6\xb6\x88\xe6\x81\xaf" },
};

static void test_delay_routes(void **state)
{
    wb_amqp_route route;
    (void)state;
    assert_int_equal(WB_AMQP_DELAY_MAX, 268435455);
    for (size_t i = 0; i < sizeof delay_routes / sizeof delay_routes[0]; i++) {
        wb_amqp_delay_route(delay_routes[i].seconds, delay_routes[i].address, &route);
        assert_string_equal(route.exchange, delay_routes[i].exchange);
        assert_string_equal(route.key, delay_routes[i].key);
    }
}

static void test_delay_patterns(void **state)
{
    char text[WB_AMQP_NAME_SIZE];
    (void)state;
    wb_amqp_level_name(7, text);
    assert_string_equal(text, "nsb.v2.delay-level-07");
    wb_amqp_level_pattern(27, 1, text);
    assert_string_equal(text, "1.#");
    wb_amqp_level_pattern(25, 0, text);
    assert_string_equal(text, "*.*.0.#");
    wb_amqp_level_pattern(0, 1, text);
    assert_int_equal(strlen(text), 27 * 2 + 3);
    wb_amqp_delay_pattern("net", text);
    assert_string_equal(text, "#.net");
}

/* Whole seconds, never too few, between any two times. */
static void test_delay_seconds(void **state)
{
    const int64_t second = 1000000000, now = 1700000000 * second;
    (void)state;
    assert_int_equal(wb_amqp_delay_seconds(now, now), 0);
    assert_int_equal(wb_amqp_delay_seconds(now - 1, now), 0);
    assert_int_equal(wb_amqp_delay_seconds(INT64_MIN, now), 0);
    assert_int_equal(wb_amqp_delay_seconds(now + 1, now), 1);
    assert_int_equal(wb_amqp_delay_seconds(now + second, now), 1);
    assert_int_equal(wb_amqp_delay_seconds(now + second + 1, now), 2);
    assert_true(wb_amqp_delay_seconds(INT64_MAX, now) > WB_AMQP_DELAY_MAX);
    assert_int_equal(wb_amqp_delay_seconds(INT64_MAX, INT64_MIN), 18446744074);
}

static void test_delay_addresses(void **state)
{
    static const char *const fine[] = { "some", "some.where", "a*b.#c", "queue.**" };
    static const char *const patterns[] = { "#", "*", "a.#", "*.b", "a.*.b" };
    char text[WB_AMQP_NAME_SIZE];
    wb_amqp_route route;
    int cause;
    (void)state;
    for (size_t i = 0; i < sizeof fine / sizeof fine[0]; i++)
        assert_null(wb_amqp_delay_problem(fine[i], &cause));
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        assert_non_null(wb_amqp_delay_problem(patterns[i], &cause));
        assert_int_equal(cause, WB_CAUSE_UNROUTABLE);
    }
    memset(text, 'a', sizeof text);
    text[200] = '\0';
    assert_non_null(wb_amqp_delay_problem(text, &cause));
    assert_int_equal(cause, WB_CAUSE_TOO_LARGE);
    text[199] = '\0';
    assert_null(wb_amqp_delay_problem(text, &cause));
    wb_amqp_delay_route(1, text, &route);
    assert_int_equal(strlen(route.key), 255);
    assert_string_equal(route.key + 56, text);
}

/* ---- the consumer ---------------------------------------------------------------- */

void wb_amqp_receiver_give_back_gated(wb_amqp_receiver *receiver)
{
    (void)receiver;
}

void wb_amqp_receiver_give_back_ready(wb_amqp_receiver *receiver)
{
    (void)receiver;
}

/* What comes first may come before the confirmation, and what cannot be read is rejected at once. */
static void test_who_asked_leaves(void **state)
{
    static const unsigned char cancel[] = { 0, 60, 0, 30, 9, 'w', 'a', 'y', 'b', 'i', 'l', 'l', '-', '7' };
    (void)state;
    for (int consuming = WB_AMQP_CONSUMER_NONE; consuming <= WB_AMQP_CONSUMER_RUNNING; consuming++) {
        wb_amqp_receiver receiver = { .consuming = consuming, .consumer = 7 };
        wb_amqp_consume_leave(&receiver);
        assert_int_equal(receiver.consuming, WB_AMQP_CONSUMER_NONE);
        assert_int_equal(receiver.cancels, consuming != WB_AMQP_CONSUMER_NONE);
        if (consuming != WB_AMQP_CONSUMER_NONE)
            assert_memory_equal(receiver.connection.out + 7, cancel, sizeof cancel);
        free(receiver.connection.out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_asked_leaves),
        cmocka_unit_test(test_closed_connections),
        cmocka_unit_test(test_closed_channels),
        cmocka_unit_test(test_missing_permissions),
        cmocka_unit_test(test_statuses),
        cmocka_unit_test(test_delivery_count),
        cmocka_unit_test(test_header_count),
        cmocka_unit_test(test_limits_are_inclusive),
        cmocka_unit_test(test_header_size),
        cmocka_unit_test(test_body_grows),
        cmocka_unit_test(test_gate),
        cmocka_unit_test(test_limit_read),
        cmocka_unit_test(test_argument_read),
        cmocka_unit_test(test_arguments_broken),
        cmocka_unit_test(test_limit_resolve),
        cmocka_unit_test(test_major),
        cmocka_unit_test(test_ports),
        cmocka_unit_test(test_delay_routes),
        cmocka_unit_test(test_delay_patterns),
        cmocka_unit_test(test_delay_seconds),
        cmocka_unit_test(test_delay_addresses),
#ifdef HAVE_LIBCURL
        cmocka_unit_test(test_management_read),
#endif
    };
    return cmocka_run_group_tests_name("amqp units", tests, NULL, NULL);
}
