/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/sqlite/codec.h"

#include <stdlib.h>
#include <string.h>

#define U32_SIZE 4u
#define HEADER_SIZE_MIN (2 * (U32_SIZE + 1)) /* empty name, empty value */
#define ENCODED_SIZE_MAX ((size_t)1 << 30)

static unsigned char *put_u32(unsigned char *at, size_t value)
{
    for (unsigned i = 0; i < U32_SIZE; i++)
        at[i] = (unsigned char)(value >> (8 * i));
    return at + U32_SIZE;
}

static unsigned char *put_string(unsigned char *at, const char *text, size_t size)
{
    at = put_u32(at, size);
    if (size)
        memcpy(at, text, size);
    at[size] = '\0';
    return at + size + 1;
}

static int reserve(wb_sqlite_codec_buffer *buffer, size_t size)
{
    if (size <= buffer->capacity)
        return 0;
    unsigned char *data = realloc(buffer->data, size);
    if (!data)
        return -1;
    buffer->data = data;
    buffer->capacity = size;
    return 0;
}

int wb_sqlite_codec_encode(wb_sqlite_codec_buffer *buffer, const wb_header *headers, size_t count)
{
    size_t size = U32_SIZE;
    for (size_t i = 0; i < count; i++) {
        const wb_header *header = &headers[i];
        if (header->name_size > ENCODED_SIZE_MAX || header->value_size > ENCODED_SIZE_MAX)
            return WB_SQLITE_CODEC_TOO_LARGE;
        size += HEADER_SIZE_MIN + header->name_size + header->value_size;
        if (size > ENCODED_SIZE_MAX)
            return WB_SQLITE_CODEC_TOO_LARGE;
    }
    if (reserve(buffer, size) < 0)
        return WB_SQLITE_CODEC_NO_MEMORY;
    unsigned char *at = put_u32(buffer->data, count);
    for (size_t i = 0; i < count; i++) {
        const wb_header *header = &headers[i];
        at = put_string(at, header->name, header->name_size);
        at = put_string(at, header->value, header->value_size);
    }
    buffer->size = size;
    return 0;
}

void wb_sqlite_codec_free(wb_sqlite_codec_buffer *buffer)
{
    free(buffer->data);
    *buffer = (wb_sqlite_codec_buffer){ 0 };
}

static uint32_t get_u32(const unsigned char *at)
{
    uint32_t value = 0;
    for (unsigned i = 0; i < U32_SIZE; i++)
        value |= (uint32_t)at[i] << (8 * i);
    return value;
}

size_t wb_sqlite_codec_bytes_within(const wb_sqlite_codec_limits *limits)
{
    if (limits->count == 0 || limits->bytes == 0)
        return SIZE_MAX;
    return U32_SIZE + limits->count * HEADER_SIZE_MIN + limits->bytes;
}

wb_sqlite_codec_summary wb_sqlite_codec_summarize(const void *blob, size_t size, size_t total,
                                                  const wb_sqlite_codec_limits *limits)
{
    wb_sqlite_codec_summary summary = { .is_damaged = 1 };
    if (!blob || size < U32_SIZE)
        return summary;
    size_t count = get_u32(blob);
    if (count > (total - U32_SIZE) / HEADER_SIZE_MIN)
        return summary;
    summary.count = count;
    summary.bytes = total - U32_SIZE - count * HEADER_SIZE_MIN;
    summary.kept = limits->count && count > limits->count ? limits->count : count;
    summary.is_over = summary.kept < count || (limits->bytes && summary.bytes > limits->bytes);
    summary.is_damaged = 0;
    return summary;
}

/* Take one string at *at; @return 0, or -1 when it runs past the end. */
static int take_string(const unsigned char **at, const unsigned char *end, const char **ret_text,
                       size_t *ret_size)
{
    if ((size_t)(end - *at) < U32_SIZE + 1)
        return -1;
    size_t size = get_u32(*at);
    const unsigned char *text = *at + U32_SIZE;
    if (size > (size_t)(end - text) - 1 || text[size] != '\0')
        return -1;
    *ret_text = (const char *)text;
    *ret_size = size;
    *at = text + size + 1;
    return 0;
}

int wb_sqlite_codec_decode(const void *blob, size_t size, const wb_sqlite_codec_summary *summary,
                           const wb_sqlite_codec_limits *limits, wb_header *headers,
                           size_t *ret_count)
{
    const unsigned char *at = (const unsigned char *)blob + U32_SIZE;
    const unsigned char *end = (const unsigned char *)blob + size;
    size_t bytes = 0;
    size_t count = 0;
    while (count < summary->kept) {
        wb_header *header = &headers[count];
        if (take_string(&at, end, &header->name, &header->name_size) < 0 ||
            take_string(&at, end, &header->value, &header->value_size) < 0)
            break;
        bytes += header->name_size + header->value_size;
        if (limits->bytes && bytes > limits->bytes)
            break;
        count++;
    }
    *ret_count = count;
    return summary->is_over || (count == summary->count && at == end) ? 0 : -1;
}
