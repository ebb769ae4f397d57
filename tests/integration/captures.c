/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/integration/captures.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/transport/amqp/amqp-headers.h"

#define LINE_SIZE 65536

const wb_header *capture_header(const wb_header *headers, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(headers[i].name, name) == 0)
            return &headers[i];
    return NULL;
}

static amqp_bytes_t text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? amqp_cstring_bytes(text) : amqp_empty_bytes;
}

static int make_table(const json_t *headers, amqp_table_entry_t *table)
{
    const char *name;
    json_t *value;
    int count = 0;
    json_object_foreach((json_t *)(uintptr_t)headers, name, value) {
        assert_true(count < CAPTURE_HEADERS_MAX);
        table[count].key = amqp_cstring_bytes(name);
        if (json_is_integer(value)) {
            table[count].value.kind = AMQP_FIELD_KIND_I64;
            table[count].value.value.i64 = json_integer_value(value);
        } else {
            table[count].value.kind = AMQP_FIELD_KIND_UTF8;
            table[count].value.value.bytes = amqp_cstring_bytes(json_string_value(value));
        }
        count++;
    }
    return count;
}

static void make_properties(const json_t *message, capture *c)
{
    const json_t *from = json_object_get(message, "properties");
    c->properties = (amqp_basic_properties_t){ ._flags = AMQP_BASIC_HEADERS_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG,
                                               .message_id = text_of(from, "message_id"),
                                               .type = text_of(from, "type"),
                                               .reply_to = text_of(from, "reply_to"),
                                               .correlation_id = text_of(from, "correlation_id"),
                                               .content_type = text_of(from, "content_type"),
                                               .expiration = text_of(from, "expiration") };
    amqp_basic_properties_t *p = &c->properties;
    p->delivery_mode = (uint8_t)json_integer_value(json_object_get(from, "delivery_mode"));
    p->headers.entries = c->table;
    p->headers.num_entries = make_table(json_object_get(message, "headers"), c->table);
    p->_flags |= (p->message_id.len ? AMQP_BASIC_MESSAGE_ID_FLAG : 0) |
                 (p->type.len ? AMQP_BASIC_TYPE_FLAG : 0) |
                 (p->reply_to.len ? AMQP_BASIC_REPLY_TO_FLAG : 0) |
                 (p->expiration.len ? AMQP_BASIC_EXPIRATION_FLAG : 0) |
                 (p->correlation_id.len ? AMQP_BASIC_CORRELATION_ID_FLAG : 0) |
                 (p->content_type.len ? AMQP_BASIC_CONTENT_TYPE_FLAG : 0);
}

static void read_message(const json_t *message, capture *c)
{
    const wb_amqp_limits any = { SIZE_MAX, SIZE_MAX };
    const char *type = json_string_value(json_object_get(json_object_get(message, "properties"), "type"));
    c->scenario = json_string_value(json_object_get(message, "scenario"));
    c->exchange = json_string_value(json_object_get(message, "exchange"));
    c->key = json_string_value(json_object_get(message, "routing_key"));
    c->type = type ? type : "";
    make_properties(message, c);
    wb_amqp_size size = wb_amqp_headers_measure(&c->properties, any);
    c->headers = calloc(size.header_count + 1, sizeof *c->headers);
    c->text = malloc(size.text_size);
    assert_true(c->headers && c->text);
    c->incoming = (wb_incoming){ .struct_size = sizeof c->incoming };
    (void)wb_amqp_headers_read(&c->properties, any, &c->incoming, c->headers, c->text);
    c->incoming.body = json_string_value(json_object_get(message, "body"));
    c->incoming.body_size = strlen(c->incoming.body);
}

size_t captures_each(const char *topology, void (*each)(const capture *message, void *user), void *user)
{
    static char line[LINE_SIZE];
    static capture c;
    char path[4096];
    size_t count = 0;
    (void)snprintf(path, sizeof path, "%s/tests/captures/nservicebus-10.2.8-%s.jsonl",
                   getenv("top_srcdir") ? getenv("top_srcdir") : ".", topology);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        json_t *message = json_loads(line, 0, NULL);
        assert_non_null(message);
        read_message(message, &c);
        each(&c, user);
        free(c.text);
        free(c.headers);
        json_decref(message);
        count++;
    }
    (void)fclose(file);
    return count;
}
