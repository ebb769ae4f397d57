/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of the pgsql plugin: a growable run of bytes and an arena. A plugin may not
 * end the process, so both report that memory is out instead.
 */
#ifndef PGSQL_MEMORY_H
#define PGSQL_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "plugins/common/sql/buffer.h"

void pgsql_buffer_put_u32(wb_sql_buffer *buffer, uint32_t value);
void pgsql_buffer_put_u64(wb_sql_buffer *buffer, uint64_t value);

/** Big-endian integers, as found in binary results. */
uint64_t pgsql_read_u64(const char *bytes);
void pgsql_write_u64(char bytes[8], uint64_t value);

typedef struct pgsql_block pgsql_block;

/** All zero is empty. */
typedef struct pgsql_arena {
    pgsql_block *blocks; /* newest first */
} pgsql_arena;

/** Aligned for any type, not zeroed. @return NULL when memory is out. */
void *pgsql_arena_alloc(pgsql_arena *arena, size_t size);
/** Forget everything; keeps one block. */
void pgsql_arena_reset(pgsql_arena *arena);
void pgsql_arena_free(pgsql_arena *arena);

#endif
