/* SPDX-License-Identifier: Apache-2.0
 *
 * A large body in fewer bytes: a stream of zlib's (RFC 1950), whose checksum tells when it was damaged. Any thread.
 */
#ifndef WB_FAILURES_PACK_H
#define WB_FAILURES_PACK_H

#include <stddef.h>

/** What a body becomes; `size` is 1 or more, and less than 4 GiB.
 *  @return memory of `*ret_size` bytes to free(); NULL: it would not be an eighth smaller, and is kept as it is. */
void *wb_failed_pack(const void *body, size_t size, size_t *ret_size);

/** Whether so many bytes can be so many packed ones at all: no stream grows more when it is inflated. */
int wb_failed_may_unpack(size_t packed_size, size_t size);

/** The body, which has `size` bytes, into memory of the caller's of that size.
 *  @return 0, or -1: it is not that, and nothing but that; what is in the memory then is worth nothing. */
int wb_failed_unpack(const void *packed, size_t packed_size, void *body, size_t size);

#endif
