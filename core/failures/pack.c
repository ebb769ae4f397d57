/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/failures/pack.h"

#include <stdlib.h>
#include <zlib.h>

#include "core/base/arena.h"
#include "core/base/memory.h"

/* Two bits stand for 258 bytes at most. */
#define GROWTH_MAX 1032

/* No more room than what is worth it: zlib stops when that is used up. */
void *wb_failed_pack(const void *body, size_t size, size_t *ret_size)
{
    uLongf packed_size = size - (size + 7) / 8;
    void *packed = wb_alloc(packed_size + 1);
    const int result = compress2(packed, &packed_size, body, size, Z_DEFAULT_COMPRESSION);
    *ret_size = packed_size;
    if (result == Z_OK)
        return packed;
    free(packed);
    if (result == Z_MEM_ERROR)
        wb_memory_is_out();
    return NULL;
}

int wb_failed_may_unpack(size_t packed_size, size_t size)
{
    return size / GROWTH_MAX <= packed_size;
}

int wb_failed_unpack(const void *packed, size_t packed_size, void *body, size_t size)
{
    uLongf got = size;
    uLong used = packed_size;
    const int result = uncompress2(body, &got, packed, &used);
    if (result == Z_MEM_ERROR)
        wb_memory_is_out();
    return result == Z_OK && got == size && used == packed_size ? 0 : -1;
}
