/* SPDX-License-Identifier: Apache-2.0
 *
 * A growable run of bytes, and a reader that cannot read past its end. Integers are
 * little-endian.
 */
#ifndef WB_BASE_BUFFER_H
#define WB_BASE_BUFFER_H

#include <stddef.h>
#include <stdint.h>

typedef struct wb_buffer {
    unsigned char *data;
    size_t size;
    size_t capacity;
} wb_buffer; /* all zero is empty */

void wb_buffer_put(wb_buffer *buffer, const void *data, size_t size);
void wb_buffer_put_u32(wb_buffer *buffer, uint32_t value);
void wb_buffer_put_u64(wb_buffer *buffer, uint64_t value);
/** A u32 size, the bytes, and a NUL byte, so that a reader can point into it. */
void wb_buffer_put_string(wb_buffer *buffer, const void *data, size_t size);
void wb_buffer_free(wb_buffer *buffer);

typedef struct wb_reader {
    const unsigned char *at;
    const unsigned char *end;
    int failed; /* set once anything was missing; everything read is then zero */
} wb_reader;

uint32_t wb_reader_u32(wb_reader *reader);
uint64_t wb_reader_u64(wb_reader *reader);
/** The string inside the buffer, NUL-terminated; "" after a failure. */
const char *wb_reader_string(wb_reader *reader, size_t *ret_size);

#endif
