/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/sql/buffer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What an ordinary batch needs; a larger one's memory is given back. */
#define KEPT_MAX ((size_t)4 * 1024 * 1024)

int wb_sql_buffer_reserve(wb_sql_buffer *buffer, size_t more)
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

void wb_sql_buffer_put(wb_sql_buffer *buffer, const void *data, size_t size)
{
    if (!size || wb_sql_buffer_reserve(buffer, size) != 0)
        return;
    memcpy(buffer->data + buffer->size, data, size);
    buffer->size += size;
}

void wb_sql_buffer_put_text(wb_sql_buffer *buffer, const char *text)
{
    wb_sql_buffer_put(buffer, text, strlen(text));
}

void wb_sql_buffer_put_number(wb_sql_buffer *buffer, uint64_t number)
{
    char text[24];
    int size = snprintf(text, sizeof text, "%" PRIu64, number);
    wb_sql_buffer_put(buffer, text, (size_t)size);
}

void wb_sql_buffer_reset(wb_sql_buffer *buffer)
{
    if (buffer->capacity > KEPT_MAX)
        wb_sql_buffer_free(buffer);
    buffer->size = 0;
    buffer->failed = 0;
}

void wb_sql_buffer_free(wb_sql_buffer *buffer)
{
    free(buffer->data);
    memset(buffer, 0, sizeof *buffer);
}
