/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/kafka/kafka-headers.h"

#include <string.h>

#define MESSAGE_ID "NServiceBus.MessageId"
/* librdkafka does not read a message with more. */
#define HEADERS_MAX 100000

int wb_kafka_header_is_id(const char *name, size_t size)
{
    return size == sizeof MESSAGE_ID - 1 && memcmp(name, MESSAGE_ID, size) == 0;
}

static int add(rd_kafka_headers_t *headers, const char *name, size_t name_size, const char *value,
               size_t value_size)
{
    return rd_kafka_header_add(headers, name ? name : "", (ssize_t)name_size, value ? value : "",
                               (ssize_t)value_size) == RD_KAFKA_RESP_ERR_NO_ERROR;
}

/* The id decides, whatever a header of its name says. */
static int add_all(rd_kafka_headers_t *headers, const wb_operation *operation)
{
    int has_id = operation->id_size == 0;
    int ok = 1;
    for (size_t i = 0; i < operation->header_count && ok; i++) {
        const wb_header *header = &operation->headers[i];
        if (operation->id_size && wb_kafka_header_is_id(header->name, header->name_size)) {
            if (!has_id)
                ok = add(headers, header->name, header->name_size, operation->id, operation->id_size);
            has_id = 1;
        } else {
            ok = add(headers, header->name, header->name_size, header->value, header->value_size);
        }
    }
    if (ok && !has_id)
        ok = add(headers, MESSAGE_ID, sizeof MESSAGE_ID - 1, operation->id, operation->id_size);
    return ok;
}

static const char *find_fault(const wb_operation *operation, int *ret_cause)
{
    *ret_cause = WB_CAUSE_TOO_LARGE;
    if (operation->header_count >= HEADERS_MAX)
        return "the message has more headers than can be read from Kafka: 99999";
    *ret_cause = WB_CAUSE_OTHER;
    for (size_t i = 0; i < operation->header_count; i++) {
        const wb_header *header = &operation->headers[i];
        if (header->name_size && memchr(header->name, '\0', header->name_size))
            return "the name of a header holds a NUL byte";
    }
    return NULL;
}

rd_kafka_headers_t *wb_kafka_headers_make(const wb_operation *operation, const char **ret_reason,
                                          int *ret_cause)
{
    *ret_reason = find_fault(operation, ret_cause);
    if (*ret_reason)
        return NULL;
    rd_kafka_headers_t *headers = rd_kafka_headers_new(operation->header_count + 1);
    if (headers && !add_all(headers, operation)) {
        rd_kafka_headers_destroy(headers);
        headers = NULL;
    }
    return headers;
}
