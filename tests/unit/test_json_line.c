/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines of `send --json-lines`: what is taken, and the field that is named when something is wrong.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/buffer.h"
#include "core/cli/json_line.h"

static void assert_refused(const char *line, const char *problem)
{
    cli_json_line message;
    char text[CLI_PROBLEM_SIZE];
    assert_int_equal(cli_json_line_read(line, strlen(line), &message, text), -1);
    assert_null(message.message);
    if (!strstr(text, problem))
        fail_msg("expected \"%s\" in: %s", problem, text);
}

static void assert_body(const char *line, const char *body)
{
    cli_json_line message;
    char text[CLI_PROBLEM_SIZE];
    assert_int_equal(cli_json_line_read(line, strlen(line), &message, text), 0);
    assert_int_equal(message.outgoing.body_size, strlen(body));
    assert_memory_equal(message.outgoing.body ? message.outgoing.body : "", body, strlen(body));
    cli_json_line_free(&message);
}

static void test_whole(void **state)
{
    static const char line[] = "{\"id\": \"a\", \"key\": \"k\", \"body\": {\"n\": 1}, \"headers\": {\"x\": \"1\", \"y\": \"\"}}\n";
    cli_json_line message;
    char text[CLI_PROBLEM_SIZE];
    (void)state;
    assert_int_equal(cli_json_line_read(line, strlen(line), &message, text), 0);
    const wb_outgoing *outgoing = &message.outgoing;
    assert_int_equal(outgoing->id_size, 1);
    assert_memory_equal(outgoing->id, "a", 1);
    assert_int_equal(outgoing->key_size, 1);
    assert_memory_equal(outgoing->key, "k", 1);
    assert_int_equal(outgoing->header_count, 2);
    assert_string_equal(outgoing->headers[0].name, "x");
    assert_string_equal(outgoing->headers[0].value, "1");
    assert_string_equal(outgoing->headers[1].value, "");
    cli_json_line_free(&message);
}

static void test_bodies(void **state)
{
    (void)state;
    assert_body("{}", "");
    assert_body("{\"body\": \"text\"}", "text");
    assert_body("{\"body\": \"\"}", "");
    assert_body("{\"body\": [1, null]}", "[1,null]");
    assert_body("{\"body\": null}", "null");
    assert_body("{\"body\": 1.5}", "1.5");
}

static void test_fields_of_another_type(void **state)
{
    (void)state;
    assert_refused("{\"id\": 42}", "field \"id\" is a number: write a string");
    assert_refused("{\"id\": null}", "field \"id\" is null");
    assert_refused("{\"id\": \"\"}", "field \"id\" is empty");
    assert_refused("{\"key\": [\"k\"]}", "field \"key\" is an array");
    assert_refused("{\"key\": \"\"}", "field \"key\" is empty");
    assert_refused("{\"headers\": \"a=b\"}", "field \"headers\" is a string");
    assert_refused("{\"headers\": {\"ok\": \"1\", \"n\": 1}}", "field \"headers.n\" is a number: a header's value is a string");
    assert_refused("{\"headers\": {\"n\": null}}", "field \"headers.n\" is null");
    assert_refused("{\"headers\": {\"\": \"v\"}}", "header without a name");
}

static void test_unknown_fields(void **state)
{
    (void)state;
    assert_refused("{\"header\": {}}", "field \"header\" is unknown; did you mean \"headers\"?");
    assert_refused("{\"body\": 1, \"destination\": \"q\"}", "field \"destination\" is unknown; there are id, key, body and headers");
    assert_refused("{\"Id\": \"a\"}", "field \"Id\" is unknown");
}

static void test_no_object(void **state)
{
    (void)state;
    assert_refused("[]", "not a JSON object: it is an array");
    assert_refused("{\"id\": \"a\"", "not a JSON object: ");
    assert_refused("{} {}", "not a JSON object: ");
    assert_refused("{\"id\": \"a\", \"id\": \"b\"}", "duplicate");
    assert_refused("{\"id\": \"a\\u0000b\"}", "not a JSON object: ");
    assert_refused("{\"id\": \"\xff\"}", "not a JSON object: ");
}

static void test_number_of_headers(void **state)
{
    wb_buffer line = { 0 };
    cli_json_line message;
    char part[40], text[CLI_PROBLEM_SIZE];
    (void)state;
    wb_buffer_put(&line, "{\"headers\": {", 13);
    for (int i = 0; i < CLI_HEADERS_MAX; i++)
        wb_buffer_put(&line, part, (size_t)snprintf(part, sizeof part, "%s\"h%d\": \"\"", i ? ", " : "", i));
    const size_t before = line.size;
    wb_buffer_put(&line, "}}", 3);
    assert_int_equal(cli_json_line_read((const char *)line.data, line.size - 1, &message, text), 0);
    assert_int_equal(message.outgoing.header_count, CLI_HEADERS_MAX);
    cli_json_line_free(&message);
    line.size = before;
    wb_buffer_put(&line, ", \"last\": \"\"}}", 15);
    assert_refused((const char *)line.data, "more than 256 headers; \"last\" is one too many");
    wb_buffer_free(&line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_fields_of_another_type),
        cmocka_unit_test(test_unknown_fields),
        cmocka_unit_test(test_no_object),
        cmocka_unit_test(test_number_of_headers),
    };
    return cmocka_run_group_tests_name("json_line", tests, NULL, NULL);
}
