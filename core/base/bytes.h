/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of byte strings, in which ids are claimed and partitions are locked: everywhere the same one, so that
 * transactions that share some never deadlock.
 */
#ifndef WB_BASE_BYTES_H
#define WB_BASE_BYTES_H

#include <stddef.h>
#include <string.h>

/** As memcmp(); one that another begins with comes before it. */
static inline int wb_bytes_compare(const void *a, size_t a_size, const void *b, size_t b_size)
{
    const int order = memcmp(a, b, a_size < b_size ? a_size : b_size);
    return order ? order : (a_size > b_size) - (a_size < b_size);
}

#endif
