/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/persistence/pgsql/pgsql-memory.h"

#include <stdlib.h>
#include <string.h>

/* Holds the deferred statements of an ordinary batch. */
#define BLOCK_SIZE ((size_t)64 * 1024)

struct pgsql_block {
    pgsql_block *next;
    size_t size;
    size_t used;
    max_align_t data[];
};

void pgsql_buffer_put_u32(wb_sql_buffer *buffer, uint32_t value)
{
    char bytes[4] = { (char)(value >> 24), (char)(value >> 16), (char)(value >> 8), (char)value };
    wb_sql_buffer_put(buffer, bytes, sizeof bytes);
}

void pgsql_buffer_put_u64(wb_sql_buffer *buffer, uint64_t value)
{
    char bytes[8];
    pgsql_write_u64(bytes, value);
    wb_sql_buffer_put(buffer, bytes, sizeof bytes);
}

uint64_t pgsql_read_u64(const char *bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value = value << 8 | (unsigned char)bytes[i];
    return value;
}

void pgsql_write_u64(char bytes[8], uint64_t value)
{
    for (int i = 7; i >= 0; i--, value >>= 8)
        bytes[i] = (char)value;
}

static pgsql_block *add_block(pgsql_arena *arena, size_t size)
{
    pgsql_block *block = malloc(sizeof *block + size);
    if (!block)
        return NULL;
    block->next = arena->blocks;
    block->size = size;
    block->used = 0;
    arena->blocks = block;
    return block;
}

void *pgsql_arena_alloc(pgsql_arena *arena, size_t size)
{
    const size_t alignment = sizeof(max_align_t);
    pgsql_block *block = arena->blocks;

    size = (size + alignment - 1) / alignment * alignment;
    if (!block || block->size - block->used < size)
        block = add_block(arena, size > BLOCK_SIZE ? size : BLOCK_SIZE);
    if (!block)
        return NULL;
    void *memory = (char *)block->data + block->used;
    block->used += size;
    return memory;
}

void pgsql_arena_reset(pgsql_arena *arena)
{
    pgsql_block *kept = NULL;
    while (arena->blocks) {
        pgsql_block *block = arena->blocks;
        arena->blocks = block->next;
        if (!kept && block->size == BLOCK_SIZE)
            kept = block;
        else
            free(block);
    }
    if (kept) {
        kept->next = NULL;
        kept->used = 0;
        arena->blocks = kept;
    }
}

void pgsql_arena_free(pgsql_arena *arena)
{
    while (arena->blocks) {
        pgsql_block *block = arena->blocks;
        arena->blocks = block->next;
        free(block);
    }
}
