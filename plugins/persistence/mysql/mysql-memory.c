/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/mysql/mysql-memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int reserve(mys_buffer *buffer, size_t more)
{
    size_t capacity = buffer->capacity ? buffer->capacity : 1024;
    if (buffer->capacity - buffer->size >= more)
        return 0;
    if (more > SIZE_MAX / 4) {
        buffer->failed = 1;
        return -1;
    }
    while (capacity - buffer->size < more)
        capacity *= 2;
    char *data = realloc(buffer->data, capacity);
    if (!data) {
        buffer->failed = 1;
        return -1;
    }
    buffer->data = data;
    buffer->capacity = capacity;
    return 0;
}

void mys_buffer_put(mys_buffer *buffer, const void *data, size_t size)
{
    if (!size || reserve(buffer, size) != 0)
        return;
    memcpy(buffer->data + buffer->size, data, size);
    buffer->size += size;
}

void mys_buffer_put_text(mys_buffer *buffer, const char *text)
{
    mys_buffer_put(buffer, text, strlen(text));
}

void mys_buffer_put_number(mys_buffer *buffer, uint64_t number)
{
    char text[24];
    int size = snprintf(text, sizeof text, "%" PRIu64, number);
    mys_buffer_put(buffer, text, (size_t)size);
}

static void put_hex(mys_buffer *buffer, const unsigned char *data, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    if (size > SIZE_MAX / 8 || reserve(buffer, 2 * size) != 0) {
        buffer->failed = 1;
        return;
    }
    char *to = buffer->data + buffer->size;
    for (size_t i = 0; i < size; i++) {
        *to++ = digits[data[i] >> 4];
        *to++ = digits[data[i] & 15];
    }
    buffer->size += 2 * size;
}

void mys_buffer_put_bytes(mys_buffer *buffer, const void *data, size_t size)
{
    mys_buffer_put(buffer, "x'", 2);
    put_hex(buffer, data, size);
    mys_buffer_put(buffer, "'", 1);
}

void mys_buffer_put_string(mys_buffer *buffer, const void *data, size_t size)
{
    mys_buffer_put_text(buffer, "_utf8mb4 ");
    mys_buffer_put_bytes(buffer, data, size);
}

void mys_buffer_reset(mys_buffer *buffer)
{
    buffer->size = 0;
    buffer->failed = 0;
}

void mys_buffer_free(mys_buffer *buffer)
{
    free(buffer->data);
    memset(buffer, 0, sizeof *buffer);
}
