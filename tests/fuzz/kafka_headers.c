/* SPDX-License-Identifier: Apache-2.0
 *
 * Record headers of Kafka: what an operation becomes, and what is made of a record with such
 * headers, within limits and without. Records of the library's own cannot be made, so that what
 * it would be asked of one is answered here.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "plugins/transport/kafka/kafka-headers.h"
#include "plugins/transport/kafka/kafka-message.h"
#include "tests/fuzz/fuzz.h"

const char fuzz_name[] = "kafka_headers";

#define HEADERS_MAX 60

/* ---- in the library's place --------------------------------------------------------------- */

static rd_kafka_headers_t *of_record;

rd_kafka_resp_err_t rd_kafka_message_headers(const rd_kafka_message_t *record, rd_kafka_headers_t **ret_headers)
{
    (void)record;
    *ret_headers = of_record;
    return of_record ? RD_KAFKA_RESP_ERR_NO_ERROR : RD_KAFKA_RESP_ERR__NOENT;
}

rd_kafka_resp_err_t rd_kafka_message_detach_headers(rd_kafka_message_t *record, rd_kafka_headers_t **ret_headers)
{
    rd_kafka_resp_err_t result = rd_kafka_message_headers(record, ret_headers);
    of_record = NULL;
    return result;
}

void rd_kafka_message_destroy(rd_kafka_message_t *record)
{
    (void)record;
    if (of_record)
        rd_kafka_headers_destroy(of_record);
    of_record = NULL;
}

/* ---- received ----------------------------------------------------------------------------- */

static int is_id(const wb_header *header)
{
    return wb_kafka_header_is_id(header->name, header->name_size);
}

/* What an operation's header is as a record's: the id decides. */
static int is_same(const wb_operation *sent, const wb_header *header, const wb_header *came)
{
    const int stands_for_id = sent->id_size && is_id(header);
    return fuzz_is_same(header->name, header->name_size, came->name, came->name_size) &&
           (stands_for_id ? fuzz_is_same(sent->id, sent->id_size, came->value, came->value_size)
                          : fuzz_is_same(header->value, header->value_size, came->value, came->value_size));
}

/* In their order; a second header of the id's name is left out, and the id is added where none has it. */
static void check_headers(const wb_operation *sent, const wb_incoming *came)
{
    size_t at = 0, ids = 0;
    for (size_t i = 0; i < sent->header_count; i++) {
        if (sent->id_size && is_id(&sent->headers[i]) && ids++)
            continue;
        FUZZ_CHECK(at < came->header_count && is_same(sent, &sent->headers[i], &came->headers[at]));
        at++;
    }
    if (sent->id_size && !ids)
        FUZZ_CHECK(at < came->header_count && is_id(&came->headers[at++]));
    FUZZ_CHECK(at == came->header_count);
    FUZZ_CHECK(!sent->id_size || fuzz_is_same(sent->id, sent->id_size, came->id, came->id_size));
}

static void check_texts(const wb_incoming *came)
{
    for (size_t i = 0; i < came->header_count; i++) {
        const wb_header *header = &came->headers[i];
        FUZZ_CHECK(header->name[header->name_size] == '\0' && header->value[header->value_size] == '\0');
    }
    FUZZ_CHECK(!came->id || came->id[came->id_size] == '\0');
    FUZZ_CHECK(!came->key || came->key[came->key_size] == '\0');
}

static size_t size_of(const wb_incoming *came)
{
    size_t size = 0;
    for (size_t i = 0; i < came->header_count; i++)
        size += came->headers[i].name_size + came->headers[i].value_size;
    return size;
}

static void check_limits(const wb_endpoint_info *info, const wb_incoming *came)
{
    FUZZ_CHECK(!info->headers_max || came->header_count <= info->headers_max);
    FUZZ_CHECK(!info->headers_size_max || size_of(came) <= (uint64_t)info->headers_size_max);
}

static void try_record(const wb_operation *sent, const wb_endpoint_info *info)
{
    rd_kafka_message_t record = { .payload = (void *)(uintptr_t)sent->body, .len = sent->body_size,
                                  .key = (void *)(uintptr_t)sent->key, .key_len = sent->key_size };
    const char *reason = NULL;
    int cause = 0;
    of_record = wb_kafka_headers_make(sent, &reason, &cause);
    if (!of_record) {
        FUZZ_CHECK(reason != NULL);
        return;
    }
    wb_kafka_message *message = wb_kafka_message_make(info, &record);
    FUZZ_CHECK(message != NULL);
    check_texts(&message->incoming);
    check_limits(info, &message->incoming);
    if (!message->incoming.problem)
        check_headers(sent, &message->incoming);
    FUZZ_CHECK(fuzz_is_same(message->incoming.body, message->incoming.body_size, sent->body, sent->body_size));
    FUZZ_CHECK(info->headers_max || info->headers_size_max || !message->incoming.problem);
    wb_kafka_message_free(message);
}

void fuzz_one(const void *data, size_t size)
{
    fuzz_input input = fuzz_begin(data, size);
    wb_header *headers = fuzz_alloc(HEADERS_MAX * sizeof *headers);
    wb_operation sent = { .struct_size = sizeof sent, .headers = headers };
    const wb_endpoint_info without = { .struct_size = sizeof without };
    wb_endpoint_info within = { .struct_size = sizeof within, .body_max = 20 };
    within.headers_max = fuzz_byte(&input);
    within.headers_size_max = 16 * (int64_t)fuzz_byte(&input);
    sent.id = fuzz_text(&input, &sent.id_size);
    sent.key = fuzz_text(&input, &sent.key_size);
    sent.header_count = fuzz_headers(&input, headers, HEADERS_MAX);
    sent.body = fuzz_rest(&input, &sent.body_size);
    try_record(&sent, &without);
    try_record(&sent, &within);
}
