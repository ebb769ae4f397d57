/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/recover/attempts.h"

#include <string.h>

#include "core/base/sha256.h"

static const char format_1[4] = { 'W', 'B', 'A', '1' };

/* 40 bits: batch numbers of the first four minutes of 2020. */
#define NUMBER_BYTES 5

uint64_t wb_attempts_number(const void *id, size_t id_size)
{
    unsigned char digest[WB_SHA256_SIZE];
    uint64_t number = 0;
    wb_sha256 hash;
    wb_sha256_init(&hash);
    wb_sha256_update(&hash, id, id_size);
    wb_sha256_final(&hash, digest);
    for (size_t i = 0; i < NUMBER_BYTES; i++)
        number = number << 8 | digest[i];
    return number | 1; /* 0 is no number */
}

void wb_attempts_encode(wb_buffer *buffer, const void *id, size_t id_size, uint32_t attempts, uint64_t now)
{
    buffer->size = 0;
    wb_buffer_put(buffer, format_1, sizeof format_1);
    wb_buffer_put_u32(buffer, (uint32_t)(now >> 32));
    wb_buffer_put_u32(buffer, (uint32_t)now);
    wb_buffer_put_u32(buffer, attempts);
    wb_buffer_put_string(buffer, id, id_size);
}

/* @return 0 when the bytes are no record. */
static int start_reading(wb_reader *reader, const void *data, size_t size, uint64_t *ret_written)
{
    *reader = (wb_reader){ data, (const unsigned char *)data + size, 0 };
    if (size < sizeof format_1 || memcmp(data, format_1, sizeof format_1) != 0)
        return 0;
    reader->at += sizeof format_1;
    *ret_written = (uint64_t)wb_reader_u32(reader) << 32;
    *ret_written |= wb_reader_u32(reader);
    return !reader->failed;
}

int wb_attempts_is_older(const void *data, size_t size, uint64_t before)
{
    wb_reader reader;
    uint64_t written;
    return start_reading(&reader, data, size, &written) && written < before;
}

int wb_attempts_is_record(const void *data, size_t size)
{
    wb_reader reader;
    uint64_t written;
    return start_reading(&reader, data, size, &written);
}

int64_t wb_attempts_decode(const void *data, size_t size, const void *id, size_t id_size)
{
    wb_reader reader;
    uint64_t written;
    size_t found_size;
    if (!start_reading(&reader, data, size, &written))
        return -1;
    uint32_t attempts = wb_reader_u32(&reader);
    const char *found = wb_reader_string(&reader, &found_size);
    if (reader.failed || found_size != id_size || memcmp(found, id, id_size) != 0)
        return -1;
    return attempts;
}

/* The broker's limit, if it has one. All of ours together are less: the deliveries that
 * make a suspect, and the attempts that are written down. */
static uint32_t limit_of(const wb_recoverability *policy)
{
    return policy->delivery_limit ? policy->delivery_limit : UINT32_MAX;
}

uint32_t wb_attempts_suspect_from(const wb_recoverability *policy)
{
    uint32_t half = limit_of(policy) / 2;
    if (half >= WB_SUSPECT_DELIVERIES)
        return WB_SUSPECT_DELIVERIES;
    return half ? half : 1;
}

int wb_attempts_deliveries_are_exhausted(const wb_recoverability *policy, uint32_t deliveries)
{
    uint32_t most = limit_of(policy) - 1;
    return deliveries >= (most < WB_DELIVERIES_MAX ? most : WB_DELIVERIES_MAX);
}

int wb_attempts_is_last_delivery(const wb_recoverability *policy, uint32_t deliveries, uint32_t spare)
{
    return policy->delivery_limit && (uint64_t)deliveries + spare >= policy->delivery_limit;
}

int wb_attempts_are_exhausted(const wb_recoverability *policy, uint32_t attempts)
{
    uint32_t before = wb_attempts_suspect_from(policy), room = limit_of(policy) - before;
    uint32_t all = policy->immediate_retries + 1;
    uint32_t left = all > before ? all - before : 0;
    if (left < WB_NOTED_ATTEMPTS_MIN)
        left = WB_NOTED_ATTEMPTS_MIN;
    return attempts >= (left < room ? left : room);
}
