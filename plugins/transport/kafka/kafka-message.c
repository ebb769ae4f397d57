/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "plugins/transport/kafka/kafka-consumer.h"
#include "plugins/transport/kafka/kafka-headers.h"

/* Names, values and the body are librdkafka's, which keeps a NUL byte behind each header; a
 * key is copied, because it has none. */
static size_t count_headers(const rd_kafka_message_t *raw, rd_kafka_headers_t **ret_headers)
{
    *ret_headers = NULL;
    if (rd_kafka_message_headers(raw, ret_headers) != RD_KAFKA_RESP_ERR_NO_ERROR)
        return 0;
    return rd_kafka_header_cnt(*ret_headers);
}

static void read_headers(wb_kafka_message *message, const rd_kafka_headers_t *from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *name;
        const void *value;
        size_t size;
        if (rd_kafka_header_get_all(from, i, &name, &value, &size) != RD_KAFKA_RESP_ERR_NO_ERROR)
            break;
        message->headers[i] = (wb_header){ .name = name,
                                           .value = value ? value : "",
                                           .name_size = strlen(name),
                                           .value_size = value ? size : 0 };
        message->incoming.header_count = i + 1;
    }
}

static void find_id(wb_incoming *incoming)
{
    for (size_t i = 0; i < incoming->header_count; i++) {
        const wb_header *header = &incoming->headers[i];
        if (wb_kafka_header_is_id(header->name, header->name_size) && header->value_size) {
            incoming->id = header->value;
            incoming->id_size = header->value_size;
            return;
        }
    }
}

wb_kafka_message *wb_kafka_message_make(rd_kafka_message_t *raw)
{
    rd_kafka_headers_t *headers;
    size_t count = count_headers(raw, &headers);
    size_t fixed = sizeof(wb_kafka_message) + count * sizeof(wb_header);
    wb_kafka_message *message = malloc(fixed + raw->key_len + 1);
    if (!message)
        return NULL;
    memset(message, 0, sizeof *message);
    message->raw = raw;
    message->incoming = (wb_incoming){ .struct_size = sizeof message->incoming,
                                       .headers = message->headers,
                                       .body = raw->payload ? raw->payload : "",
                                       .body_size = raw->payload ? raw->len : 0 };
    read_headers(message, headers, count);
    find_id(&message->incoming);
    if (raw->key) {
        char *key = (char *)message + fixed;
        memcpy(key, raw->key, raw->key_len);
        key[raw->key_len] = '\0';
        message->incoming.key = key;
        message->incoming.key_size = raw->key_len;
    }
    return message;
}

void wb_kafka_message_free(wb_kafka_message *message)
{
    rd_kafka_message_destroy(message->raw);
    free(message);
}
