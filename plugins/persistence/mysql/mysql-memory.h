/* SPDX-License-Identifier: Apache-2.0
 *
 * A growable run of bytes, and the literals we write into SQL text. A plugin may not end
 * the process, so it reports that memory is out instead.
 *
 * A value becomes hexadecimal digits or a decimal number: neither can end a literal,
 * whatever the server's sql_mode and the connection's character set.
 *
 * Names in this plugin begin with mys_, because mysql_ is the client library's.
 */
#ifndef MYSQL_MEMORY_H
#define MYSQL_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/** All zero is empty. */
typedef struct mys_buffer {
    char *data;
    size_t size;
    size_t capacity;
    int failed; /* memory was out; what was put since is missing */
} mys_buffer;

void mys_buffer_put(mys_buffer *buffer, const void *data, size_t size);
void mys_buffer_put_text(mys_buffer *buffer, const char *text);
void mys_buffer_put_number(mys_buffer *buffer, uint64_t number);
/** x'...': a string of bytes without character set. */
void mys_buffer_put_bytes(mys_buffer *buffer, const void *data, size_t size);
/** _utf8mb4 x'...': a string of characters. */
void mys_buffer_put_string(mys_buffer *buffer, const void *data, size_t size);
/** Empty it, but keep its memory, unless that is a lot. */
void mys_buffer_reset(mys_buffer *buffer);
void mys_buffer_free(mys_buffer *buffer);

#endif
