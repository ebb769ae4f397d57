/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What an input is copied into; in front of each block the one before it. */
typedef struct block {
    struct block *before;
    max_align_t data[];
} block;

static block *blocks;

void *fuzz_alloc(size_t size)
{
    block *made = calloc(1, sizeof *made + size);
    if (!made)
        abort();
    made->before = blocks;
    blocks = made;
    return made->data;
}

static void free_blocks(void)
{
    while (blocks) {
        block *before = blocks->before;
        free(blocks);
        blocks = before;
    }
}

char *fuzz_copy(const void *data, size_t size)
{
    char *copy = fuzz_alloc(size + 1);
    if (size)
        memcpy(copy, data, size);
    return copy;
}

_Noreturn void fuzz_fail(const char *file, int line, const char *condition)
{
    (void)fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, condition);
    abort();
}

int fuzz_is_same(const void *one, size_t one_size, const void *other, size_t other_size)
{
    return one_size == other_size && (one_size == 0 || memcmp(one, other, one_size) == 0);
}

fuzz_input fuzz_begin(const void *data, size_t size)
{
    return (fuzz_input){ data, (const unsigned char *)data + size };
}

unsigned fuzz_byte(fuzz_input *input)
{
    return input->at < input->end ? *input->at++ : 0;
}

uint32_t fuzz_number(fuzz_input *input)
{
    uint32_t number = 0;
    for (int shift = 0; shift < 32; shift += 8)
        number |= (uint32_t)fuzz_byte(input) << shift;
    return number;
}

uint64_t fuzz_large(fuzz_input *input)
{
    uint64_t low = fuzz_number(input);
    return low | (uint64_t)fuzz_number(input) << 32;
}

char *fuzz_text(fuzz_input *input, size_t *ret_size)
{
    size_t size = fuzz_byte(input);
    size |= (size_t)fuzz_byte(input) << 8;
    if (size > (size_t)(input->end - input->at))
        size = (size_t)(input->end - input->at);
    char *text = fuzz_copy(input->at, size);
    input->at += size;
    *ret_size = size;
    return text;
}

char *fuzz_rest(fuzz_input *input, size_t *ret_size)
{
    *ret_size = (size_t)(input->end - input->at);
    char *text = fuzz_copy(input->at, *ret_size);
    input->at = input->end;
    return text;
}

size_t fuzz_headers(fuzz_input *input, wb_header *headers, size_t max)
{
    size_t count = fuzz_byte(input);
    if (count > max)
        count = max;
    for (size_t i = 0; i < count; i++) {
        headers[i].name = fuzz_text(input, &headers[i].name_size);
        headers[i].value = fuzz_text(input, &headers[i].value_size);
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_one(data, size);
    free_blocks();
    return 0;
}
