/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/sqlite/codec.h"

#include <stdlib.h>

#define U32_SIZE 4u
#define HEADER_SIZE_MIN (2 * (U32_SIZE + 1)) /* empty name, empty value */
#define ENCODED_SIZE_MAX ((size_t)1 << 30)

static size_t string_size(const char *text, size_t size)
{
    return size || !text ? size : strlen(text);
}

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

static int reserve(codec_buffer *buffer, size_t size)
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

int codec_encode(codec_buffer *buffer, const wb_header *headers, size_t count)
{
    size_t size = U32_SIZE;
    for (size_t i = 0; i < count; i++) {
        const wb_header *header = &headers[i];
        size_t name_size = string_size(header->name, header->name_size);
        size_t value_size = string_size(header->value, header->value_size);
        if (name_size > ENCODED_SIZE_MAX || value_size > ENCODED_SIZE_MAX)
            return -1;
        size += HEADER_SIZE_MIN + name_size + value_size;
        if (size > ENCODED_SIZE_MAX)
            return -1;
    }
    if (reserve(buffer, size) < 0)
        return -1;
    unsigned char *at = put_u32(buffer->data, count);
    for (size_t i = 0; i < count; i++) {
        const wb_header *header = &headers[i];
        at = put_string(at, header->name, string_size(header->name, header->name_size));
        at = put_string(at, header->value, string_size(header->value, header->value_size));
    }
    buffer->size = size;
    return 0;
}

void codec_free(codec_buffer *buffer)
{
    free(buffer->data);
    *buffer = (codec_buffer){ 0 };
}

static uint32_t get_u32(const unsigned char *at)
{
    uint32_t value = 0;
    for (unsigned i = 0; i < U32_SIZE; i++)
        value |= (uint32_t)at[i] << (8 * i);
    return value;
}

size_t codec_count(const void *blob, size_t size)
{
    if (!blob || size < U32_SIZE)
        return 0;
    size_t count = get_u32(blob);
    size_t most = (size - U32_SIZE) / HEADER_SIZE_MIN;
    return count < most ? count : most;
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

int codec_decode(const void *blob, size_t size, wb_header *headers, size_t count)
{
    if (!blob || size < U32_SIZE || get_u32(blob) != count)
        return -1;
    const unsigned char *at = (const unsigned char *)blob + U32_SIZE;
    const unsigned char *end = (const unsigned char *)blob + size;
    for (size_t i = 0; i < count; i++) {
        wb_header *header = &headers[i];
        if (take_string(&at, end, &header->name, &header->name_size) < 0 ||
            take_string(&at, end, &header->value, &header->value_size) < 0)
            return -1;
    }
    return at == end ? 0 : -1;
}
