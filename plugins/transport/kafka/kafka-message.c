/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/kafka/kafka-message.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/transport/kafka/kafka-headers.h"

#define ID_MAX 255
#define PROBLEM_SIZE 200

/* What a message consists of, and how much of it is handed on. */
typedef struct contents {
    const wb_endpoint_info *endpoint;
    const rd_kafka_message_t *raw;
    rd_kafka_headers_t *headers; /* NULL: none */
    rd_kafka_resp_err_t unreadable;
    size_t count, size; /* of all headers; names and values together */
    size_t kept, kept_size; /* of the first that fit */
    wb_header id; /* only its value */
    size_t key_kept;
} contents;

/* ---- measuring ------------------------------------------------------------------- */

/* librdkafka keeps a NUL byte behind each name and each value. */
static int read_header(const rd_kafka_headers_t *headers, size_t at, wb_header *ret_header)
{
    const char *name;
    const void *value;
    size_t size;
    if (rd_kafka_header_get_all(headers, at, &name, &value, &size) != RD_KAFKA_RESP_ERR_NO_ERROR)
        return 0;
    *ret_header = (wb_header){ .name = name,
                               .value = value ? value : "",
                               .name_size = strlen(name),
                               .value_size = value ? size : 0 };
    return 1;
}

static int fits(const contents *c, size_t size)
{
    const wb_endpoint_info *endpoint = c->endpoint;
    if (endpoint->headers_max && c->kept >= endpoint->headers_max)
        return 0;
    return endpoint->headers_size_max <= 0 ||
           c->kept_size + size <= (uint64_t)endpoint->headers_size_max;
}

static void measure_header(contents *c, const wb_header *header)
{
    size_t size = header->name_size + header->value_size;
    if (c->kept == c->count && fits(c, size)) {
        c->kept++;
        c->kept_size += size;
    }
    c->count++;
    c->size += size;
    /* The id is found wherever it stands: without it the message would not be known again. */
    if (!c->id.value && header->value_size &&
        wb_kafka_header_is_id(header->name, header->name_size))
        c->id = *header;
}

static void measure(contents *c)
{
    wb_header header;
    rd_kafka_resp_err_t code = rd_kafka_message_headers(c->raw, &c->headers);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        c->headers = NULL;
        c->unreadable = code == RD_KAFKA_RESP_ERR__NOENT ? RD_KAFKA_RESP_ERR_NO_ERROR : code;
    }
    for (size_t i = 0; c->headers && read_header(c->headers, i, &header); i++)
        measure_header(c, &header);
    c->key_kept = c->raw->key ? c->raw->key_len : 0;
    if (c->endpoint->headers_size_max > 0 && c->key_kept > (uint64_t)c->endpoint->headers_size_max)
        c->key_kept = 0;
}

static int is_large(const contents *c)
{
    const wb_endpoint_info *endpoint = c->endpoint;
    if (endpoint->body_max > 0 && c->raw->len > (uint64_t)endpoint->body_max)
        return 1;
    return endpoint->headers_size_max > 0 &&
           c->size + c->raw->key_len > (uint64_t)endpoint->headers_size_max;
}

/* Why not all of it is handed on; empty when it is. */
static void describe(const contents *c, char text[PROBLEM_SIZE])
{
    text[0] = '\0';
    if (c->unreadable)
        (void)snprintf(text, PROBLEM_SIZE, "its headers cannot be read, or are too many: %s",
                       rd_kafka_err2str(c->unreadable));
    else if (c->kept < c->count && c->endpoint->headers_max && c->count > c->endpoint->headers_max)
        (void)snprintf(text, PROBLEM_SIZE, "the message has %zu headers, more than %" PRIu32,
                       c->count, c->endpoint->headers_max);
    else if (c->kept < c->count)
        (void)snprintf(text, PROBLEM_SIZE,
                       "the %zu headers of the message hold %zu bytes, more than %" PRId64,
                       c->count, c->size, c->endpoint->headers_size_max);
    else if (c->raw->key && c->key_kept < c->raw->key_len)
        (void)snprintf(text, PROBLEM_SIZE, "the key of the message has %zu bytes, more than %" PRId64,
                       c->raw->key_len, c->endpoint->headers_size_max);
}

/* ---- making ---------------------------------------------------------------------- */

/* Behind the headers of a message there is room for all that is copied, each with a NUL byte. */
static const char *copy(char **at, const void *from, size_t size)
{
    char *to = *at;
    if (size)
        memcpy(to, from, size);
    to[size] = '\0';
    *at += size + 1;
    return to;
}

static void keep_headers(wb_kafka_message *message, const contents *c, char **at)
{
    int copies = c->kept < c->count;
    for (size_t i = 0; i < c->kept; i++) {
        wb_header *header = &message->headers[i];
        (void)read_header(c->headers, i, header);
        if (!copies)
            continue;
        header->name = copy(at, header->name, header->name_size);
        header->value = copy(at, header->value, header->value_size);
    }
    message->incoming.headers = message->headers;
    message->incoming.header_count = c->kept;
    if (c->id.value && (!copies || c->id.value_size <= ID_MAX)) {
        message->incoming.id =
            copies ? copy(at, c->id.value, c->id.value_size) : c->id.value;
        message->incoming.id_size = c->id.value_size;
    }
}

/* Also makes librdkafka free its headers, when none of them is pointed to any more. */
static void drop_headers(const contents *c, rd_kafka_message_t *raw)
{
    rd_kafka_headers_t *headers;
    if (c->kept < c->count && rd_kafka_message_detach_headers(raw, &headers) == 0)
        rd_kafka_headers_destroy(headers);
}

static size_t room_for(const contents *c, size_t problem_size)
{
    size_t size = sizeof(wb_kafka_message) + c->kept * sizeof(wb_header) + c->key_kept + 1;
    if (c->kept < c->count)
        size += c->kept_size + 2 * c->kept + ID_MAX + 1;
    return size + problem_size + 1;
}

static wb_kafka_message *build(const contents *c, const char *problem)
{
    wb_kafka_message *message = malloc(room_for(c, strlen(problem)));
    if (!message)
        return NULL;
    char *at = (char *)&message->headers[c->kept];
    memset(message, 0, sizeof *message);
    message->is_large = is_large(c);
    message->incoming = (wb_incoming){ .struct_size = sizeof message->incoming,
                                       .body = c->raw->payload ? c->raw->payload : "",
                                       .body_size = c->raw->payload ? c->raw->len : 0 };
    keep_headers(message, c, &at);
    if (c->raw->key && c->key_kept == c->raw->key_len) {
        message->incoming.key_size = c->key_kept;
        message->incoming.key = copy(&at, c->raw->key, c->key_kept);
    }
    if (*problem)
        message->incoming.problem = copy(&at, problem, strlen(problem));
    return message;
}

wb_kafka_message *wb_kafka_message_make(const wb_endpoint_info *endpoint, rd_kafka_message_t *raw)
{
    wb_endpoint_info limits;
    contents c = { .endpoint = &limits, .raw = raw };
    char problem[PROBLEM_SIZE];
    WB_COPY(&limits, endpoint); /* an older host knows of no limits */
    measure(&c);
    describe(&c, problem);
    wb_kafka_message *message = build(&c, problem);
    if (!message)
        return NULL;
    drop_headers(&c, raw);
    message->raw = raw;
    return message;
}

void wb_kafka_message_free(wb_kafka_message *message)
{
    rd_kafka_message_destroy(message->raw);
    free(message);
}
