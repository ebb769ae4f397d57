/* SPDX-License-Identifier: Apache-2.0
 *
 * The amqp transport without a broker: names of exchanges, and properties that are headers.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plugins/transport/amqp/amqp-headers.h"
#include "plugins/transport/amqp/amqp-properties.h"
#include "plugins/transport/amqp/amqp-topology.h"

/* As NServiceBus 10.2.8 leaves them in the broker. */
static void test_exchanges(void **state)
{
    static const char *const names[][2] = {
        { "Shop.OrderPlaced", "Shop:OrderPlaced" },
        { "Shop.Outer+Inner", "Shop:Outer+Inner" },
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
    amqp_table_entry_t *entries = calloc(2 * size.header_count + 1, sizeof *entries);
    char *text = malloc(size.text_size);
    assert_true(headers && entries && text);
    (void)wb_amqp_headers_read(&sent, any, &message, headers, text);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        assert_non_null(value_of(&message, wanted[i][0]));
        assert_string_equal(value_of(&message, wanted[i][0]), wanted[i][1]);
    }
    const wb_operation copy = { .struct_size = sizeof copy, .headers = headers,
                                .header_count = message.header_count };
    assert_null(wb_amqp_properties_make(&copy, entries, &again, &encoded));
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
        cmocka_unit_test(test_properties),
    };
    return cmocka_run_group_tests_name("amqp wire", tests, NULL, NULL);
}
