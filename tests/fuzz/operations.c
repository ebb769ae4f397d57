/* SPDX-License-Identifier: Apache-2.0
 *
 * Stored operations. An input is taken for a row, and for the values that a row is made of: what is
 * decoded is the same when it was encoded and decoded once more.
 */
#include "config.h"

#include <string.h>

#include "core/message/operations.h"
#include "tests/fuzz/fuzz.h"

const char fuzz_name[] = "operations";

#define GROUPS_MAX 4
#define OPERATIONS_MAX 6
#define HEADERS_MAX 6

/* ---- the same meaning --------------------------------------------------------------------- */

static int is_same_header(const wb_header *a, const wb_header *b)
{
    return fuzz_is_same(a->name, a->name_size, b->name, b->name_size) &&
           fuzz_is_same(a->value, a->value_size, b->value, b->value_size);
}

static void check_operation(const wb_operation *a, const wb_operation *b)
{
    FUZZ_CHECK(a->kind == b->kind && (a->flags & ~WB_OPERATION_PARTLY_SENT) == b->flags && a->deliver_at == b->deliver_at);
    FUZZ_CHECK(strcmp(a->destination, b->destination) == 0);
    FUZZ_CHECK(fuzz_is_same(a->id, a->id_size, b->id, b->id_size));
    FUZZ_CHECK(fuzz_is_same(a->key, a->key_size, b->key, b->key_size));
    FUZZ_CHECK(fuzz_is_same(a->body, a->body_size, b->body, b->body_size));
    FUZZ_CHECK(a->header_count == b->header_count);
    for (size_t i = 0; i < a->header_count; i++)
        FUZZ_CHECK(is_same_header(&a->headers[i], &b->headers[i]));
}

static void check_group(const wb_operation_group *a, const wb_operation_group *b)
{
    const wb_operation_node *x = a->operations.first, *y = b->operations.first;
    FUZZ_CHECK(fuzz_is_same(a->cause, a->cause_size, b->cause, b->cause_size));
    FUZZ_CHECK(a->operations.count == b->operations.count);
    for (; x && y; x = x->next, y = y->next)
        check_operation(&x->operation, &y->operation);
    FUZZ_CHECK(!x && !y);
}

/* A group of no operations leaves no trace. */
static const wb_operation_group *skip_empty(const wb_operation_group *group)
{
    while (group && !group->operations.count)
        group = group->next;
    return group;
}

static void check_groups(const wb_operation_group *a, const wb_operation_group *b)
{
    for (a = skip_empty(a); a && b; a = skip_empty(a->next), b = b->next)
        check_group(a, b);
    FUZZ_CHECK(!a && !b);
}

/* ---- there and back ----------------------------------------------------------------------- */

static void check_again(const wb_operation_group *groups, wb_arena *arena)
{
    wb_buffer buffer = { 0 };
    int failed = 0;
    wb_operations_encode_start(&buffer);
    for (const wb_operation_group *g = groups; g; g = g->next)
        FUZZ_CHECK(wb_operations_encode_group(&buffer, g->cause, g->cause_size, &g->operations) == g->operations.count);
    FUZZ_CHECK(wb_operations_are_known(buffer.data, buffer.size));
    const char *row = fuzz_copy(buffer.data, buffer.size);
    const wb_operation_group *decoded = wb_operations_decode(row, buffer.size, arena, &failed);
    FUZZ_CHECK(!failed);
    check_groups(groups, decoded);
    wb_buffer_free(&buffer);
}

/* ---- from values -------------------------------------------------------------------------- */

static void make_operation(fuzz_input *input, wb_operation *operation)
{
    wb_header *headers = fuzz_alloc(HEADERS_MAX * sizeof *headers);
    size_t ignored;
    operation->kind = (int32_t)fuzz_byte(input);
    operation->flags = fuzz_number(input) & ~WB_ENCODED_DELAYED;
    operation->deliver_at = (int64_t)fuzz_large(input);
    operation->destination = fuzz_text(input, &ignored);
    operation->id = fuzz_text(input, &operation->id_size);
    operation->key = fuzz_text(input, &operation->key_size);
    operation->headers = headers;
    operation->header_count = fuzz_headers(input, headers, HEADERS_MAX);
    operation->body = fuzz_text(input, &operation->body_size);
}

static wb_operation_group *make_group(fuzz_input *input, wb_arena *arena)
{
    wb_operation_group *group = fuzz_alloc(sizeof *group);
    group->cause = fuzz_text(input, &group->cause_size);
    for (unsigned i = fuzz_byte(input) % (OPERATIONS_MAX + 1); i; i--)
        make_operation(input, wb_operation_append(&group->operations, arena));
    return group;
}

static wb_operation_group *make_groups(fuzz_input *input, wb_arena *arena)
{
    wb_operation_group *first = NULL, **next = &first;
    for (unsigned i = fuzz_byte(input) % (GROUPS_MAX + 1); i; i--) {
        *next = make_group(input, arena);
        next = &(*next)->next;
    }
    return first;
}

void fuzz_one(const void *data, size_t size)
{
    wb_arena arena;
    fuzz_input input = fuzz_begin(data, size);
    int failed = 0;
    wb_arena_init(&arena, 4096);
    const wb_operation_group *groups = wb_operations_decode(data, size, &arena, &failed);
    FUZZ_CHECK(!failed || !groups);
    if (!failed)
        check_again(groups, &arena);
    check_again(make_groups(&input, &arena), &arena);
    wb_arena_free(&arena);
}
