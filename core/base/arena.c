/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"

struct wb_arena_block {
    wb_arena_block *next;
    size_t size;
    size_t used;
    max_align_t data[];
};

static void *or_die(void *memory)
{
    if (!memory)
        wb_memory_is_out();
    return memory;
}

void *wb_alloc(size_t size)
{
    return or_die(malloc(size ? size : 1));
}

void *wb_alloc_zero(size_t count, size_t size)
{
    return or_die(calloc(count ? count : 1, size ? size : 1));
}

void *wb_realloc(void *memory, size_t size)
{
    return or_die(realloc(memory, size ? size : 1));
}

char *wb_strdup(const char *text)
{
    return or_die(strdup(text));
}

void wb_arena_init(wb_arena *arena, size_t block_size)
{
    arena->blocks = NULL;
    arena->block_size = block_size;
}

static wb_arena_block *add_block(wb_arena *arena, size_t size)
{
    wb_arena_block *block = wb_alloc(sizeof *block + size);
    block->next = arena->blocks;
    block->size = size;
    block->used = 0;
    arena->blocks = block;
    return block;
}

void *wb_arena_alloc(wb_arena *arena, size_t size)
{
    const size_t alignment = sizeof(max_align_t);
    wb_arena_block *block = arena->blocks;

    size = (size + alignment - 1) / alignment * alignment;
    if (!block || block->size - block->used < size)
        block = add_block(arena, size > arena->block_size ? size : arena->block_size);
    void *memory = (char *)block->data + block->used;
    block->used += size;
    return memory;
}

char *wb_arena_copy(wb_arena *arena, const void *data, size_t size)
{
    char *copy = wb_arena_alloc(arena, size + 1);
    if (size)
        memcpy(copy, data, size);
    copy[size] = '\0';
    return copy;
}

void wb_arena_reset(wb_arena *arena)
{
    wb_arena_block *kept = NULL;
    while (arena->blocks) {
        wb_arena_block *block = arena->blocks;
        arena->blocks = block->next;
        if (!kept && block->size == arena->block_size)
            kept = block;
        else
            free(block);
    }
    if (kept) {
        kept->next = NULL;
#ifdef WB_TEST_HOOKS /* whoever still points into it sees that at once */
        memset(kept->data, 0xdd, kept->used);
#endif
        kept->used = 0;
        arena->blocks = kept;
    }
}

void wb_arena_free(wb_arena *arena)
{
    while (arena->blocks) {
        wb_arena_block *block = arena->blocks;
        arena->blocks = block->next;
        free(block);
    }
}
