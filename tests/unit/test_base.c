/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines of the log, text that is cut, pauses, exit codes.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sysexits.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/printable.h"

static char told[8192];

static void write_line(void *argument, int level, const char *line, size_t size)
{
    (void)argument, (void)level;
    assert_int_equal(strlen(line), size);
    assert_true(size < sizeof told);
    memcpy(told, line, size + 1);
}

static int set_up(void **state)
{
    (void)state;
    wb_log_set_writer(write_line, NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    wb_log_set_writer(NULL, NULL);
    return 0;
}

static void assert_value(const char *value, const char *expected)
{
    wb_log_event(WB_LOG_ERROR, "text", { "left_out", NULL }, { "value", value });
    const char *found = strstr(told, " level=error msg=text value=");
    assert_non_null(found);
    assert_string_equal(found + strlen(" level=error msg=text value="), expected);
}

/* Whatever a peer or a server wrote: it is one value, on one line, and orders no terminal about. */
static void test_values_of_a_line(void **state)
{
    (void)state;
    assert_value("plain-1.0/x", "plain-1.0/x");
    assert_value("", "\"\"");
    assert_value("two words", "\"two words\"");
    assert_value("a=b", "\"a=b\"");
    assert_value("a\"b\\c", "\"a\\\"b\\\\c\"");
    assert_value("a\nlevel=info", "\"a\\nlevel=info\"");
    assert_value("\x1b[2J\t\r\x7f", "\"\\x1b[2J\\x09\\x0d\\x7f\"");
}

static void test_long_lines_are_cut(void **state)
{
    static char value[6000];
    (void)state;
    memset(value, 'x', sizeof value - 1);
    wb_log_event(WB_LOG_ERROR, "text", { "value", value }, { "more", "words" });
    assert_int_equal(strlen(told), 4095);
    assert_int_equal(told[4094], 'x');
}

static void test_levels(void **state)
{
    (void)state;
    told[0] = '\0';
    wb_log_event(WB_LOG_DEBUG, "not told", { "a", "b" });
    assert_string_equal(told, "");
    wb_log_set_level(WB_LOG_DEBUG);
    wb_log_event(WB_LOG_DEBUG, "told", { "a", "b" });
    assert_non_null(strstr(told, " level=debug msg=told a=b"));
    wb_log_set_level(WB_LOG_INFO);
}

/* Never within a character, and what belongs to none is shown to be unknown. */
static void test_text_is_cut_between_characters(void **state)
{
    static const struct {
        const char *text;
        size_t room;
        const char *copy;
    } rows[] = { { "", 1, "" }, { "abc", 4, "abc" }, { "abc", 3, "ab" }, { "a\xc3\xa4", 4, "a\xc3\xa4" },
                 { "a\xc3\xa4", 3, "a" }, { "\xf0\x9f\x98\x80!", 5, "\xf0\x9f\x98\x80" }, { "\xf0\x9f\x98\x80", 4, "" },
                 { "\xe4n", 5, "\xef\xbf\xbdn" }, { "\xe4n", 4, "\xef\xbf\xbd" }, { "\xe4n", 3, "" },
                 { "\xe2\x82", 9, "\xef\xbf\xbd\xef\xbf\xbd" }, { "\xed\xa0\x80", 99, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" } };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char copy[100];
        memset(copy, '#', sizeof copy);
        assert_int_equal(wb_utf8_copy(rows[i].text, copy, rows[i].room), strlen(rows[i].copy));
        assert_string_equal(copy, rows[i].copy);
    }
}

static void test_pauses_grow(void **state)
{
    static const int64_t expected[] = { 1, 2, 4, 8, 10, 10, 10 };
    (void)state;
    for (unsigned i = 0; i < sizeof expected / sizeof expected[0]; i++)
        assert_int_equal(wb_clock_backoff(1, i, 10), expected[i]);
    assert_int_equal(wb_clock_backoff(1, UINT32_MAX, 10), 10);
}

static void assert_code(int result, int cause, int expected)
{
    const wb_error error = { .result = result, .cause = cause };
    assert_int_equal(wb_error_exit_code(&error), expected);
}

static void test_exit_codes(void **state)
{
    (void)state;
    assert_code(WB_NOT_CONNECTED, WB_CAUSE_UNREACHABLE, EX_UNAVAILABLE);
    assert_code(WB_IN_DOUBT, WB_CAUSE_SENDING, EX_UNAVAILABLE);
    assert_code(WB_FATAL, WB_CAUSE_REFUSED, EX_NOPERM);
    assert_code(WB_FATAL, WB_CAUSE_MISSING, EX_OSFILE);
    assert_code(WB_FATAL, WB_CAUSE_MISMATCH, EX_OSFILE);
    assert_code(WB_FATAL, WB_CAUSE_CONFIG, EX_CONFIG);
    assert_code(WB_RETRY, WB_CAUSE_SERVER, EX_TEMPFAIL);
    assert_code(WB_NOT_CONNECTED, WB_CAUSE_OTHER, EX_UNAVAILABLE);
    assert_code(WB_FATAL, WB_CAUSE_OTHER, EX_SOFTWARE);
}

/* Whose trouble it is decides whether a message counts an attempt. */
static void test_whose_trouble(void **state)
{
    (void)state;
    for (int result = WB_RETRY; result <= WB_FATAL; result++)
        for (int cause = WB_CAUSE_OTHER; cause <= WB_CAUSE_SENDING; cause++) {
            const int is_away = result == WB_NOT_CONNECTED || result == WB_IN_DOUBT;
            const int is_trouble = cause == WB_CAUSE_SERVER || cause == WB_CAUSE_UNREACHABLE || cause == WB_CAUSE_SENDING;
            const wb_error error = { .result = result, .cause = cause };
            assert_int_equal(wb_error_is_servers(&error), is_away || (result == WB_RETRY && is_trouble));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_values_of_a_line, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_long_lines_are_cut, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_levels, set_up, tear_down),
        cmocka_unit_test(test_text_is_cut_between_characters),
        cmocka_unit_test(test_pauses_grow),
        cmocka_unit_test(test_exit_codes),
        cmocka_unit_test(test_whose_trouble),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
