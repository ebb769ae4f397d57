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
typedef struct wb_sqlite_codec_buffer {
    unsigned char *data;
    size_t size;
    size_t capacity;
} wb_sqlite_codec_buffer;

/** Encode into `buffer`, replacing what it held. @return 0, WB_SQLITE_CODEC_TOO_LARGE over 1 GiB, or WB_SQLITE_CODEC_NO_MEMORY. */
int wb_sqlite_codec_encode(wb_sqlite_codec_buffer *buffer, const wb_header *headers, size_t count);
void wb_sqlite_codec_free(wb_sqlite_codec_buffer *buffer);

#define WB_SQLITE_CODEC_TOO_LARGE (-1)
#define WB_SQLITE_CODEC_NO_MEMORY (-2)

/** Most headers, and most bytes of names and values together. 0: no limit. */
typedef struct wb_sqlite_codec_limits {
    size_t count;
    size_t bytes;
} wb_sqlite_codec_limits;

/** How many bytes of a blob hold all that is within the limits; SIZE_MAX without limits. */
size_t wb_sqlite_codec_bytes_within(const wb_sqlite_codec_limits *limits);

/** What the start of a blob says of the whole of it. */
typedef struct wb_sqlite_codec_summary {
    size_t count; /* of headers */
    size_t bytes; /* of names and values */
    size_t kept;  /* most headers that wb_sqlite_codec_decode() returns */
    int is_over;  /* the limits */
    int is_damaged;
} wb_sqlite_codec_summary;

/** `size` bytes of a blob of `total` are at hand. */
wb_sqlite_codec_summary wb_sqlite_codec_summarize(const void *blob, size_t size, size_t total,
                                                  const wb_sqlite_codec_limits *limits);

/** Fill `headers` (summary.kept of them) with pointers into the blob: all, or the first that
 *  are within the limits. @return 0, or -1 when the blob is damaged. */
int wb_sqlite_codec_decode(const void *blob, size_t size, const wb_sqlite_codec_summary *summary,
                           const wb_sqlite_codec_limits *limits, wb_header *headers,
                           size_t *ret_count);

#endif
