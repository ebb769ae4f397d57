/* SPDX-License-Identifier: Apache-2.0
 *
 * A digest for telling whether two messages are the same bytes: FNV-1a, 64 bits. Parts
 * are separated, so that moving a byte from one field to the next changes it.
 */
#ifndef WB_TESTS_CRASH_DIGEST_H
#define WB_TESTS_CRASH_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#define DIGEST_START UINT64_C(14695981039346656037)

static inline uint64_t digest_add(uint64_t digest, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++)
        digest = (digest ^ bytes[i]) * UINT64_C(1099511628211);
    return (digest ^ size) * UINT64_C(1099511628211);
}

#endif
