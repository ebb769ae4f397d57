/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-headers.h"

#include <inttypes.h>
#include <stdio.h>

#include "plugins/transport/amqp/amqp-header-names.h"
#include "plugins/transport/amqp/amqp-names.h"
#include "plugins/transport/amqp/amqp-values.h"

#define DELIVERY_COUNT "x-delivery-count"

static int is_bookkeeping(amqp_bytes_t name)
{
    static const amqp_bytes_t names[] = {
        LITERAL("x-death"),
        LITERAL("x-first-death-exchange"),
        LITERAL("x-first-death-queue"),
        LITERAL("x-first-death-reason"),
        LITERAL("x-last-death-exchange"),
        LITERAL("x-last-death-queue"),
        LITERAL("x-last-death-reason"),
        LITERAL(DELIVERY_COUNT),
        LITERAL("x-acquired-count"),
        LITERAL("x-dotnet-pub-seq-no"),
        LITERAL("NServiceBus.Transport.RabbitMQ.DelayInSeconds"),
        LITERAL("NServiceBus.Transport.RabbitMQ.ConfirmationId"),
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (wb_amqp_is(name, names[i]))
            return 1;
    }
    return 0;
}

/* A property that stands for a header. */
struct override {
    amqp_bytes_t name;
    amqp_bytes_t value; /* empty: the property is absent */
    int met;            /* a header of that name was there */
    int seen;           /* and is among the headers */
    int yields;         /* the header, if there is one, is kept */
    char digits[24];    /* of a number */
};

#define OVERRIDES 8

static amqp_bytes_t if_set(const amqp_basic_properties_t *properties, amqp_flags_t flag,
                           amqp_bytes_t value)
{
    return (properties->_flags & flag) ? value : amqp_empty_bytes;
}

/* A number's digits are the override's own: it stays where it is. */
static void set_number(struct override *override, amqp_bytes_t name, int is_set, uint64_t number)
{
    *override = (struct override){ .name = name };
    if (!is_set)
        return;
    int size = snprintf(override->digits, sizeof override->digits, "%" PRIu64, number);
    override->value = (amqp_bytes_t){ (size_t)size, override->digits };
}

static void list_overrides(const amqp_basic_properties_t *p,
                           struct override overrides[OVERRIDES])
{
    overrides[0] = (struct override){
        .name = LITERAL(REPLY_TO), .value = if_set(p, AMQP_BASIC_REPLY_TO_FLAG, p->reply_to)
    };
    overrides[1] =
        (struct override){ .name = LITERAL(CORRELATION_ID),
                           .value = if_set(p, AMQP_BASIC_CORRELATION_ID_FLAG, p->correlation_id) };
    overrides[2] =
        (struct override){ .name = LITERAL(CONTENT_TYPE),
                           .value = if_set(p, AMQP_BASIC_CONTENT_TYPE_FLAG, p->content_type) };
    overrides[3] = (struct override){ .name = LITERAL(ENCLOSED_TYPES),
                                      .value = if_set(p, AMQP_BASIC_TYPE_FLAG, p->type),
                                      .yields = 1 };
    overrides[4] = (struct override){
        .name = LITERAL(CONTENT_ENCODING),
        .value = if_set(p, AMQP_BASIC_CONTENT_ENCODING_FLAG, p->content_encoding)
    };
    overrides[5] = (struct override){ .name = LITERAL(APP_ID),
                                      .value = if_set(p, AMQP_BASIC_APP_ID_FLAG, p->app_id) };
    set_number(&overrides[6], (amqp_bytes_t)LITERAL(PRIORITY),
               (p->_flags & AMQP_BASIC_PRIORITY_FLAG) != 0, p->priority);
    set_number(&overrides[7], (amqp_bytes_t)LITERAL(TIMESTAMP),
               (p->_flags & AMQP_BASIC_TIMESTAMP_FLAG) != 0, p->timestamp);
}

static struct override *find_override(struct override overrides[OVERRIDES], amqp_bytes_t name)
{
    for (size_t i = 0; i < OVERRIDES; i++) {
        if (overrides[i].value.len && wb_amqp_is(name, overrides[i].name))
            return &overrides[i];
    }
    return NULL;
}

/* Headers and their strings; without places to write to, it only counts. */
struct writer {
    wb_header *headers;
    size_t count;
    wb_amqp_text text;
    wb_amqp_limits left; /* of the limits */
    size_t all_count, all_size;
};

static size_t text_size_of(const amqp_field_value_t *value)
{
    wb_amqp_text text = { 0 };
    if (value->kind == AMQP_FIELD_KIND_UTF8) /* nearly all of them are */
        return value->value.bytes.len;
    wb_amqp_value_put(&text, value);
    return text.size;
}

static void put_header(struct writer *writer, amqp_bytes_t name, const amqp_field_value_t *value)
{
    size_t name_at = writer->text.size;
    wb_amqp_text_put(&writer->text, name.bytes, name.len);
    wb_amqp_text_put(&writer->text, "", 1);
    size_t value_at = writer->text.size;
    wb_amqp_value_put(&writer->text, value);
    size_t value_end = writer->text.size;
    wb_amqp_text_put(&writer->text, "", 1);
    if (writer->headers)
        writer->headers[writer->count] = (wb_header){ .name = writer->text.data + name_at,
                                                      .value = writer->text.data + value_at,
                                                      .name_size = name.len,
                                                      .value_size = value_end - value_at };
    writer->count++;
}

static void note(struct writer *writer, size_t size)
{
    writer->all_count++;
    writer->all_size += size;
}

/* @return 0 when it does not fit what is left of the limits. */
static int put_if_it_fits(struct writer *writer, amqp_bytes_t name,
                          const amqp_field_value_t *value, size_t size)
{
    if (writer->left.count == 0 || writer->left.size < size)
        return 0;
    writer->left.count--;
    writer->left.size -= size;
    put_header(writer, name, value);
    return 1;
}

static amqp_field_value_t value_of(const struct override *override)
{
    return (amqp_field_value_t){ .kind = AMQP_FIELD_KIND_UTF8, .value.bytes = override->value };
}

static void put_override(struct writer *writer, struct override *override)
{
    amqp_field_value_t value = value_of(override);
    put_header(writer, override->name, &value);
    override->seen = 1;
}

/* They are few and short, and say what the message is: they fit whatever else is there. */
static void reserve_overrides(struct writer *writer, const struct override overrides[OVERRIDES])
{
    for (size_t i = 0; i < OVERRIDES; i++) {
        size_t size = overrides[i].name.len + overrides[i].value.len;
        if (!overrides[i].value.len || overrides[i].yields)
            continue;
        note(writer, size);
        writer->left.count -= writer->left.count > 0;
        writer->left.size -= size < writer->left.size ? size : writer->left.size;
    }
}

static amqp_table_t table_of(const amqp_basic_properties_t *properties)
{
    return (properties->_flags & AMQP_BASIC_HEADERS_FLAG) ? properties->headers : amqp_empty_table;
}

static void put_entry(struct writer *writer, struct override overrides[OVERRIDES],
                      const amqp_table_entry_t *entry)
{
    struct override *override = find_override(overrides, entry->key);
    amqp_field_value_t value = entry->value;
    if (override && !override->yields) {
        if (!override->seen) {
            put_override(writer, override);
            return;
        }
        value = value_of(override);
    }
    size_t size = entry->key.len + text_size_of(&value);
    note(writer, size);
    int put = put_if_it_fits(writer, entry->key, &value, size);
    if (override) {
        override->met = 1;
        override->seen |= put;
    }
}

/* A type that its header is too large to tell is told by the property. */
static void put_missing(struct writer *writer, struct override *override)
{
    size_t size = override->name.len + override->value.len;
    amqp_field_value_t value = value_of(override);
    if (!override->value.len || override->seen)
        return;
    if (!override->yields) {
        put_override(writer, override);
        return;
    }
    if (!override->met)
        note(writer, size);
    (void)put_if_it_fits(writer, override->name, &value, size);
}

static void put_headers(struct writer *writer, const amqp_basic_properties_t *properties,
                        wb_amqp_limits limits)
{
    struct override overrides[OVERRIDES];
    amqp_table_t table = table_of(properties);
    list_overrides(properties, overrides);
    writer->left = limits;
    reserve_overrides(writer, overrides);
    for (int i = 0; i < table.num_entries; i++) {
        if (!is_bookkeeping(table.entries[i].key))
            put_entry(writer, overrides, &table.entries[i]);
    }
    for (size_t i = 0; i < OVERRIDES; i++)
        put_missing(writer, &overrides[i]);
}

static amqp_bytes_t find_id(const amqp_basic_properties_t *properties)
{
    amqp_table_t table = table_of(properties);
    if ((properties->_flags & AMQP_BASIC_MESSAGE_ID_FLAG) && properties->message_id.len)
        return properties->message_id;
    for (int i = 0; i < table.num_entries; i++) {
        const amqp_field_value_t *value = &table.entries[i].value;
        if ((value->kind == AMQP_FIELD_KIND_UTF8 || value->kind == AMQP_FIELD_KIND_BYTES) &&
            value->value.bytes.len <= WB_AMQP_SHORT_MAX && IS(table.entries[i].key, MESSAGE_ID))
            return value->value.bytes;
    }
    return amqp_empty_bytes;
}

wb_amqp_size wb_amqp_headers_measure(const amqp_basic_properties_t *properties,
                                     wb_amqp_limits limits)
{
    struct writer writer = { 0 };
    put_headers(&writer, properties, limits);
    return (wb_amqp_size){ .header_count = writer.count,
                           .text_size = writer.text.size + find_id(properties).len + 1,
                           .all_count = writer.all_count,
                           .all_size = writer.all_size };
}

void wb_amqp_headers_read(const amqp_basic_properties_t *properties, wb_amqp_limits limits,
                          wb_incoming *message, wb_header *headers, char *text)
{
    amqp_bytes_t id = find_id(properties);
    struct writer writer = { .headers = headers, .text.data = text };
    wb_amqp_text_put(&writer.text, id.bytes, id.len);
    wb_amqp_text_put(&writer.text, "", 1);
    message->id = id.len ? text : NULL;
    message->id_size = id.len;
    put_headers(&writer, properties, limits);
    message->headers = headers;
    message->header_count = writer.count;
}

size_t wb_amqp_headers_problem(const wb_amqp_size *size, wb_amqp_limits limits, char *buffer)
{
    size_t room = buffer ? wb_amqp_headers_problem(size, limits, NULL) : 0;
    int length = -1;
    if (size->all_count > limits.count)
        length = snprintf(buffer, room,
                          "the message has %zu headers, more than %zu: %zu of them were kept",
                          size->all_count, limits.count, size->header_count);
    else if (size->all_size > limits.size)
        length = snprintf(buffer, room,
                          "the headers of the message have %zu bytes, more than %zu: %zu of %zu "
                          "headers were kept",
                          size->all_size, limits.size, size->header_count, size->all_count);
    return length < 0 ? 0 : (size_t)length + 1;
}

/* Integers of any width and sign; what is negative is no count. */
static uint32_t count_of(const amqp_field_value_t *value)
{
    int64_t count = 0;
    switch (value->kind) {
    case AMQP_FIELD_KIND_I8: count = value->value.i8; break;
    case AMQP_FIELD_KIND_U8: count = value->value.u8; break;
    case AMQP_FIELD_KIND_I16: count = value->value.i16; break;
    case AMQP_FIELD_KIND_U16: count = value->value.u16; break;
    case AMQP_FIELD_KIND_I32: count = value->value.i32; break;
    case AMQP_FIELD_KIND_U32: count = value->value.u32; break;
    case AMQP_FIELD_KIND_I64:
    case AMQP_FIELD_KIND_U64: count = value->value.i64; break;
    default: break;
    }
    if (count < 0)
        return 0;
    return count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
}

/* Of headers with this name the broker writes over the first and sorts by name, keeping
 * the order of equal ones: the others are the sender's. */
uint32_t wb_amqp_delivery_count(const amqp_basic_properties_t *properties, int redelivered)
{
    amqp_table_t table = table_of(properties);
    uint32_t count = 0;
    if (!redelivered)
        return 0;
    for (int i = 0; i < table.num_entries; i++) {
        if (IS(table.entries[i].key, DELIVERY_COUNT)) {
            count = count_of(&table.entries[i].value);
            break;
        }
    }
    return count ? count : 1;
}
