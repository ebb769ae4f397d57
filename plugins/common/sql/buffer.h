/* SPDX-License-Identifier: Apache-2.0
 *
 * A growable run of bytes. A plugin may not end the process, so it reports that memory is out
 * instead.
 */
#ifndef WB_COMMON_SQL_BUFFER_H
#define WB_COMMON_SQL_BUFFER_H

#include <stddef.h>
#include <stdint.h>

/** All zero is empty. */
typedef struct wb_sql_buffer {
    char *data;
    size_t size;
    size_t capacity;
    int failed; /* memory was out; what was put since is missing */
} wb_sql_buffer;

/** Make room for so many bytes behind what is there. @return 0, or -1: no memory. */
int wb_sql_buffer_reserve(wb_sql_buffer *buffer, size_t more);
void wb_sql_buffer_put(wb_sql_buffer *buffer, const void *data, size_t size);
void wb_sql_buffer_put_text(wb_sql_buffer *buffer, const char *text);
/** In decimal digits. */
void wb_sql_buffer_put_number(wb_sql_buffer *buffer, uint64_t number);
/** Empty it, but keep its memory, unless that is a lot. */
void wb_sql_buffer_reset(wb_sql_buffer *buffer);
void wb_sql_buffer_free(wb_sql_buffer *buffer);

#endif
