/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/base/buffer.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"

static void reserve(wb_buffer *buffer, size_t more)
{
    if (buffer->capacity - buffer->size >= more)
        return;
    size_t capacity = buffer->capacity ? buffer->capacity : 1024;
    while (capacity - buffer->size < more)
        capacity *= 2;
    buffer->data = wb_realloc(buffer->data, capacity);
    buffer->capacity = capacity;
}

void wb_buffer_put(wb_buffer *buffer, const void *data, size_t size)
{
    if (!size)
        return;
    reserve(buffer, size);
    memcpy(buffer->data + buffer->size, data, size);
    buffer->size += size;
}

void wb_buffer_put_u32(wb_buffer *buffer, uint32_t value)
{
    unsigned char bytes[4] = { (unsigned char)value, (unsigned char)(value >> 8),
                               (unsigned char)(value >> 16), (unsigned char)(value >> 24) };
    wb_buffer_put(buffer, bytes, sizeof bytes);
}

void wb_buffer_put_u64(wb_buffer *buffer, uint64_t value)
{
    wb_buffer_put_u32(buffer, (uint32_t)value);
    wb_buffer_put_u32(buffer, (uint32_t)(value >> 32));
}

void wb_buffer_put_string(wb_buffer *buffer, const void *data, size_t size)
{
    reserve(buffer, size + 5); /* once: every header of every message comes through here */
    wb_buffer_put_u32(buffer, (uint32_t)size);
    if (size)
        memcpy(buffer->data + buffer->size, data, size);
    buffer->size += size;
    buffer->data[buffer->size++] = '\0';
}

void wb_buffer_free(wb_buffer *buffer)
{
    free(buffer->data);
    memset(buffer, 0, sizeof *buffer);
}

uint32_t wb_reader_u32(wb_reader *reader)
{
    const unsigned char *b = reader->at;
    if (reader->failed || reader->end - reader->at < 4) {
        reader->failed = 1;
        return 0;
    }
    reader->at += 4;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

uint64_t wb_reader_u64(wb_reader *reader)
{
    uint64_t low = wb_reader_u32(reader), high = wb_reader_u32(reader);
    return reader->failed ? 0 : low | high << 32;
}

const char *wb_reader_string(wb_reader *reader, size_t *ret_size)
{
    size_t size = wb_reader_u32(reader);
    const unsigned char *start = reader->at;
    if (reader->failed || (size_t)(reader->end - start) < size + 1 || start[size] != '\0') {
        reader->failed = 1;
        *ret_size = 0;
        return "";
    }
    reader->at += size + 1;
    *ret_size = size;
    return (const char *)start;
}
