/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/recover/parked.h"

#include <string.h>

#include "core/base/clock.h"

#define PAUSE_LONGEST (3600 * WB_SECOND)

static const char format_1[4] = { 'W', 'B', 'K', '1' };

void wb_parked_encode(wb_buffer *buffer, const wb_parked *parked)
{
    buffer->size = 0;
    wb_buffer_put(buffer, format_1, sizeof format_1);
    wb_buffer_put_u32(buffer, parked->tries);
    wb_buffer_put_string(buffer, parked->reason, strlen(parked->reason));
    wb_buffer_put_string(buffer, parked->operations, parked->operations_size);
}

int wb_parked_is_row(const void *data, size_t size)
{
    return size >= sizeof format_1 && memcmp(data, format_1, sizeof format_1) == 0;
}

/* Up to the operations. @return whether all of that is there. */
static int read_head(wb_reader *reader, wb_parked *ret_parked)
{
    size_t ignored;
    reader->at += sizeof format_1;
    ret_parked->tries = wb_reader_u32(reader);
    if (reader->failed)
        ret_parked->tries = 0;
    ret_parked->reason = wb_reader_string(reader, &ignored);
    if (reader->failed)
        ret_parked->reason = NULL;
    return !reader->failed;
}

int wb_parked_decode_head(const void *data, size_t size, wb_parked *ret_parked)
{
    wb_reader reader = { data, (const unsigned char *)data + size, 0 };
    *ret_parked = (wb_parked){ .tries = 0 };
    return wb_parked_is_row(data, size) && read_head(&reader, ret_parked);
}

int wb_parked_decode(const void *data, size_t size, wb_parked *ret_parked)
{
    wb_reader reader = { data, (const unsigned char *)data + size, 0 };
    if (!wb_parked_is_row(data, size) || !read_head(&reader, ret_parked))
        return 0;
    ret_parked->operations = wb_reader_string(&reader, &ret_parked->operations_size);
    return !reader.failed;
}

int64_t wb_parked_pause(int64_t first, uint32_t tries)
{
    return wb_clock_backoff(first, tries > 1 ? tries - 1 : 0, PAUSE_LONGEST);
}
