/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-properties.h"

#include <inttypes.h>
#include <stdio.h>
#include <waybill/sys/expiry.h>

#include "plugins/transport/amqp/amqp-header-names.h"
#include "plugins/transport/amqp/amqp-names.h"

#define OCTETS "application/octet-stream"
/* Headers the broker reads when a message is published, as routes beside the routing key; the
 * second it takes out. */
#define ROUTES "CC"
#define ROUTES_HIDDEN "BCC"
#define DIRECT_REPLY_TO "amq.rabbitmq.reply-to"

static amqp_bytes_t bytes_of(const char *data, size_t size)
{
    return data ? (amqp_bytes_t){ size, (void *)(uintptr_t)data } : amqp_empty_bytes;
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

/* What a number is in the form in which it is received again, or -1: then its header alone holds it. */
static int64_t number_of(amqp_bytes_t value, int64_t most)
{
    const char *digits = value.bytes;
    int64_t number = 0;
    if (value.len == 0 || value.len > 18 || (value.len > 1 && digits[0] == '0'))
        return -1;
    for (size_t i = 0; i < value.len; i++) {
        if (digits[i] < '0' || digits[i] > '9')
            return -1;
        number = number * 10 + (digits[i] - '0');
    }
    return number <= most ? number : -1;
}

/* What other senders said of a message, on its way to the error queue and back. */
static void note_own(amqp_basic_properties_t *p, amqp_bytes_t name, amqp_bytes_t value)
{
    int64_t number;
    if (IS(name, CONTENT_ENCODING))
        set_property(p, AMQP_BASIC_CONTENT_ENCODING_FLAG, &p->content_encoding, value);
    else if (IS(name, APP_ID))
        set_property(p, AMQP_BASIC_APP_ID_FLAG, &p->app_id, value);
    else if (IS(name, PRIORITY) && (number = number_of(value, UINT8_MAX)) >= 0) {
        p->priority = (uint8_t)number;
        p->_flags |= AMQP_BASIC_PRIORITY_FLAG;
    } else if (IS(name, TIMESTAMP) && (number = number_of(value, INT64_MAX)) >= 0) {
        p->timestamp = (uint64_t)number;
        p->_flags |= AMQP_BASIC_TIMESTAMP_FLAG;
    }
}

/* @return 0 when the header is an order to the transport, or the transport's own word, which are
 * not sent. */
static int note_header(amqp_basic_properties_t *p, amqp_bytes_t name, amqp_bytes_t value)
{
    if (name.len > 8 && memcmp(name.bytes, "Waybill.", 8) == 0)
        note_own(p, name, value);
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
    } else if (IS(name, DELAY_SECONDS))
        return 0;
    return 1;
}

/* Our own routes. @return the encoded size. */
static size_t put_more(wb_amqp_more *more, amqp_table_entry_t *entry)
{
    size_t size = sizeof ROUTES_HIDDEN + 5;
    *entry = (amqp_table_entry_t){
        LITERAL(ROUTES_HIDDEN),
        { .kind = AMQP_FIELD_KIND_ARRAY, .value.array = { (int)more->count, more->keys } }
    };
    for (size_t i = 0; i < more->count; i++)
        size += more->keys[i].value.bytes.len + 5;
    return size;
}

static amqp_field_value_t text_value(amqp_bytes_t text)
{
    return (amqp_field_value_t){ .kind = AMQP_FIELD_KIND_UTF8, .value.bytes = text };
}

static amqp_field_value_t list_of(amqp_field_value_t *only)
{
    return (amqp_field_value_t){ .kind = AMQP_FIELD_KIND_ARRAY, .value.array = { 1, only } };
}

/* A message goes where its operation says, and nowhere else: what a peer wrote into a header must
 * not send the copy for the error queue back to where it failed. Of this header the broker takes
 * nothing but a list, and of a list only texts are routes: in a list of its own the text reads back
 * the same, and is none. */
static amqp_table_entry_t make_entry(amqp_bytes_t name, amqp_bytes_t value, amqp_table_entry_t spares[2])
{
    amqp_table_entry_t entry = { name, text_value(value) };
    if (IS(name, ROUTES)) {
        spares[0].value = entry.value;
        spares[1].value = list_of(&spares[0].value);
        entry.value = list_of(&spares[1].value);
    }
    return entry;
}

static size_t size_of_entry(const amqp_table_entry_t *entry, amqp_bytes_t value)
{
    enum { TEXT = 6, LISTS = 2 * 5 };
    return entry->key.len + value.len + TEXT + (entry->value.kind == AMQP_FIELD_KIND_ARRAY ? LISTS : 0);
}

const char *wb_amqp_properties_make(const wb_operation *operation, wb_amqp_more *more,
                                    amqp_table_entry_t *entries,
                                    amqp_basic_properties_t *ret_properties, size_t *ret_size)
{
    enum { FIXED = 8 * (WB_AMQP_SHORT_MAX + 1) + 80 };
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
        if (IS(name, ROUTES_HIDDEN)) /* nobody would see it */
            continue;
        entries[count] = make_entry(name, value, &entries[operation->header_count + 1 + 2 * i]);
        size += size_of_entry(&entries[count++], value);
    }
    if (more && more->count)
        size += put_more(more, &entries[count++]);
    p->headers = (amqp_table_t){ count, entries };
    *ret_size = size;
    return NULL;
}

void wb_amqp_properties_delay(amqp_basic_properties_t *properties, int32_t seconds, size_t *size)
{
    amqp_table_t *headers = &properties->headers;
    headers->entries[headers->num_entries++] = (amqp_table_entry_t){
        LITERAL(DELAY_SECONDS), { .kind = AMQP_FIELD_KIND_I32, .value.i32 = seconds }
    };
    *size += sizeof DELAY_SECONDS + 5;
}

/* Whole milliseconds, not too few. There is room for it in the size, which knows the fixed part. */
void wb_amqp_properties_expire(amqp_basic_properties_t *properties, const wb_operation *operation,
                               char text[WB_AMQP_EXPIRATION_SIZE])
{
    int64_t span = wb_time_to_be_received(operation->headers, operation->header_count);
    if (!span || (WB_HAS(operation, wb_operation, deliver_at) && operation->deliver_at))
        return;
    (void)snprintf(text, WB_AMQP_EXPIRATION_SIZE, "%" PRId64, (span + WB_MILLISECONDS - 1) / WB_MILLISECONDS);
    set_property(properties, AMQP_BASIC_EXPIRATION_FLAG, &properties->expiration, amqp_cstring_bytes(text));
}
