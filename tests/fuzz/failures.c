/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of failed messages, bodies compressed or not. An input is taken for a row, and for the values that one is made of: what is
 * read is the same when it was kept and read once more, and no body is larger than it may be.
 */
#include "config.h"

#include <string.h>

#include "core/failures/record.h"
#include "core/message/header_names.h"
#include "core/message/incoming.h"
#include "tests/fuzz/fuzz.h"

const char fuzz_name[] = "failures";

#define HEADERS_MAX 6
#define BODY_MAX ((size_t)1 << 16)
#define TIMES_MAX 64

/* ---- the same meaning --------------------------------------------------------------------- */

static void check_header(const wb_header *a, const wb_header *b)
{
    FUZZ_CHECK(fuzz_is_same(a->name, a->name_size, b->name, b->name_size));
    FUZZ_CHECK(fuzz_is_same(a->value, a->value_size, b->value, b->value_size));
}

/* What is known without the body is known with it. */
static void check_few(const wb_failed_record *few, const wb_failed_record *whole)
{
    FUZZ_CHECK(few->operation->body_size == whole->operation->body_size && !whole->packed.size);
    FUZZ_CHECK(few->packed.size ? !few->operation->body : few->operation->body == whole->operation->body);
    FUZZ_CHECK(few->operation->header_count == whole->operation->header_count);
    FUZZ_CHECK(strcmp(few->group, whole->group) == 0);
    FUZZ_CHECK(((const char *)whole->operation->body)[whole->operation->body_size] == '\0');
}

/* ---- there and back ----------------------------------------------------------------------- */

static void check_row(const wb_message *message, size_t compress_over, const wb_buffer *row, wb_arena *arena)
{
    wb_failed_record few, whole;
    const int is_packed = row->size >= 4 && memcmp(row->data, "WBZ1", 4) == 0;
    const char *bytes = fuzz_copy(row->data, row->size);
    FUZZ_CHECK(!is_packed || (compress_over && message->body_size > compress_over));
    FUZZ_CHECK(wb_failed_decode(bytes, row->size, arena, &few) == 0);
    FUZZ_CHECK(wb_failed_decode_whole(bytes, row->size, (int64_t)message->body_size, arena, &whole) == 0);
    FUZZ_CHECK(!is_packed || few.packed.size <= message->body_size - message->body_size / 8);
    check_few(&few, &whole);
    FUZZ_CHECK(fuzz_is_same(whole.operation->body, whole.operation->body_size, message->body, message->body_size));
    FUZZ_CHECK(fuzz_is_same(whole.id.value, whole.id.size, message->id, message->id_size));
    FUZZ_CHECK(whole.operation->header_count == message->header_count);
    for (size_t i = 0; i < message->header_count; i++)
        check_header(&whole.operation->headers[i], &message->headers[i]);
}

static void keep_again(const wb_message *message, size_t compress_over, wb_arena *arena)
{
    wb_buffer summary = { 0 }, whole = { 0 };
    wb_failed_record few;
    wb_failed_encode(message, compress_over, &summary, &whole);
    check_row(message, compress_over, &whole, arena);
    FUZZ_CHECK(wb_failed_decode(summary.data, summary.size, arena, &few) == 0 && !few.packed.size && !few.operation->body_size);
    wb_buffer_free(&summary);
    wb_buffer_free(&whole);
}

/* ---- from a row ----------------------------------------------------------------------------- */

static void try_row(const void *data, size_t size, wb_arena *arena)
{
    wb_failed_record few, whole;
    const int why = wb_failed_decode_whole(data, size, BODY_MAX, arena, &whole);
    if (wb_failed_decode(data, size, arena, &few) != 0) {
        FUZZ_CHECK(why == WB_UNREAD_LATER || why == WB_UNREAD_DAMAGED);
        return;
    }
    FUZZ_CHECK(!why || (few.packed.size && (why == WB_UNREAD_BODY || why == WB_UNREAD_LARGE)));
    if (why)
        return;
    FUZZ_CHECK(!few.packed.size || whole.operation->body_size <= BODY_MAX);
    check_few(&few, &whole);
    const wb_operation *o = whole.operation;
    const wb_message message = { .struct_size = sizeof message, .id = o->id, .id_size = o->id_size, .headers = o->headers,
                                 .header_count = o->header_count, .key = o->key, .key_size = o->key_size, .body = o->body,
                                 .body_size = o->body_size };
    if (WB_HEADERS_FIND(message.headers, message.header_count, WB_HEADER_FAILED_QUEUE))
        keep_again(&message, 1, arena);
}

/* ---- from values ---------------------------------------------------------------------------- */

/* What comes several times can be compressed. */
static const char *make_body(fuzz_input *input, size_t *ret_size)
{
    const size_t times = fuzz_byte(input) % TIMES_MAX + 1;
    size_t size;
    const char *text = fuzz_text(input, &size);
    char *body = fuzz_alloc(times * size + 1);
    for (size_t i = 0; i < times; i++)
        memcpy(body + i * size, text, size);
    *ret_size = times * size;
    return body;
}

static void try_values(fuzz_input *input, wb_arena *arena)
{
    wb_header *headers = fuzz_alloc((HEADERS_MAX + 1) * sizeof *headers);
    wb_message message = { .struct_size = sizeof message, .headers = headers };
    const size_t compress_over = fuzz_byte(input) * (size_t)16;
    headers[0].name = WB_HEADER_FAILED_QUEUE;
    headers[0].name_size = strlen(WB_HEADER_FAILED_QUEUE);
    headers[0].value = fuzz_text(input, &headers[0].value_size);
    message.id = fuzz_text(input, &message.id_size);
    message.body = make_body(input, &message.body_size);
    message.header_count = 1 + fuzz_headers(input, headers + 1, HEADERS_MAX);
    keep_again(&message, compress_over, arena);
}

void fuzz_one(const void *data, size_t size)
{
    wb_arena arena;
    fuzz_input input = fuzz_begin(data, size);
    wb_arena_init(&arena, 4096);
    try_row(data, size, &arena);
    try_values(&input, &arena);
    wb_arena_free(&arena);
}
