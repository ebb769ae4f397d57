/* SPDX-License-Identifier: Apache-2.0
 *
 * The amqp transport without a broker: where messages go, and properties that are headers.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plugins/transport/amqp/amqp-headers.h"
#include "plugins/transport/amqp/amqp-options.h"
#include "plugins/transport/amqp/amqp-properties.h"
#include "plugins/transport/amqp/amqp-route.h"
#include "plugins/transport/amqp/amqp-values.h"
#include "tests/support/text_header.h"

/* Type.Namespace, ':', Type.Name: a nested type's name is its own alone. (Shop:Outer+Inner of the captured
 * topology is not .NET's, which sent that type as a command and declared no exchange for it.) */
static void test_exchanges(void **state)
{
    static const char *const names[][2] = {
        { "Shop.OrderPlaced", "Shop:OrderPlaced" },
        { "Shop.Outer+Inner", "Shop:Inner" },
        { "Shop.Outer+Mid+Inner`1[[A.B+C]]", "Shop:Inner`1" },
        { "Outer+Inner", ":Inner" },
        { "Shop.Wrapper`1[[System.Int32]]", "Shop:Wrapper`1" },
        { "Shop.Wrapper`1[[System.Int32, System.Private.CoreLib]], Peer", "Shop:Wrapper`1" },
        { "Alone", ":Alone" },
    };
    char name[WB_AMQP_NAME_SIZE];
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_true(wb_amqp_event_exchange(names[i][0], name));
        assert_string_equal(name, names[i][1]);
    }
}

static const wb_amqp_config direct = { .topology = WB_AMQP_TOPOLOGY_DIRECT };

static wb_operation operation_to(int kind, const char *destination, wb_header *types)
{
    return (wb_operation){ .struct_size = sizeof(wb_operation), .kind = kind, .destination = destination,
                           .headers = types, .header_count = types->value ? 1 : 0 };
}

/* Both topologies, one row an operation. */
static void test_routes(void **state)
{
    static const struct {
        int topology, kind;
        const char *destination, *types, *exchange, *key;
    } rows[] = {
        { WB_AMQP_TOPOLOGY_CONVENTIONAL, WB_OPERATION_SEND, "way", NULL, "way", "" },
        { WB_AMQP_TOPOLOGY_DIRECT, WB_OPERATION_SEND, "way", NULL, "", "way" },
        { WB_AMQP_TOPOLOGY_CONVENTIONAL, WB_OPERATION_SEND, "queue:way", NULL, "", "way" },
        { WB_AMQP_TOPOLOGY_DIRECT, WB_OPERATION_SEND, "queue:way", NULL, "", "way" },
        { WB_AMQP_TOPOLOGY_DIRECT, WB_OPERATION_SEND, "queue:queue:way", NULL, "", "queue:way" },
        { WB_AMQP_TOPOLOGY_CONVENTIONAL, WB_OPERATION_PUBLISH, "Shop.Shipped", NULL, "Shop:Shipped", "" },
        { WB_AMQP_TOPOLOGY_DIRECT, WB_OPERATION_PUBLISH, "Shop.Shipped", NULL, "amq.topic", "Shop-Shipped" },
        { WB_AMQP_TOPOLOGY_DIRECT, WB_OPERATION_PUBLISH, "Shop.A", "Shop.A, Peer, Version=1.0;Shop.B, Peer;Shop.C",
          "amq.topic", "Shop-C.Shop-B.Shop-A" },
        /* what nobody can subscribe to, and what stands there twice */
        { WB_AMQP_TOPOLOGY_DIRECT, WB_OPERATION_PUBLISH, "Shop.A", "Shop.A;a\r\nb;#;Shop.B;*;Shop.A;Shop.B", "amq.topic",
          "Shop-B.Shop-A" },
        { WB_AMQP_TOPOLOGY_DIRECT, WB_OPERATION_PUBLISH, "Outer+Inner`1[[A.B]]", "Outer+Inner`1[[A.B, Lib]], Lib",
          "amq.topic", "Outer+Inner`1[[A-B]]" },
    };
    wb_amqp_route route;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const wb_amqp_config config = { .topology = rows[i].topology };
        wb_header types = { .name = "NServiceBus.EnclosedMessageTypes", .value = rows[i].types };
        const wb_operation operation = operation_to(rows[i].kind, rows[i].destination, &types);
        assert_null(wb_amqp_route_make(&config, &operation, &route));
        assert_string_equal(route.exchange, rows[i].exchange);
        assert_string_equal(route.key, rows[i].key);
    }
}

static void test_no_routes(void **state)
{
    static const struct {
        int topology, kind;
        const char *destination, *problem;
    } rows[] = {
        { WB_AMQP_TOPOLOGY_CONVENTIONAL, WB_OPERATION_SEND, "", "1 to 255 bytes" },
        { WB_AMQP_TOPOLOGY_CONVENTIONAL, WB_OPERATION_SEND, "queue:", "1 to 255 bytes" },
        { WB_AMQP_TOPOLOGY_DIRECT, WB_OPERATION_SEND, "", "1 to 255 bytes" },
        { WB_AMQP_TOPOLOGY_DIRECT, WB_OPERATION_SEND, "a\nb", "it holds a control character" },
        { WB_AMQP_TOPOLOGY_DIRECT, WB_OPERATION_PUBLISH, "", "1 to 254 bytes" },
        { WB_AMQP_TOPOLOGY_DIRECT, WB_OPERATION_PUBLISH, "#", "it is a pattern" },
        { WB_AMQP_TOPOLOGY_DIRECT, WB_OPERATION_PUBLISH, "caf\xe9", "it is no valid UTF-8" },
    };
    char types[600], base[201];
    wb_header none = { .name = "NServiceBus.EnclosedMessageTypes" };
    wb_amqp_route route;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const wb_amqp_config config = { .topology = rows[i].topology };
        const wb_operation operation = operation_to(rows[i].kind, rows[i].destination, &none);
        const char *problem = wb_amqp_route_make(&config, &operation, &route);
        assert_non_null(problem);
        assert_string_equal(problem, rows[i].problem);
    }
    memset(base, 'b', 200);
    base[200] = '\0';
    (void)snprintf(types, sizeof types, "Shop.A;%s;%.150s", base, base);
    none.value = types;
    const wb_operation operation = operation_to(WB_OPERATION_PUBLISH, "Shop.A", &none);
    assert_string_equal(wb_amqp_route_make(&direct, &operation, &route),
                        "with its bases it is longer than 255 bytes");
}

static int has_key(const wb_amqp_more *more, const char *key)
{
    int found = 0;
    for (size_t i = 0; i < more->count; i++)
        found += more->keys[i].value.bytes.len == strlen(key) &&
                 memcmp(more->keys[i].value.bytes.bytes, key, strlen(key)) == 0;
    return found;
}

/* Who subscribed to a type in the middle, without its bases or with those the publisher knows. */
static void test_more_keys(void **state)
{
    const char *const derived[] = { "Shop.Derived;Shop.IThing;Shop.Base;Shop.Root", "Shop.IThing;Shop.Root",
                                    "Shop.Base;Shop.Root" };
    const wb_endpoint_info endpoint = { .struct_size = sizeof endpoint, .derived = derived, .derived_count = 3 };
    wb_header types = text_header("NServiceBus.EnclosedMessageTypes", derived[0]);
    const wb_operation operation = operation_to(WB_OPERATION_PUBLISH, "Shop.Derived", &types);
    static wb_amqp_more more;
    amqp_table_entry_t entries[8];
    amqp_basic_properties_t properties;
    wb_amqp_route route;
    size_t size;
    (void)state;
    assert_null(wb_amqp_route_make(&direct, &operation, &route));
    wb_amqp_more_make(&endpoint, &direct, &operation, route.key, &more);
    assert_int_equal(more.count, 4);
    assert_true(has_key(&more, "Shop-Base.Shop-IThing.Shop-Derived"));
    assert_true(has_key(&more, "Shop-IThing.Shop-Derived"));
    assert_true(has_key(&more, "Shop-Derived"));
    assert_true(has_key(&more, "Shop-Root.Shop-IThing")); /* "Shop-Root.Shop-Base" begins the event's own */

    /* a word that only begins as the wanted one does is another */
    const char *const other[] = { "Shop.Thing;Shop.Root" };
    const wb_endpoint_info knows = { .struct_size = sizeof knows, .derived = other, .derived_count = 1 };
    wb_header longer = text_header(types.name, "Shop.Things;Shop.Root;Shop.Thing");
    const wb_operation things = operation_to(WB_OPERATION_PUBLISH, "Shop.Things", &longer);
    assert_null(wb_amqp_route_make(&direct, &things, &route));
    wb_amqp_more_make(&knows, &direct, &things, route.key, &more);
    assert_int_equal(more.count, 3);
    assert_true(has_key(&more, "Shop-Root.Shop-Thing"));
    assert_null(wb_amqp_route_make(&direct, &operation, &route));
    wb_amqp_more_make(&endpoint, &direct, &operation, route.key, &more);

    /* in the header that the broker takes out, without what the sender had there */
    wb_header headers[2] = { types, TEXT_HEADER("BCC", "mine") };
    const wb_operation with = { .struct_size = sizeof with, .headers = headers, .header_count = 2 };
    assert_null(wb_amqp_properties_make(&with, &more, entries, &properties, &size));
    assert_int_equal(properties.headers.num_entries, 2);
    assert_int_equal(entries[1].value.kind, AMQP_FIELD_KIND_ARRAY);
    assert_int_equal(entries[1].value.value.array.num_entries, 4);
    assert_false(has_key(&more, "mine"));
}

/* A message goes where its operation says: of a list in one of these headers the broker takes the
 * texts as routes (3.10 and 4.0; anything but a list it refuses). What reads the header back finds
 * the same text. */
static void test_headers_are_no_routes(void **state)
{
    wb_header headers[] = { TEXT_HEADER("CC", "orders;billing"), TEXT_HEADER("BCC", "orders"),
                            TEXT_HEADER("CC", ""), TEXT_HEADER("cc", "orders") };
    const wb_operation operation = { .struct_size = sizeof operation, .headers = headers, .header_count = 4 };
    amqp_table_entry_t entries[13];
    amqp_basic_properties_t properties;
    size_t size;
    (void)state;
    assert_null(wb_amqp_properties_make(&operation, NULL, entries, &properties, &size));
    assert_int_equal(properties.headers.num_entries, 3);
    for (int i = 0; i < 2; i++) {
        const amqp_field_value_t *value = &entries[i].value;
        char read[20] = "";
        wb_amqp_text text = { .data = read };
        assert_int_equal(entries[i].key.len, 2);
        assert_int_equal(value->kind, AMQP_FIELD_KIND_ARRAY);
        assert_int_equal(value->value.array.num_entries, 1);
        assert_int_equal(value->value.array.entries[0].kind, AMQP_FIELD_KIND_ARRAY);
        wb_amqp_value_put(&text, value);
        assert_string_equal(read, i == 0 ? "orders;billing" : "");
    }
    assert_int_equal(entries[2].value.kind, AMQP_FIELD_KIND_UTF8);
}

/* Keys that no list of types gives: of a class whose base class has an interface, and of a generic type. */
static void test_routing_keys(void **state)
{
    static const char *const values[] = {
        "Shop.Placed=Shop-IEvent.Shop-Event.Shop-IEvent.Shop-Placed",
        "Shop.Wrapper`1[[System.Int32]]=Shop-Wrapper`1[[System-Int32, CoreLib, Version=10-0-0-0]]"
    };
    const wb_option_list keys = { 2, values };
    const wb_amqp_config config = { .topology = WB_AMQP_TOPOLOGY_DIRECT, .routing_keys = &keys };
    wb_header types = TEXT_HEADER("NServiceBus.EnclosedMessageTypes", "Shop.Placed;Shop.Event;Shop.IEvent");
    const wb_operation placed = operation_to(WB_OPERATION_PUBLISH, "Shop.Placed", &types);
    const wb_endpoint_info endpoint = { .struct_size = sizeof endpoint };
    static wb_amqp_more more;
    char key[WB_AMQP_NAME_SIZE];
    wb_amqp_route route;
    (void)state;
    assert_null(wb_amqp_route_make(&config, &placed, &route));
    assert_string_equal(route.key, "Shop-IEvent.Shop-Event.Shop-IEvent.Shop-Placed");
    wb_amqp_more_make(&endpoint, &config, &placed, route.key, &more);
    assert_int_equal(more.count, 3);
    assert_true(has_key(&more, "Shop-Event.Shop-IEvent.Shop-Placed"));
    assert_null(wb_amqp_event_key(&config, "Shop.Wrapper`1[[System.Int32, CoreLib]], Shop", NULL, key));
    assert_string_equal(key, "Shop-Wrapper`1[[System-Int32, CoreLib, Version=10-0-0-0]]");
    assert_null(wb_amqp_event_key(&config, "Shop.Place", NULL, key));
    assert_string_equal(key, "Shop-Place");
}

static char complaint[400];

static int note_failure(const wb_host *host, wb_error *error, int result, int cause, int64_t code,
                        const char *format, ...) WB_PRINTF(6, 7);

static int note_failure(const wb_host *host, wb_error *error, int result, int cause, int64_t code,
                        const char *format, ...)
{
    va_list arguments;
    (void)host, (void)error, (void)cause, (void)code;
    va_start(arguments, format);
    (void)vsnprintf(complaint, sizeof complaint, format, arguments);
    va_end(arguments);
    return result;
}

static void test_wrong_routing_keys(void **state)
{
    static const struct {
        int topology;
        const char *value, *problem;
    } rows[] = {
        { WB_AMQP_TOPOLOGY_DIRECT, "Shop.Placed", "write TYPE=KEY" },
        { WB_AMQP_TOPOLOGY_DIRECT, "=Shop-Placed", "write TYPE=KEY" },
        { WB_AMQP_TOPOLOGY_DIRECT, "Shop.Placed=", "1 to 255 bytes" },
        { WB_AMQP_TOPOLOGY_DIRECT, "Shop.Placed=a\nb", "control character" },
        { WB_AMQP_TOPOLOGY_CONVENTIONAL, "Shop.Placed=Shop-Placed", "without topology = \"direct\"" },
    };
    const wb_host host = { .struct_size = sizeof host, .fail = note_failure };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const wb_option_list keys = { 1, &rows[i].value };
        const wb_amqp_config config = { .topology = rows[i].topology, .routing_keys = &keys };
        assert_int_equal(wb_amqp_route_check(&host, &config, NULL), WB_FATAL);
        assert_non_null(strstr(complaint, rows[i].problem));
    }
}

static const char *value_of(const wb_incoming *message, const char *name)
{
    for (size_t i = 0; i < message->header_count; i++)
        if (strcmp(message->headers[i].name, name) == 0)
            return message->headers[i].value;
    return NULL;
}

/* What a sender that is no NServiceBus says of a message: handlers read it, and the copy for the
 * error queue, whose headers are the same, says it again. */
static void test_properties(void **state)
{
    static const char *const wanted[][2] = { { "Waybill.ContentEncoding", "gzip" },
                                             { "Waybill.AppId", "shop" },
                                             { "Waybill.Priority", "9" },
                                             { "Waybill.Timestamp", "1700000000" } };
    const amqp_basic_properties_t sent = {
        ._flags = AMQP_BASIC_CONTENT_ENCODING_FLAG | AMQP_BASIC_APP_ID_FLAG | AMQP_BASIC_PRIORITY_FLAG |
                  AMQP_BASIC_TIMESTAMP_FLAG,
        .content_encoding = amqp_cstring_bytes("gzip"),
        .app_id = amqp_cstring_bytes("shop"),
        .priority = 9,
        .timestamp = 1700000000,
    };
    const wb_amqp_limits any = { SIZE_MAX, SIZE_MAX };
    wb_incoming message = { .struct_size = sizeof message };
    amqp_basic_properties_t again;
    size_t encoded;
    (void)state;
    wb_amqp_size size = wb_amqp_headers_measure(&sent, any);
    wb_header *headers = calloc(size.header_count + 1, sizeof *headers);
    amqp_table_entry_t *entries = calloc(3 * size.header_count + 1, sizeof *entries);
    char *text = malloc(size.text_size);
    assert_true(headers && entries && text);
    (void)wb_amqp_headers_read(&sent, any, &message, headers, text);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        assert_non_null(value_of(&message, wanted[i][0]));
        assert_string_equal(value_of(&message, wanted[i][0]), wanted[i][1]);
    }
    const wb_operation copy = { .struct_size = sizeof copy, .headers = headers,
                                .header_count = message.header_count };
    assert_null(wb_amqp_properties_make(&copy, NULL, entries, &again, &encoded));
    assert_int_equal(again._flags & sent._flags, sent._flags);
    assert_memory_equal(again.content_encoding.bytes, "gzip", 4);
    assert_memory_equal(again.app_id.bytes, "shop", 4);
    assert_int_equal(again.priority, 9);
    assert_int_equal(again.timestamp, 1700000000);
    free(text);
    free(entries);
    free(headers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exchanges),
        cmocka_unit_test(test_routes),
        cmocka_unit_test(test_no_routes),
        cmocka_unit_test(test_more_keys),
        cmocka_unit_test(test_headers_are_no_routes),
        cmocka_unit_test(test_routing_keys),
        cmocka_unit_test(test_wrong_routing_keys),
        cmocka_unit_test(test_properties),
    };
    return cmocka_run_group_tests_name("amqp wire", tests, NULL, NULL);
}
