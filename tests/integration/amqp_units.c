/* SPDX-License-Identifier: Apache-2.0
 *
 * The amqp transport without a broker: whose fault what is, and what is counted.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "plugins/transport/amqp/amqp-headers.h"
#include "plugins/transport/amqp/amqp-map.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closed_connections),
        cmocka_unit_test(test_closed_channels),
        cmocka_unit_test(test_statuses),
        cmocka_unit_test(test_delivery_count),
    };
    return cmocka_run_group_tests_name("amqp units", tests, NULL, NULL);
}
