/* SPDX-License-Identifier: Apache-2.0
 *
 * The amqp transport without a broker: what is measured holds what is written, whatever a peer
 * puts into properties and headers. Random messages, the same ones each time; behind the measured
 * memory stand bytes that nobody may change.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plugins/transport/amqp/amqp-header-names.h"
#include "plugins/transport/amqp/amqp-message.h"
#include "plugins/transport/amqp/amqp-headers.h"
#include "plugins/transport/amqp/amqp-properties.h"

#define ROUNDS 4000
#define HEADERS_MAX 300
#define GUARD ((size_t)1 << 18) /* more than all headers together can be */
#define UNTOUCHED 0xa5

/* ---- random messages ------------------------------------------------------------- */

static uint32_t draw(uint32_t below)
{
    static uint64_t state = 20261122;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33) % below;
}

/* Often none or the most. */
static amqp_bytes_t draw_bytes(size_t most)
{
    static char bytes[1000];
    memset(bytes, 'b', sizeof bytes);
    uint32_t how = draw(4);
    return (amqp_bytes_t){ how == 0 ? 0 : how == 1 ? most : draw((uint32_t)most + 1), bytes };
}

/* Those that mean something, in any mixture and number; of any other name few. */
static amqp_bytes_t draw_name(void)
{
    static const char *const names[] = {
        MESSAGE_ID, CORRELATION_ID, REPLY_TO, CONTENT_TYPE, ENCLOSED_TYPES, CONTENT_ENCODING, PRIORITY,
        TIMESTAMP, APP_ID, NON_PERSISTENT, "CC", "BCC", "x-death", "x-delivery-count", "x-delay", "",
    };
    uint32_t at = draw(sizeof names / sizeof names[0] + 2);
    return at < sizeof names / sizeof names[0] ? amqp_cstring_bytes(names[at]) : draw_bytes(WB_AMQP_SHORT_MAX);
}

/* In half of the messages the values of all headers are short or none: that is where a property
 * that stands for them is longer. */
static amqp_field_value_t draw_value(size_t most)
{
    static amqp_field_value_t list[3] = { { .kind = AMQP_FIELD_KIND_TIMESTAMP, .value.u64 = 1700000000 },
                                          { .kind = AMQP_FIELD_KIND_F64, .value.f64 = 0.1 },
                                          { .kind = AMQP_FIELD_KIND_VOID } };
    switch (draw(12)) {
    case 0: return (amqp_field_value_t){ .kind = AMQP_FIELD_KIND_BYTES, .value.bytes = draw_bytes(most) };
    case 1: return (amqp_field_value_t){ .kind = AMQP_FIELD_KIND_I64, .value.i64 = INT64_MIN };
    case 2: return (amqp_field_value_t){ .kind = AMQP_FIELD_KIND_VOID };
    case 3: return (amqp_field_value_t){ .kind = AMQP_FIELD_KIND_ARRAY, .value.array = { 3, list } };
    case 4:
        return (amqp_field_value_t){ .kind = AMQP_FIELD_KIND_DECIMAL,
                                     .value.decimal = { (uint8_t)draw(256), draw(UINT32_MAX) } };
    default: return (amqp_field_value_t){ .kind = AMQP_FIELD_KIND_UTF8, .value.bytes = draw_bytes(most) };
    }
}

static void draw_properties(amqp_basic_properties_t *p)
{
    static const amqp_flags_t flags[] = {
        AMQP_BASIC_TYPE_FLAG, AMQP_BASIC_REPLY_TO_FLAG, AMQP_BASIC_CORRELATION_ID_FLAG,
        AMQP_BASIC_CONTENT_TYPE_FLAG, AMQP_BASIC_CONTENT_ENCODING_FLAG, AMQP_BASIC_APP_ID_FLAG,
        AMQP_BASIC_PRIORITY_FLAG, AMQP_BASIC_TIMESTAMP_FLAG, AMQP_BASIC_MESSAGE_ID_FLAG,
    };
    *p = (amqp_basic_properties_t){
        .type = draw_bytes(WB_AMQP_SHORT_MAX), .reply_to = draw_bytes(WB_AMQP_SHORT_MAX),
        .correlation_id = draw_bytes(WB_AMQP_SHORT_MAX), .content_type = draw_bytes(WB_AMQP_SHORT_MAX),
        .content_encoding = draw_bytes(WB_AMQP_SHORT_MAX), .app_id = draw_bytes(WB_AMQP_SHORT_MAX),
        .message_id = draw_bytes(WB_AMQP_SHORT_MAX), .priority = (uint8_t)draw(256),
        .timestamp = draw(2) ? UINT64_MAX : draw(UINT32_MAX),
    };
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        p->_flags |= draw(2) ? flags[i] : 0;
}

static void draw_message(amqp_basic_properties_t *p, amqp_table_entry_t entries[HEADERS_MAX])
{
    size_t most = draw(2) ? 600 : draw(3);
    int only = draw(3) == 0, count = (int)draw(draw(2) ? 8 : HEADERS_MAX + 1);
    amqp_bytes_t name = draw_name();
    draw_properties(p);
    for (int i = 0; i < count; i++)
        entries[i] = (amqp_table_entry_t){ only ? name : draw_name(), draw_value(most) };
    p->_flags |= AMQP_BASIC_HEADERS_FLAG;
    p->headers = (amqp_table_t){ count, entries };
}

static wb_amqp_limits draw_limits(void)
{
    wb_amqp_limits limits = { SIZE_MAX, SIZE_MAX };
    if (draw(2))
        limits.count = draw(HEADERS_MAX);
    if (draw(2))
        limits.size = draw(draw(2) ? 100 : 65536);
    return limits;
}

/* ---- memory with a guard behind it ------------------------------------------------ */

static void *guarded(size_t size)
{
    void *memory = malloc(size + GUARD);
    assert_non_null(memory);
    return memset(memory, UNTOUCHED, size + GUARD);
}

static void check_guard(const void *memory, size_t size, const char *what, unsigned round)
{
    const unsigned char *guard = (const unsigned char *)memory + size;
    for (size_t i = 0; i < GUARD; i++)
        if (guard[i] != UNTOUCHED)
            fail_msg("message %u: %s have %zu bytes, and byte %zu behind them is written", round, what, size, i);
}

/* ---- what is received ------------------------------------------------------------- */

static void check_texts(const wb_incoming *message, const char *text, size_t size)
{
    for (size_t i = 0; i < message->header_count; i++) {
        const wb_header *header = &message->headers[i];
        assert_in_range((uintptr_t)header->name, (uintptr_t)text, (uintptr_t)text + size - 1);
        assert_in_range((uintptr_t)header->value + header->value_size, (uintptr_t)text, (uintptr_t)text + size - 1);
        assert_int_equal(header->name[header->name_size], 0);
        assert_int_equal(header->value[header->value_size], 0);
    }
}

/* Again as the transport does it, in memory of its own: for those who look at each byte. */
static void make_message(const amqp_basic_properties_t *properties, wb_amqp_limits limits)
{
    const wb_endpoint_info endpoint = {
        .struct_size = sizeof endpoint,
        .body_max = 1000,
        .headers_max = limits.count < UINT32_MAX ? (uint32_t)limits.count : 0,
        .headers_size_max = limits.size < INT64_MAX ? (int64_t)limits.size : 0,
    };
    const wb_transport transport = { .endpoint = &endpoint };
    wb_amqp_message *message = wb_amqp_message_new(&transport, properties, 10);
    assert_non_null(message);
    wb_amqp_message_free(message);
}

static void test_received(void **state)
{
    static amqp_table_entry_t entries[HEADERS_MAX];
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        amqp_basic_properties_t properties;
        wb_incoming message = { .struct_size = sizeof message };
        draw_message(&properties, entries);
        wb_amqp_limits limits = draw_limits();
        wb_amqp_size size = wb_amqp_headers_measure(&properties, limits);
        wb_header *headers = guarded(size.header_count * sizeof *headers);
        char *text = guarded(size.text_size);
        (void)wb_amqp_headers_read(&properties, limits, &message, headers, text);
        assert_true(message.header_count <= size.header_count);
        check_guard(headers, size.header_count * sizeof *headers, "headers", round);
        check_guard(text, size.text_size, "strings", round);
        check_texts(&message, text, size.text_size);
        free(text);
        free(headers);
        make_message(&properties, limits);
    }
}

/* ---- what is sent ----------------------------------------------------------------- */

static void draw_headers(wb_header headers[HEADERS_MAX], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        amqp_bytes_t name = draw_name(), value = draw_bytes(600);
        headers[i] = (wb_header){ name.bytes, value.bytes, name.len, value.len };
        if (name.len == 0)
            headers[i].name = "";
        if (value.len == 0)
            headers[i].value = "";
    }
}

static void test_sent(void **state)
{
    static wb_header headers[HEADERS_MAX];
    static amqp_table_entry_t entries[3 * HEADERS_MAX + 1];
    static wb_amqp_more more;
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        amqp_basic_properties_t properties;
        size_t count = draw(HEADERS_MAX), size, keys = draw(3) ? 0 : draw(WB_AMQP_MORE_MAX);
        amqp_bytes_t id = draw_bytes(WB_AMQP_SHORT_MAX);
        draw_headers(headers, count);
        const wb_operation operation = { .struct_size = sizeof operation, .id = id.bytes, .id_size = id.len,
                                         .headers = headers, .header_count = count };
        for (more.count = 0; more.count < keys; more.count++)
            more.keys[more.count] = (amqp_field_value_t){ .kind = AMQP_FIELD_KIND_UTF8,
                                                          .value.bytes = draw_bytes(WB_AMQP_SHORT_MAX) };
        assert_null(wb_amqp_properties_make(&operation, &more, entries, &properties, &size));
        char *encoded = guarded(size);
        int written = amqp_encode_properties(AMQP_BASIC_CLASS, &properties, (amqp_bytes_t){ size, encoded });
        if (written < 0)
            fail_msg("message %u: %zu bytes do not hold it: %s", round, size, amqp_error_string2(written));
        check_guard(encoded, size, "properties", round);
        free(encoded);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_received),
        cmocka_unit_test(test_sent),
    };
    return cmocka_run_group_tests_name("amqp sizes", tests, NULL, NULL);
}
