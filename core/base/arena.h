/* SPDX-License-Identifier: Apache-2.0
 *
 * An arena: allocations that live as long as a batch and are forgotten together.
 * Out of memory ends the process: nothing can be promised without it, and the
 * next process resumes from the deduplication records. In a library it is an error (memory.h).
 */
#ifndef WB_BASE_ARENA_H
#define WB_BASE_ARENA_H

#include <stddef.h>

typedef struct wb_arena_block wb_arena_block;

typedef struct wb_arena {
    wb_arena_block *blocks; /* newest first */
    size_t block_size;
} wb_arena;

void wb_arena_init(wb_arena *arena, size_t block_size);
/** Aligned for any type; not zeroed. */
void *wb_arena_alloc(wb_arena *arena, size_t size);
/** A copy, followed by a NUL byte that is not counted. */
char *wb_arena_copy(wb_arena *arena, const void *data, size_t size);
/** Forget everything; keeps one block for the next batch. */
void wb_arena_reset(wb_arena *arena);
void wb_arena_free(wb_arena *arena);

/** malloc, calloc, realloc, strdup that end the process when memory is out. */
void *wb_alloc(size_t size);
void *wb_alloc_zero(size_t count, size_t size);
void *wb_realloc(void *memory, size_t size);
char *wb_strdup(const char *text);

#endif
