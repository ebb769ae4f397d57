/* SPDX-License-Identifier: Apache-2.0
 *
 * Headers as one blob: a u32 count, then for each header its name and its value, each
 * as a u32 size, the bytes, and a NUL byte, so that a reader points into the blob.
 * Integers are little-endian. Any byte is allowed in names and values.
 */
#ifndef WB_SQLITE_CODEC_H
#define WB_SQLITE_CODEC_H

#include <stddef.h>
#include <stdint.h>
#include <waybill/message.h>

/** A growable run of bytes, kept for reuse. All zero is empty. */
typedef struct codec_buffer {
    unsigned char *data;
    size_t size;
    size_t capacity;
} codec_buffer;

/** Encode into `buffer`, replacing what it held. A size of 0 means "up to the NUL
 *  byte". @return 0, or -1 when memory is out or the headers exceed 1 GiB. */
int codec_encode(codec_buffer *buffer, const wb_header *headers, size_t count);
void codec_free(codec_buffer *buffer);

/** How many headers a blob claims to hold, never more than can fit in it. */
size_t codec_count(const void *blob, size_t size);
/** Fill `headers` (codec_count() of them) with pointers into the blob.
 *  @return 0, or -1 when the blob is damaged. */
int codec_decode(const void *blob, size_t size, wb_header *headers, size_t count);

#endif
