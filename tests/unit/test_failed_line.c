/* SPDX-License-Identifier: Apache-2.0
 *
 * Base64, and failed messages in lines of JSON: out and in again, whatever their bytes; what is no such line.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/base64.h"
#include "core/cli/failed_line.h"
#include "core/message/header_names.h"

/* What prints needs it. */
int cli_fail(int code, const char *format, ...)
{
    (void)format;
    return code;
}

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define HEADER(name, value) { (name), (value), sizeof(name) - 1, sizeof(value) - 1 }

/* ---- base64 ------------------------------------------------------------------------------ */

static void test_base64(void **state)
{
    static const struct {
        const char *bytes, *text;
        size_t size;
    } known[] = { { "", "", 0 },          { "f", "Zg==", 1 },         { "fo", "Zm8=", 2 },
                  { "foo", "Zm9v", 3 },   { "foob", "Zm9vYg==", 4 },  { "\0\xff\xfe", "AP/+", 3 } };
    (void)state;
    for (size_t i = 0; i < COUNT(known); i++) {
        wb_buffer text = { 0 }, bytes = { 0 };
        wb_base64_encode(known[i].bytes, known[i].size, &text);
        assert_int_equal(text.size, strlen(known[i].text));
        assert_true(!text.size || memcmp(text.data, known[i].text, text.size) == 0);
        assert_int_equal(wb_base64_decode(known[i].text, strlen(known[i].text), &bytes), 0);
        assert_int_equal(bytes.size, known[i].size);
        assert_true(!bytes.size || memcmp(bytes.data, known[i].bytes, bytes.size) == 0);
        wb_buffer_free(&text);
        wb_buffer_free(&bytes);
    }
}

static void test_no_base64(void **state)
{
    static const char *const none[] = { "Zg", "Zg=", "Zg===", "Z===", "====", "Zg==Zg==", "Zh==", "Zm9=", "Zm 9", "Zm9\n", "Z-_v" };
    (void)state;
    for (size_t i = 0; i < COUNT(none); i++) {
        wb_buffer bytes = { 0 };
        assert_int_equal(wb_base64_decode(none[i], strlen(none[i]), &bytes), -1);
        wb_buffer_free(&bytes);
    }
}

/* ---- lines --------------------------------------------------------------------------------- */

static void expect_same(const wb_message *one, const wb_message *other)
{
    assert_int_equal(one->id_size, other->id_size);
    assert_memory_equal(one->id, other->id, one->id_size);
    assert_int_equal(one->key_size, other->key_size);
    assert_true(!one->key_size || memcmp(one->key, other->key, one->key_size) == 0);
    assert_int_equal(one->body_size, other->body_size);
    assert_true(!one->body_size || memcmp(one->body, other->body, one->body_size) == 0);
    assert_int_equal(one->header_count, other->header_count);
    for (size_t i = 0; i < one->header_count; i++) {
        assert_int_equal(one->headers[i].name_size, other->headers[i].name_size);
        assert_memory_equal(one->headers[i].name, other->headers[i].name, one->headers[i].name_size);
        assert_int_equal(one->headers[i].value_size, other->headers[i].value_size);
        assert_true(!one->headers[i].value_size || memcmp(one->headers[i].value, other->headers[i].value, one->headers[i].value_size) == 0);
    }
}

static void out_and_in(const wb_message *message)
{
    wb_buffer summary = { 0 }, whole = { 0 };
    wb_arena arena;
    wb_failed_record record;
    cli_failed_line line;
    char problem[CLI_PROBLEM_SIZE] = "";
    const wb_failed failed = { .key = "k", .key_size = 1, .status = WB_FAILED_RESOLVED, .attempts = 3,
                               .failed_at = INT64_C(1767225601123456000) };
    wb_arena_init(&arena, 1024);
    wb_failed_encode(message, 0, &summary, &whole);
    assert_int_equal(wb_failed_decode(whole.data, whole.size, &arena, &record), 0);
    json_t *object = cli_failed_line_make(&failed, &record);
    char *text = json_dumps(object, JSON_COMPACT);
    assert_int_equal(cli_failed_line_read(text, strlen(text), &line, problem), 0);
    expect_same(&line.message, message);
    assert_int_equal(line.status, WB_FAILED_RESOLVED);
    assert_int_equal(line.failed_at, failed.failed_at);
    cli_failed_line_free(&line);
    json_decref(object);
    free(text);
    wb_buffer_free(&summary);
    wb_buffer_free(&whole);
    wb_arena_free(&arena);
}

static void test_out_and_in(void **state)
{
    static const wb_header headers[] = { HEADER(WB_HEADER_FAILED_QUEUE, "orders"), HEADER("twice", "1"), HEADER("twice", "\xff\"\\"),
                                         HEADER("\xfe", ""), HEADER("caf\xc3\xa9", "a\0b") };
    wb_message message = { .struct_size = sizeof message, .id = "m\xff", .id_size = 2, .body = "\0\xff\n", .body_size = 3,
                           .headers = headers, .header_count = COUNT(headers), .key = "k", .key_size = 1 };
    (void)state;
    out_and_in(&message);
    message = (wb_message){ .struct_size = sizeof message, .id = "m", .id_size = 1, .body = "", .headers = headers, .header_count = 1 };
    out_and_in(&message);
    message.body = "{\"a\": \"\xc3\xa9\n\"}";
    message.body_size = strlen(message.body);
    out_and_in(&message);
}

#define QUEUE "\"headers\": [[\"NServiceBus.FailedQ\", \"q\"]]"

static void test_no_lines(void **state)
{
    static const char *const none[] = {
        "", "[]", "{", "{\"id\": \"a\", " QUEUE "}", "{\"body\": \"\", " QUEUE "}", "{\"id\": \"\", \"body\": \"\", " QUEUE "}",
        "{\"id\": \"a\", \"body\": \"\"}", "{\"id\": \"a\", \"body\": 1, " QUEUE "}", "{\"id\": \"a\", \"body\": {\"base64\": \"Z\"}, " QUEUE "}",
        "{\"id\": \"a\", \"body\": {\"base64\": \"\", \"b\": 1}, " QUEUE "}", "{\"id\": \"a\", \"body\": \"\", \"headers\": [[\"a\"]]}",
        "{\"id\": \"a\", \"body\": \"\", \"headers\": {\"a\": \"b\"}}", "{\"id\": \"a\", \"body\": \"\", \"other\": 1, " QUEUE "}",
        "{\"id\": \"a\", \"body\": \"\", \"status\": \"any\", " QUEUE "}", "{\"id\": \"a\", \"body\": \"\", \"failed_at\": \"now\", " QUEUE "}"
    };
    (void)state;
    for (size_t i = 0; i < COUNT(none); i++) {
        char problem[CLI_PROBLEM_SIZE] = "";
        cli_failed_line line;
        assert_int_equal(cli_failed_line_read(none[i], strlen(none[i]), &line, problem), -1);
        assert_string_not_equal(problem, "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base64),
        cmocka_unit_test(test_no_base64),
        cmocka_unit_test(test_out_and_in),
        cmocka_unit_test(test_no_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
