/* SPDX-License-Identifier: Apache-2.0
 *
 * Large bodies of failed messages, kept compressed: there and back whatever their size, rows of before, and rows that were
 * damaged or made to do harm.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/failures/pack.h"
#include "core/failures/record.h"
#include "core/message/header_names.h"

#define HEADER(name, value) { (name), (value), sizeof(name) - 1, sizeof(value) - 1 }
#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define LIMIT ((size_t)65536)
#define MIB ((size_t)1 << 20)
#define BODY_MAX ((int64_t)16 << 20)
/* Magic, size of the body. */
#define HEAD 8

static const wb_header headers[] = { HEADER(WB_HEADER_FAILED_QUEUE, "orders"), HEADER("mine", "kept") };

/* ---- what zlib says: it may have no memory ----------------------------------------------------- */

static int memory_is_out;

int __real_compress2(Bytef *to, uLongf *to_size, const Bytef *from, uLong from_size, int level);
int __wrap_compress2(Bytef *to, uLongf *to_size, const Bytef *from, uLong from_size, int level);
int __wrap_compress2(Bytef *to, uLongf *to_size, const Bytef *from, uLong from_size, int level)
{
    return memory_is_out ? Z_MEM_ERROR : __real_compress2(to, to_size, from, from_size, level);
}

int __real_uncompress2(Bytef *to, uLongf *to_size, const Bytef *from, uLong *from_size);
int __wrap_uncompress2(Bytef *to, uLongf *to_size, const Bytef *from, uLong *from_size);
int __wrap_uncompress2(Bytef *to, uLongf *to_size, const Bytef *from, uLong *from_size)
{
    return memory_is_out ? Z_MEM_ERROR : __real_uncompress2(to, to_size, from, from_size);
}

/* ---- rows ---------------------------------------------------------------------------------- */

/* Bytes of which the first are random: the same each time. */
static unsigned char *make_body(size_t size, size_t random)
{
    uint64_t state = 88172645463325252u;
    unsigned char *body = calloc(size + 1, 1);
    assert_non_null(body);
    for (size_t i = 0; i < random; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        body[i] = (unsigned char)(state >> 32);
    }
    return body;
}

static wb_buffer keep(const void *body, size_t size, size_t compress_over)
{
    const wb_message message = { .struct_size = sizeof message, .id = "m", .id_size = 1, .body = body, .body_size = size,
                                 .headers = headers, .header_count = COUNT(headers), .key = "k", .key_size = 1 };
    wb_buffer summary = { 0 }, whole = { 0 };
    wb_failed_encode(&message, compress_over, &summary, &whole);
    assert_int_equal(memcmp(summary.data, "WBO1", 4), 0);
    wb_buffer_free(&summary);
    return whole;
}

/* In memory of its own, so that reading beyond its end is noticed. */
static int read_row(const void *bytes, size_t size, int64_t body_max, wb_arena *arena, wb_failed_record *record)
{
    char *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    int why = wb_failed_decode_whole(copy, size, body_max, arena, record);
    free(copy);
    return why;
}

static void expect_unread(const wb_buffer *row, int64_t body_max, int wanted)
{
    wb_failed_record record;
    wb_arena arena;
    wb_arena_init(&arena, 1024);
    const int why = read_row(row->data, row->size, body_max, &arena, &record);
    assert_int_equal(why, wanted);
    wb_arena_free(&arena);
}

/* Its headers are there without its body, and how large that is. */
static void expect_body(const wb_buffer *row, const void *body, size_t size)
{
    wb_failed_record few, whole;
    wb_arena arena;
    const int is_packed = memcmp(row->data, "WBZ1", 4) == 0;
    wb_arena_init(&arena, 1024);
    assert_int_equal(wb_failed_decode(row->data, row->size, &arena, &few), 0);
    assert_int_equal(few.operation->body_size, size);
    assert_int_equal(few.operation->body == NULL, is_packed);
    assert_int_equal(few.packed.size != 0, is_packed);
    assert_int_equal(wb_failed_decode_whole(row->data, row->size, BODY_MAX, &arena, &whole), 0);
    assert_int_equal(whole.operation->body_size, size);
    assert_int_equal(memcmp(whole.operation->body, body, size), 0);
    assert_int_equal(((const char *)whole.operation->body)[size], 0);
    assert_int_equal(whole.packed.size, 0);
    assert_int_equal(whole.operation->header_count, COUNT(headers));
    assert_string_equal(whole.operation->headers[1].value, few.operation->headers[1].value);
    assert_string_equal(whole.operation->key, "k");
    assert_int_equal(whole.id.size, 1);
    wb_arena_free(&arena);
}

static void out_and_in(size_t size, size_t random, int is_packed)
{
    unsigned char *body = make_body(size, random);
    wb_buffer row = keep(body, size, LIMIT);
    assert_int_equal(memcmp(row.data, is_packed ? "WBZ1" : "WBO1", 4), 0);
    assert_int_equal(row.size < size, is_packed);
    expect_body(&row, body, size);
    wb_buffer_free(&row);
    free(body);
}

static void test_sizes(void **state)
{
    (void)state;
    out_and_in(0, 0, 0);
    out_and_in(1, 0, 0);
    out_and_in(LIMIT - 1, 0, 0);
    out_and_in(LIMIT, 0, 0);
    out_and_in(LIMIT + 1, 0, 1);
    out_and_in(LIMIT + 1, LIMIT + 1, 0);
    out_and_in(16 * MIB, 0, 1);
    out_and_in(16 * MIB, 16 * MIB, 0);
    out_and_in(16 * MIB, 8 * MIB, 1);
}

static void test_never(void **state)
{
    unsigned char *body = make_body(MIB, 0);
    wb_buffer row = keep(body, MIB, 0);
    (void)state;
    assert_int_equal(memcmp(row.data, "WBO1", 4), 0);
    expect_body(&row, body, MIB);
    wb_buffer_free(&row);
    row = keep(body, 2, 1);
    assert_int_equal(memcmp(row.data, "WBO1", 4), 0); /* two bytes are not fewer */
    expect_body(&row, body, 2);
    wb_buffer_free(&row);
    free(body);
}

/* What wins an eighth is kept compressed, a byte less is not. */
static void test_an_eighth(void **state)
{
    const size_t size = 4096;
    int packed = 0, left = 0;
    (void)state;
    for (size_t random = size / 2; random <= size; random++) {
        unsigned char *body = make_body(size, random), room[8192];
        uLongf smallest = sizeof room;
        size_t got = 0;
        assert_int_equal(__real_compress2(room, &smallest, body, size, Z_DEFAULT_COMPRESSION), Z_OK);
        void *bytes = wb_failed_pack(body, size, &got);
        assert_int_equal(bytes != NULL, smallest <= size - size / 8);
        packed += bytes != NULL;
        left += bytes == NULL;
        if (bytes)
            assert_int_equal(got, smallest);
        free(bytes);
        free(body);
    }
    assert_true(packed > 100 && left > 100);
}

/* ---- rows of before, and those of today in other versions ------------------------------------ */

#define MESSAGE                                                                                                             \
    "WBO1\x01\0\0\0m\0\x01\0\0\0\x01\0\0\0\x02\0\0\0\x01\0\0\0q\0\x01\0\0\0m\0\0\0\0\0\0\x01\0\0\0\x13\0\0\0"             \
    "NServiceBus.FailedQ\0\x01\0\0\0q\0"

static const char old_row[] = MESSAGE "\x08\0\0\0old\0body";
static const char packed_row[] = "WBZ1\0\x10\0\0" MESSAGE
                                 "\x1c\0\0\0x\x9c\xed\xc1\x01\x0d\0\0\0\xc2\xa0\xac\xef_\xc2\x1e\x0e(\0\0\0\xe0\xdd\0\xef\xcb\x10[";

static void test_formats(void **state)
{
    wb_failed_record record;
    wb_arena arena;
    (void)state;
    wb_arena_init(&arena, 1024);
    assert_int_equal(wb_failed_decode_whole(old_row, sizeof old_row, 1, &arena, &record), 0); /* no limit for what is there */
    assert_int_equal(record.operation->body_size, 8);
    assert_memory_equal(record.operation->body, "old\0body", 8);
    assert_int_equal(wb_failed_decode_whole(packed_row, sizeof packed_row, 4096, &arena, &record), 0);
    assert_int_equal(record.operation->body_size, 4096);
    for (size_t i = 0; i < 4096; i++)
        assert_int_equal(((const char *)record.operation->body)[i], 'a');
    assert_int_equal(wb_failed_decode("WBZ2", 4, &arena, &record), WB_UNREAD_LATER);
    assert_int_equal(wb_failed_decode("WBO9", 4, &arena, &record), WB_UNREAD_LATER);
    assert_int_equal(wb_failed_decode("", 0, &arena, &record), WB_UNREAD_LATER);
    assert_int_equal(wb_failed_decode(old_row, sizeof old_row - 1, &arena, &record), WB_UNREAD_DAMAGED);
    for (int why = WB_UNREAD_LATER; why <= WB_UNREAD_LARGE; why++)
        assert_true(strlen(wb_failed_fault(why)) > 20);
    wb_arena_free(&arena);
}

/* ---- damaged ---------------------------------------------------------------------------------- */

static wb_buffer packed_zeros(size_t size)
{
    unsigned char *body = make_body(size, 0);
    wb_buffer row = keep(body, size, 1);
    assert_int_equal(memcmp(row.data, "WBZ1", 4), 0);
    free(body);
    return row;
}

static void test_cut(void **state)
{
    wb_buffer row = packed_zeros(4096);
    (void)state;
    for (size_t size = 4; size < row.size; size++) {
        const wb_buffer part = { row.data, size, 0 };
        expect_unread(&part, BODY_MAX, WB_UNREAD_DAMAGED);
    }
    wb_buffer_free(&row);
}

/* Whichever bit is another: it says so, or the body is what it was (a header is not, or nothing that counts). */
static void flip(wb_buffer *row, size_t byte, const unsigned char *body, size_t size, size_t *ret_noticed)
{
    wb_failed_record record;
    wb_arena arena;
    for (unsigned bit = 0; bit < 8; bit++) {
        wb_arena_init(&arena, 1024);
        row->data[byte] ^= (unsigned char)(1u << bit);
        const int why = read_row(row->data, row->size, BODY_MAX, &arena, &record);
        if (!why) {
            assert_int_equal(record.operation->body_size, size);
            assert_memory_equal(record.operation->body, body, size);
        }
        *ret_noticed += why != 0;
        row->data[byte] ^= (unsigned char)(1u << bit);
        wb_arena_free(&arena);
    }
}

static void test_flipped(void **state)
{
    const size_t size = 4096;
    unsigned char *body = make_body(size, size / 4);
    wb_buffer row = keep(body, size, 1);
    size_t noticed = 0;
    (void)state;
    for (size_t i = 0; i < row.size; i++)
        flip(&row, i, body, size, &noticed);
    assert_true(noticed > 8 * (row.size - 200)); /* all of the body but some padding */
    wb_buffer_free(&row);
    free(body);
}

static void set_size(wb_buffer *row, uint32_t size)
{
    for (size_t i = 0; i < 4; i++)
        row->data[4 + i] = (unsigned char)(size >> 8 * i);
}

static void test_other_sizes(void **state)
{
    static const uint32_t sizes[] = { 1, 4095, 4097, 5000, UINT32_MAX };
    wb_buffer row = packed_zeros(4096);
    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        set_size(&row, sizes[i]);
        expect_unread(&row, BODY_MAX, WB_UNREAD_BODY);
    }
    set_size(&row, 0);
    expect_unread(&row, BODY_MAX, WB_UNREAD_DAMAGED);
    set_size(&row, 4096);
    expect_unread(&row, 4096, 0);
    expect_unread(&row, 4095, WB_UNREAD_LARGE);
    wb_buffer_free(&row);
}

/* A row of that body, and of that size as it says. */
static wb_buffer make_row(const void *packed, size_t packed_size, uint32_t size)
{
    wb_buffer row = keep(packed, packed_size, 0), whole = { 0 };
    wb_buffer_put(&whole, "WBZ1", 4);
    wb_buffer_put_u32(&whole, size);
    wb_buffer_put(&whole, row.data, row.size);
    wb_buffer_free(&row);
    return whole;
}

static void expect_made(const void *packed, size_t packed_size, uint32_t size, int wanted)
{
    wb_buffer row = make_row(packed, packed_size, size);
    expect_unread(&row, BODY_MAX, wanted);
    wb_buffer_free(&row);
}

static void test_made_to_harm(void **state)
{
    const size_t bomb = 64 * MIB;
    size_t size = 0;
    unsigned char *zeros = make_body(bomb, 0), *more;
    unsigned char *packed = wb_failed_pack(zeros, bomb, &size);
    (void)state;
    expect_made(packed, size, (uint32_t)bomb, WB_UNREAD_LARGE);       /* honest */
    expect_made(packed, size, (uint32_t)BODY_MAX, WB_UNREAD_BODY);    /* more than it says */
    expect_made(packed, size, UINT32_MAX, WB_UNREAD_BODY);            /* more than there can be */
    expect_made(packed, size, 1, WB_UNREAD_BODY);
    free(packed);
    packed = wb_failed_pack(zeros, MIB, &size);
    more = make_body(size + 1, 0);
    memcpy(more, packed, size);
    expect_made(more, size, MIB, 0);
    expect_made(more, size + 1, MIB, WB_UNREAD_BODY); /* a byte behind its end */
    expect_made(more, size - 1, MIB, WB_UNREAD_BODY);
    expect_made("", 0, MIB, WB_UNREAD_DAMAGED);
    expect_made("x", 1, MIB, WB_UNREAD_BODY);
    free(more);
    free(packed);
    free(zeros);
}

/* A second message is nobody's. */
static void test_behind_it(void **state)
{
    wb_buffer row = packed_zeros(4096), twice = packed_zeros(4096), byte = packed_zeros(4096);
    (void)state;
    wb_buffer_put(&twice, row.data + HEAD + 4, row.size - HEAD - 4);
    expect_unread(&twice, BODY_MAX, WB_UNREAD_DAMAGED);
    wb_buffer_put(&byte, "", 1);
    expect_unread(&byte, BODY_MAX, WB_UNREAD_DAMAGED);
    expect_unread(&row, BODY_MAX, 0);
    wb_buffer_free(&row);
    wb_buffer_free(&twice);
    wb_buffer_free(&byte);
}

/* ---- without memory ----------------------------------------------------------------------------- */

static void pack_once(void *body)
{
    size_t size;
    free(wb_failed_pack(body, MIB, &size));
}

static void unpack_once(void *body)
{
    (void)wb_failed_unpack("x", 1, body, MIB);
}

static void test_without_memory(void **state)
{
    unsigned char *body = make_body(MIB, 0);
    (void)state;
    memory_is_out = 1;
    assert_int_equal(wb_memory_try(pack_once, body), -1);
    assert_int_equal(wb_memory_try(unpack_once, body), -1);
    memory_is_out = 0;
    assert_int_equal(wb_memory_try(pack_once, body), 0);
    assert_int_equal(wb_memory_try(unpack_once, body), 0);
    free(body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),       cmocka_unit_test(test_never),        cmocka_unit_test(test_an_eighth),
        cmocka_unit_test(test_formats),     cmocka_unit_test(test_cut),          cmocka_unit_test(test_flipped),
        cmocka_unit_test(test_other_sizes), cmocka_unit_test(test_made_to_harm), cmocka_unit_test(test_behind_it),
        cmocka_unit_test(test_without_memory),
    };
    wb_log_set_level(-1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
