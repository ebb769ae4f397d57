/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-headers.h"

#include <inttypes.h>
#include <stdio.h>

#include "plugins/transport/amqp/amqp-header-names.h"
#include "plugins/transport/amqp/amqp-names.h"
#include "plugins/transport/amqp/amqp-values.h"

#define DELIVERY_COUNT "x-delivery-count"
/* Most bytes of a header's name and a property that stands for it. */
#define OVERRIDE_SIZE (sizeof ENCLOSED_TYPES + WB_AMQP_SHORT_MAX)

/* All names begin with one of two letters, so that most headers are asked about two names. */
static int is_one_of(amqp_bytes_t name, const amqp_bytes_t *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (wb_amqp_is(name, names[i]))
            return 1;
    return 0;
}

static int is_bookkeeping(amqp_bytes_t name)
{
    static const amqp_bytes_t brokers[] = {
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
    };
    static const amqp_bytes_t transports[] = {
        LITERAL(DELAY_SECONDS),
        LITERAL("NServiceBus.Transport.RabbitMQ.ConfirmationId"),
    };
    if (name.len && *(const char *)name.bytes == 'x')
        return is_one_of(name, brokers, sizeof brokers / sizeof brokers[0]);
    return is_one_of(name, transports, sizeof transports / sizeof transports[0]);
}

/* A property that stands for a header. */
struct override {
    amqp_bytes_t name;
    amqp_bytes_t value;
    int met;         /* a header of that name was there */
    int seen;        /* and is among the headers */
    int yields;      /* the header, if there is one, is kept */
    char digits[24]; /* of a number: the override stays where it is */
};

#define OVERRIDES 8

/* Those of a message. */
struct overrides {
    struct override list[OVERRIDES];
    size_t count;
};

static void add(struct overrides *overrides, amqp_bytes_t name, int is_set, amqp_bytes_t value)
{
    if (is_set && value.len)
        overrides->list[overrides->count++] = (struct override){ .name = name, .value = value };
}

static void add_number(struct overrides *overrides, amqp_bytes_t name, int is_set, uint64_t number)
{
    if (!is_set)
        return;
    struct override *override = &overrides->list[overrides->count++];
    *override = (struct override){ .name = name };
    int size = snprintf(override->digits, sizeof override->digits, "%" PRIu64, number);
    override->value = (amqp_bytes_t){ (size_t)size, override->digits };
}

static void list_overrides(struct overrides *overrides, const amqp_basic_properties_t *p)
{
#define NAME(text) ((amqp_bytes_t)LITERAL(text))
#define IS_SET(property) ((p->_flags & AMQP_BASIC_##property##_FLAG) != 0)
    overrides->count = 0;
    add(overrides, NAME(ENCLOSED_TYPES), IS_SET(TYPE), p->type);
    if (overrides->count)
        overrides->list[0].yields = 1;
    add(overrides, NAME(REPLY_TO), IS_SET(REPLY_TO), p->reply_to);
    add(overrides, NAME(CORRELATION_ID), IS_SET(CORRELATION_ID), p->correlation_id);
    add(overrides, NAME(CONTENT_TYPE), IS_SET(CONTENT_TYPE), p->content_type);
    add(overrides, NAME(CONTENT_ENCODING), IS_SET(CONTENT_ENCODING), p->content_encoding);
    add(overrides, NAME(APP_ID), IS_SET(APP_ID), p->app_id);
    add_number(overrides, NAME(PRIORITY), IS_SET(PRIORITY), p->priority);
    add_number(overrides, NAME(TIMESTAMP), IS_SET(TIMESTAMP), p->timestamp);
#undef IS_SET
#undef NAME
}

static struct override *find_override(struct overrides *overrides, amqp_bytes_t name)
{
    for (size_t i = 0; i < overrides->count; i++)
        if (wb_amqp_is(name, overrides->list[i].name))
            return &overrides->list[i];
    return NULL;
}

/* Headers and their strings. */
struct writer {
    wb_header *headers;
    size_t count;
    wb_amqp_text text;
    wb_amqp_limits left; /* of the limits */
    wb_amqp_limits all;  /* there are */
};

static size_t text_size_of(const amqp_field_value_t *value)
{
    wb_amqp_text text = { 0 };
    if (value->kind == AMQP_FIELD_KIND_UTF8) /* nearly all of them are */
        return value->value.bytes.len;
    wb_amqp_value_put(&text, value);
    return text.size;
}

static const char *put_string(struct writer *writer, amqp_bytes_t string)
{
    char *at = writer->text.data + writer->text.size;
    if (string.len)
        memcpy(at, string.bytes, string.len);
    at[string.len] = '\0';
    writer->text.size += string.len + 1;
    return at;
}

static const char *put_value(struct writer *writer, const amqp_field_value_t *value)
{
    if (value->kind == AMQP_FIELD_KIND_UTF8)
        return put_string(writer, value->value.bytes);
    const char *at = writer->text.data + writer->text.size;
    wb_amqp_value_put(&writer->text, value);
    (void)put_string(writer, amqp_empty_bytes);
    return at;
}

static void put_header(struct writer *writer, amqp_bytes_t name, const amqp_field_value_t *value)
{
    wb_header *header = &writer->headers[writer->count++];
    *header = (wb_header){ .name = put_string(writer, name), .name_size = name.len };
    header->value = put_value(writer, value);
    header->value_size = (size_t)(writer->text.data + writer->text.size - header->value) - 1;
}

static void note(struct writer *writer, size_t size)
{
    writer->all.count++;
    writer->all.size += size;
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

/* What is written for a header of the table, each of a name: measuring and writing both ask here. */
static amqp_field_value_t value_for(const struct override *override, const amqp_table_entry_t *entry)
{
    return override && !override->yields ? value_of(override) : entry->value;
}

static void put_override(struct writer *writer, struct override *override)
{
    amqp_field_value_t value = value_of(override);
    put_header(writer, override->name, &value);
    override->seen = 1;
}

/* They are few and short, and say what the message is: they fit whatever else is there. */
static void reserve_overrides(struct writer *writer, const struct overrides *overrides)
{
    for (size_t i = 0; i < overrides->count; i++) {
        const struct override *override = &overrides->list[i];
        size_t size = override->name.len + override->value.len;
        if (override->yields)
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

static void put_entry(struct writer *writer, struct overrides *overrides,
                      const amqp_table_entry_t *entry)
{
    struct override *override = find_override(overrides, entry->key);
    if (override && !override->yields && !override->seen) {
        put_override(writer, override);
        return;
    }
    amqp_field_value_t value = value_for(override, entry);
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
    if (override->seen)
        return;
    if (!override->yields) {
        put_override(writer, override);
        return;
    }
    if (!override->met)
        note(writer, size);
    (void)put_if_it_fits(writer, override->name, &value, size);
}

static void put_headers(struct writer *writer, const amqp_basic_properties_t *properties)
{
    struct overrides overrides;
    amqp_table_t table = table_of(properties);
    list_overrides(&overrides, properties);
    reserve_overrides(writer, &overrides);
    for (int i = 0; i < table.num_entries; i++) {
        if (!is_bookkeeping(table.entries[i].key))
            put_entry(writer, &overrides, &table.entries[i]);
    }
    for (size_t i = 0; i < overrides.count; i++)
        put_missing(writer, &overrides.list[i]);
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

/* Overrides are at most OVERRIDES more headers, and their strings are short; but in the table a
 * name may stand any number of times. */
wb_amqp_size wb_amqp_headers_measure(const amqp_basic_properties_t *properties,
                                     wb_amqp_limits limits)
{
    amqp_table_t table = table_of(properties);
    struct overrides overrides;
    size_t count = (size_t)table.num_entries, size = 0;
    list_overrides(&overrides, properties);
    for (size_t i = 0; i < count; i++) {
        const amqp_table_entry_t *entry = &table.entries[i];
        amqp_field_value_t value = value_for(find_override(&overrides, entry->key), entry);
        size += entry->key.len + text_size_of(&value);
    }
    count = (count < limits.count ? count : limits.count) + OVERRIDES;
    size = (size < limits.size ? size : limits.size) + OVERRIDES * OVERRIDE_SIZE;
    return (wb_amqp_size){ .header_count = count,
                           .text_size = size + 2 * count + find_id(properties).len + 1 };
}

wb_amqp_limits wb_amqp_headers_read(const amqp_basic_properties_t *properties,
                                    wb_amqp_limits limits, wb_incoming *message,
                                    wb_header *headers, char *text)
{
    amqp_bytes_t id = find_id(properties);
    struct writer writer = { .headers = headers, .text.data = text, .left = limits };
    message->id = put_string(&writer, id);
    message->id_size = id.len;
    if (!id.len)
        message->id = NULL;
    put_headers(&writer, properties);
    message->headers = headers;
    message->header_count = writer.count;
    return writer.all;
}

size_t wb_amqp_headers_problem(wb_amqp_limits all, size_t kept, wb_amqp_limits limits,
                               char *buffer, size_t size)
{
    int length = 0;
    if (all.count > limits.count)
        length = snprintf(buffer, size,
                          "the message has %zu headers, more than %zu: %zu of them were kept",
                          all.count, limits.count, kept);
    else if (all.size > limits.size)
        length = snprintf(buffer, size,
                          "the headers of the message have %zu bytes, more than %zu: %zu of %zu "
                          "headers were kept",
                          all.size, limits.size, kept, all.count);
    return length > 0 ? (size_t)length : 0;
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
