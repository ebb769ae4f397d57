/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/message/failed_id.h"

#include "core/base/sha256.h"
#include "core/message/header_names.h"
#include "core/message/incoming.h"

#define FIND(headers, count, name) wb_headers_find((headers), (count), (name), sizeof(name) - 1)

/* With its size in front, so that no two lists of texts are the same bytes. */
static void add(wb_sha256 *hash, const void *text, size_t size)
{
    const uint64_t number = size;
    unsigned char bytes[8];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(number >> 8 * i);
    wb_sha256_update(hash, bytes, sizeof bytes);
    wb_sha256_update(hash, size ? text : "", size);
}

static void add_value(wb_sha256 *hash, const wb_header *header)
{
    add(hash, header ? header->value : "", header ? header->value_size : 0);
}

static void end(wb_sha256 *hash, char id[WB_GENERATED_ID_SIZE])
{
    unsigned char digest[WB_SHA256_SIZE];
    wb_sha256_final(hash, digest);
    wb_id_of_hash(digest, id);
}

/* Whose queue it is says who could not handle it, where nobody else does. */
static const wb_header *find_endpoint(const wb_header *headers, size_t count)
{
    const wb_header *endpoint = FIND(headers, count, WB_HEADER_PROCESSING_ENDPOINT);
    return endpoint ? endpoint : FIND(headers, count, WB_HEADER_FAILED_QUEUE);
}

void wb_failed_key(const wb_header *headers, size_t count, const void *id, size_t id_size, char key[WB_GENERATED_ID_SIZE])
{
    wb_sha256 hash;
    wb_sha256_init(&hash);
    add(&hash, "key", 3);
    add(&hash, id, id_size);
    add_value(&hash, find_endpoint(headers, count));
    end(&hash, key);
}

void wb_failed_claim(const wb_header *headers, size_t count, const void *id, size_t id_size, char claim[WB_GENERATED_ID_SIZE])
{
    const wb_header *answered = wb_failed_answer(headers, count) ? FIND(headers, count, WB_HEADER_RETRY_SUCCESSFUL) : NULL;
    const wb_header *time = answered ? answered : FIND(headers, count, WB_HEADER_TIME_OF_FAILURE);
    wb_sha256 hash;
    if (!time) {
        wb_id_generate(claim);
        return;
    }
    wb_sha256_init(&hash);
    add(&hash, "claim", 5);
    add(&hash, id, id_size);
    add_value(&hash, FIND(headers, count, WB_HEADER_FAILED_QUEUE));
    add_value(&hash, find_endpoint(headers, count));
    add_value(&hash, time);
    end(&hash, claim);
}

const wb_header *wb_failed_answer(const wb_header *headers, size_t count)
{
    return FIND(headers, count, WB_HEADER_RETRY_SUCCESSFUL) && !FIND(headers, count, WB_HEADER_FAILED_QUEUE)
               ? FIND(headers, count, WB_HEADER_RETRY_UNIQUE_ID)
               : NULL;
}
