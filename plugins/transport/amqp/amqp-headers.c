/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-headers.h"

#include <string.h>

#include "plugins/transport/amqp/amqp-names.h"
#include "plugins/transport/amqp/amqp-values.h"

#define MESSAGE_ID "NServiceBus.MessageId"
#define CORRELATION_ID "NServiceBus.CorrelationId"
#define REPLY_TO "NServiceBus.ReplyToAddress"
#define CONTENT_TYPE "NServiceBus.ContentType"
#define ENCLOSED_TYPES "NServiceBus.EnclosedMessageTypes"
#define NON_PERSISTENT "NServiceBus.Transport.RabbitMQ.UseNonPersistentDelivery"
#define DELIVERY_COUNT "x-delivery-count"
#define OCTETS "application/octet-stream"
#define DIRECT_REPLY_TO "amq.rabbitmq.reply-to"

/* Every header of every message is compared with these names: their sizes are known
 * when this is compiled. */
#define LITERAL(text) { sizeof text - 1, (void *)(uintptr_t)text }
#define IS(name, text) is(name, (amqp_bytes_t)LITERAL(text))

static inline int is(amqp_bytes_t name, amqp_bytes_t wanted)
{
    return name.len == wanted.len && memcmp(name.bytes, wanted.bytes, name.len) == 0;
}

/* ---- received -------------------------------------------------------------------- */

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
        if (is(name, names[i]))
            return 1;
    }
    return 0;
}

/* A property that stands for a header. */
struct override {
    amqp_bytes_t name;
    amqp_bytes_t value; /* empty: the property is absent */
    int seen;           /* a header of that name was met */
    int yields;         /* the header, if there is one, is kept */
};

#define OVERRIDES 4

static amqp_bytes_t if_set(const amqp_basic_properties_t *properties, amqp_flags_t flag,
                           amqp_bytes_t value)
{
    return (properties->_flags & flag) ? value : amqp_empty_bytes;
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
}

static struct override *find_override(struct override overrides[OVERRIDES], amqp_bytes_t name)
{
    for (size_t i = 0; i < OVERRIDES; i++) {
        if (overrides[i].value.len && is(name, overrides[i].name))
            return &overrides[i];
    }
    return NULL;
}

/* Headers and their strings; without places to write to, it only counts. */
struct writer {
    wb_header *headers;
    size_t count;
    wb_amqp_text text;
};

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

static void put_override(struct writer *writer, const struct override *override)
{
    amqp_field_value_t value = { .kind = AMQP_FIELD_KIND_UTF8, .value.bytes = override->value };
    put_header(writer, override->name, &value);
}

static amqp_table_t table_of(const amqp_basic_properties_t *properties)
{
    return (properties->_flags & AMQP_BASIC_HEADERS_FLAG) ? properties->headers : amqp_empty_table;
}

static void put_headers(struct writer *writer, const amqp_basic_properties_t *properties)
{
    struct override overrides[OVERRIDES];
    amqp_table_t table = table_of(properties);
    list_overrides(properties, overrides);
    for (int i = 0; i < table.num_entries; i++) {
        const amqp_table_entry_t *entry = &table.entries[i];
        if (is_bookkeeping(entry->key))
            continue;
        struct override *override = find_override(overrides, entry->key);
        if (override)
            override->seen = 1;
        if (override && !override->yields)
            put_override(writer, override);
        else
            put_header(writer, entry->key, &entry->value);
    }
    for (size_t i = 0; i < OVERRIDES; i++) {
        if (overrides[i].value.len && !overrides[i].seen)
            put_override(writer, &overrides[i]);
    }
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

wb_amqp_size wb_amqp_headers_measure(const amqp_basic_properties_t *properties)
{
    struct writer writer = { 0 };
    put_headers(&writer, properties);
    return (wb_amqp_size){ writer.count, writer.text.size + find_id(properties).len + 1 };
}

void wb_amqp_headers_read(const amqp_basic_properties_t *properties, wb_incoming *message,
                          wb_header *headers, char *text)
{
    amqp_bytes_t id = find_id(properties);
    struct writer writer = { .headers = headers, .text.data = text };
    wb_amqp_text_put(&writer.text, id.bytes, id.len);
    wb_amqp_text_put(&writer.text, "", 1);
    message->id = id.len ? text : NULL;
    message->id_size = id.len;
    put_headers(&writer, properties);
    message->headers = headers;
    message->header_count = writer.count;
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

uint32_t wb_amqp_delivery_count(const amqp_basic_properties_t *properties, int redelivered)
{
    amqp_table_t table = table_of(properties);
    uint32_t most = 1;
    if (!redelivered)
        return 0;
    for (int i = 0; i < table.num_entries; i++) {
        uint32_t count = IS(table.entries[i].key, DELIVERY_COUNT)
                             ? count_of(&table.entries[i].value)
                             : 0;
        if (count > most)
            most = count;
    }
    return most;
}

/* ---- sent ------------------------------------------------------------------------ */

static amqp_bytes_t bytes_of(const char *data, size_t size)
{
    if (!data)
        return amqp_empty_bytes;
    return (amqp_bytes_t){ size ? size : strlen(data), (void *)(uintptr_t)data };
}

/* Properties hold 255 bytes; what is longer stands in its header alone. */
static void set_property(amqp_basic_properties_t *properties, amqp_flags_t flag,
                         amqp_bytes_t *property, amqp_bytes_t value)
{
    if (value.len == 0 || value.len > WB_AMQP_SHORT_MAX)
        return;
    *property = value;
    properties->_flags |= flag;
}

/* The first of the enclosed types, without its assembly. */
static amqp_bytes_t first_type(amqp_bytes_t types)
{
    const char *bytes = types.bytes;
    for (size_t i = 0; i < types.len; i++) {
        if (bytes[i] == ',' || bytes[i] == ';')
            return (amqp_bytes_t){ i, types.bytes };
    }
    return types;
}

/* @return 0 when the header is an order to the transport, which is not sent. */
static int note_header(amqp_basic_properties_t *p, amqp_bytes_t name, amqp_bytes_t value)
{
    if (name.len < 12 || memcmp(name.bytes, "NServiceBus.", 12) != 0)
        return 1;
    if (IS(name, CONTENT_TYPE)) {
        /* The default would replace a header that no property can hold. */
        p->_flags &= ~(amqp_flags_t)AMQP_BASIC_CONTENT_TYPE_FLAG;
        set_property(p, AMQP_BASIC_CONTENT_TYPE_FLAG, &p->content_type, value);
    } else if (IS(name, CORRELATION_ID))
        set_property(p, AMQP_BASIC_CORRELATION_ID_FLAG, &p->correlation_id, value);
    else if (IS(name, REPLY_TO)) {
        /* The broker would put our own consumer's address here, and we have none. */
        if (!IS(value, DIRECT_REPLY_TO))
            set_property(p, AMQP_BASIC_REPLY_TO_FLAG, &p->reply_to, value);
    } else if (IS(name, ENCLOSED_TYPES))
        set_property(p, AMQP_BASIC_TYPE_FLAG, &p->type, first_type(value));
    else if (IS(name, NON_PERSISTENT)) {
        p->delivery_mode = AMQP_DELIVERY_NONPERSISTENT;
        return 0;
    }
    return 1;
}

/* Headers the broker reads when a message is published, as routes beside the routing
 * key: it accepts nothing but a list. */
static int names_routes(amqp_bytes_t name)
{
    return IS(name, "CC") || IS(name, "BCC");
}

static amqp_table_entry_t make_entry(amqp_bytes_t name, amqp_bytes_t value,
                                     amqp_field_value_t *spare)
{
    amqp_table_entry_t entry = { name, { .kind = AMQP_FIELD_KIND_UTF8, .value.bytes = value } };
    if (names_routes(name)) {
        *spare = entry.value;
        entry.value = (amqp_field_value_t){ .kind = AMQP_FIELD_KIND_ARRAY,
                                            .value.array = { 1, spare } };
    }
    return entry;
}

const char *wb_amqp_properties_make(const wb_operation *operation, amqp_table_entry_t *entries,
                                    amqp_basic_properties_t *ret_properties, size_t *ret_size)
{
    enum { FIXED = 6 * (WB_AMQP_SHORT_MAX + 1) + 64, ENTRY = 6 + 5 };
    amqp_basic_properties_t *p = ret_properties;
    size_t size = FIXED;
    int count = 0;
    *p = (amqp_basic_properties_t){
        ._flags = AMQP_BASIC_DELIVERY_MODE_FLAG | AMQP_BASIC_CONTENT_TYPE_FLAG |
                  AMQP_BASIC_HEADERS_FLAG,
        .content_type = amqp_cstring_bytes(OCTETS),
        .delivery_mode = (operation->flags & WB_OPERATION_NON_PERSISTENT)
                             ? AMQP_DELIVERY_NONPERSISTENT
                             : AMQP_DELIVERY_PERSISTENT,
    };
    if (operation->id_size > WB_AMQP_SHORT_MAX)
        return "its id is longer than 255 bytes";
    if (operation->id_size)
        set_property(p, AMQP_BASIC_MESSAGE_ID_FLAG, &p->message_id,
                     bytes_of(operation->id, operation->id_size));
    for (size_t i = 0; i < operation->header_count; i++) {
        const wb_header *header = &operation->headers[i];
        amqp_bytes_t name = bytes_of(header->name, header->name_size);
        amqp_bytes_t value = bytes_of(header->value, header->value_size);
        if (name.len > WB_AMQP_SHORT_MAX)
            return "the name of a header is longer than 255 bytes";
        if (!note_header(p, name, value))
            continue;
        entries[count] = make_entry(name, value, &entries[operation->header_count + i].value);
        count++;
        size += name.len + value.len + ENTRY;
    }
    p->headers = (amqp_table_t){ count, entries };
    *ret_size = size;
    return NULL;
}
