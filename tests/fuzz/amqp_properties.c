/* SPDX-License-Identifier: Apache-2.0
 *
 * Properties and header table of a received message, from the bytes of its frame: what is measured
 * holds what is written, limits hold, and what is received, sent on and received again is the same.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "plugins/transport/amqp/amqp-header-names.h"
#include "plugins/transport/amqp/amqp-headers.h"
#include "plugins/transport/amqp/amqp-message.h"
#include "plugins/transport/amqp/amqp-names.h"
#include "plugins/transport/amqp/amqp-properties.h"
#include "tests/fuzz/fuzz.h"

const char fuzz_name[] = "amqp_properties";

static const wb_amqp_limits any = { SIZE_MAX, SIZE_MAX };

/* ---- received ----------------------------------------------------------------------------- */

/* Memory of the measured sizes, not a byte more. */
static wb_amqp_limits read_headers(const amqp_basic_properties_t *p, wb_amqp_limits limits, wb_incoming *message)
{
    const wb_amqp_size size = wb_amqp_headers_measure(p, limits);
    wb_header *headers = fuzz_alloc(size.header_count * sizeof *headers);
    char *text = fuzz_alloc(size.text_size);
    *message = (wb_incoming){ .struct_size = sizeof *message };
    wb_amqp_limits all = wb_amqp_headers_read(p, limits, message, headers, text);
    FUZZ_CHECK(message->header_count <= size.header_count);
    FUZZ_CHECK(!message->id || (message->id_size && message->id[message->id_size] == '\0'));
    FUZZ_CHECK(!message->id || message->id_size <= WB_AMQP_SHORT_MAX);
    for (size_t i = 0; i < message->header_count; i++) {
        const wb_header *header = &message->headers[i];
        FUZZ_CHECK(header->name[header->name_size] == '\0' && header->value[header->value_size] == '\0');
        FUZZ_CHECK(header->name_size <= WB_AMQP_SHORT_MAX);
    }
    return all;
}

static size_t size_of(const wb_incoming *message)
{
    size_t size = 0;
    for (size_t i = 0; i < message->header_count; i++)
        size += message->headers[i].name_size + message->headers[i].value_size;
    return size;
}

/* Each header that comes within limits comes without them, too. */
static void try_limits(const amqp_basic_properties_t *p, wb_amqp_limits limits)
{
    wb_incoming all, some;
    char text[200];
    const wb_amqp_limits total = read_headers(p, any, &all), same = read_headers(p, limits, &some);
    FUZZ_CHECK(total.count == all.header_count && total.size == size_of(&all));
    FUZZ_CHECK(same.count == total.count && same.size == total.size && some.header_count <= all.header_count);
    const int is_over = total.count > limits.count || total.size > limits.size;
    FUZZ_CHECK((wb_amqp_headers_problem(same, some.header_count, limits, text, sizeof text) > 0) == is_over);
    FUZZ_CHECK(is_over || some.header_count == all.header_count);
    FUZZ_CHECK(fuzz_is_same(all.id, all.id_size, some.id, some.id_size));
}

static void try_message(const amqp_basic_properties_t *p, wb_amqp_limits limits, const void *body, size_t size)
{
    const wb_endpoint_info info = { .struct_size = sizeof info, .body_max = 100, .headers_max = (uint32_t)limits.count,
                                    .headers_size_max = (int64_t)limits.size };
    const wb_transport transport = { .endpoint = &info };
    wb_amqp_message *message = wb_amqp_message_new(&transport, p, size);
    FUZZ_CHECK(message && wb_amqp_message_may_read(message));
    wb_amqp_message_add(message, (amqp_bytes_t){ size / 2, (void *)(uintptr_t)body });
    wb_amqp_message_add(message, (amqp_bytes_t){ size - size / 2, (char *)(uintptr_t)body + size / 2 });
    FUZZ_CHECK(fuzz_is_same(message->incoming.body, message->incoming.body_size, body, size));
    wb_amqp_message_free(message);
}

/* ---- sent on ------------------------------------------------------------------------------ */

static wb_operation operation_of(const wb_incoming *message)
{
    return (wb_operation){ .struct_size = sizeof(wb_operation), .kind = WB_OPERATION_SEND,
                           .destination = "queue", .id = message->id, .id_size = message->id_size,
                           .headers = message->headers, .header_count = message->header_count };
}

/* As the broker hands it on: without the routes that it takes out. @return 0: it is never sent. */
static int pass_on(amqp_pool_t *pool, const wb_incoming *message, amqp_basic_properties_t **ret_properties)
{
    const wb_operation operation = operation_of(message);
    amqp_table_entry_t *entries = fuzz_alloc((3 * message->header_count + 1) * sizeof *entries);
    amqp_basic_properties_t made;
    char expiration[WB_AMQP_EXPIRATION_SIZE];
    size_t size = 0;
    if (wb_amqp_properties_make(&operation, NULL, entries, &made, &size))
        return 0;
    wb_amqp_properties_expire(&made, &operation, expiration);
    const amqp_bytes_t room = { size, fuzz_alloc(size) };
    const int used = amqp_encode_properties(AMQP_BASIC_CLASS, &made, room);
    FUZZ_CHECK(used > 0 && (size_t)used <= size);
    const amqp_bytes_t encoded = { (size_t)used, fuzz_copy(room.bytes, (size_t)used) };
    void *decoded = NULL;
    FUZZ_CHECK(amqp_decode_properties(AMQP_BASIC_CLASS, pool, encoded, &decoded) == AMQP_STATUS_OK);
    *ret_properties = decoded;
    return 1;
}

static int is_same_header(const wb_header *a, const wb_header *b)
{
    return fuzz_is_same(a->name, a->name_size, b->name, b->name_size) &&
           fuzz_is_same(a->value, a->value_size, b->value, b->value_size);
}

static size_t count_header(const wb_incoming *message, const wb_header *like)
{
    size_t count = 0;
    for (size_t i = 0; i < message->header_count; i++)
        count += is_same_header(&message->headers[i], like);
    return count;
}

/* Not sent: what is an order to the transport, and what the broker would take out. */
static int stays_behind(const wb_header *header)
{
    const amqp_bytes_t name = { header->name_size, (void *)(uintptr_t)header->name };
    return IS(name, "BCC") || IS(name, NON_PERSISTENT);
}

/* Of several headers of one name a property may stand for all. */
static int is_only(const wb_incoming *message, const wb_header *header)
{
    size_t count = 0;
    for (size_t i = 0; i < message->header_count; i++)
        count += fuzz_is_same(message->headers[i].name, message->headers[i].name_size, header->name, header->name_size);
    return count == 1;
}

static void check_same(const wb_incoming *before, const wb_incoming *after)
{
    for (size_t i = 0; i < before->header_count; i++) {
        const wb_header *header = &before->headers[i];
        if (!stays_behind(header) && is_only(before, header))
            FUZZ_CHECK(count_header(after, header) == 1);
    }
    FUZZ_CHECK(!before->id || fuzz_is_same(before->id, before->id_size, after->id, after->id_size));
}

/* The first time properties may come to stand for headers; from then on nothing changes. */
static void try_again(amqp_pool_t *pool, const wb_incoming *first)
{
    amqp_basic_properties_t *properties = NULL;
    wb_incoming second, third;
    if (!pass_on(pool, first, &properties))
        return;
    (void)read_headers(properties, any, &second);
    check_same(first, &second);
    FUZZ_CHECK(pass_on(pool, &second, &properties));
    (void)read_headers(properties, any, &third);
    FUZZ_CHECK(second.header_count == third.header_count);
    for (size_t i = 0; i < second.header_count; i++)
        FUZZ_CHECK(is_same_header(&second.headers[i], &third.headers[i]));
}

/* ---- the target --------------------------------------------------------------------------- */

/* The limits come first, then the frame's bytes. */
void fuzz_one(const void *data, size_t size)
{
    fuzz_input input = fuzz_begin(data, size);
    const wb_amqp_limits limits = { fuzz_byte(&input), fuzz_byte(&input) * 16u };
    size_t frame_size;
    const char *frame = fuzz_rest(&input, &frame_size);
    amqp_pool_t pool;
    void *decoded = NULL;
    wb_incoming message;
    init_amqp_pool(&pool, 4096);
    if (amqp_decode_properties(AMQP_BASIC_CLASS, &pool, (amqp_bytes_t){ frame_size, (void *)(uintptr_t)frame },
                               &decoded) == AMQP_STATUS_OK) {
        const amqp_basic_properties_t *properties = decoded;
        FUZZ_CHECK(wb_amqp_delivery_count(properties, 0) == 0 && wb_amqp_delivery_count(properties, 1) >= 1);
        try_limits(properties, limits);
        try_message(properties, limits, frame, frame_size);
        (void)read_headers(properties, any, &message);
        try_again(&pool, &message);
    }
    empty_amqp_pool(&pool);
}
