/* SPDX-License-Identifier: Apache-2.0
 *
 * libwaybill: what it refuses before it opens anything, and how a program is told.
 */
#include "config.h"

#include "tests/unit/conf_support.h"

#include <waybill/session.h>

static wb_reason reason;

static int open_with(const wb_endpoint_options *options, size_t size)
{
    wb_endpoint *endpoint = NULL;
    memset(&reason, 0, sizeof reason);
    int r = wb_endpoint_open(options, size, &endpoint, &reason);
    assert_null(endpoint);
    assert_int_equal(reason.result, r);
    return r;
}

static void assert_refused(const wb_endpoint_options *options, size_t size, const char *text)
{
    assert_int_equal(open_with(options, size), WB_FATAL);
    assert_int_equal(reason.cause, WB_CAUSE_CONFIG);
    assert_non_null(strstr(reason.text, text));
}

/* Whoever asks for what is not known here would be told that it is done. */
static void test_options_of_a_later_version(void **state)
{
    const char *path = conf_write("waybill.conf", "endpoints = ();");
    const wb_endpoint_options flags = { .config = path, .flags = WB_ENDPOINT_HANDLERS << 1 };
    const wb_endpoint_options reserved = { .config = path, .reserved = 1 };
    (void)state;
    assert_refused(&flags, sizeof flags, "this version does not know");
    assert_refused(&reserved, sizeof reserved, "this version does not know");
    /* a program that was built before there was the field */
    assert_refused(&reserved, offsetof(wb_endpoint_options, reserved), "endpoints");
}

static void test_what_is_wrong_with_the_file(void **state)
{
    const wb_endpoint_options file = { .config = conf_write("waybill.conf", "log_levle = \"info\";\nendpoints = ();") };
    const wb_endpoint_options missing = { .config = "/nonexistent/waybill.conf" };
    (void)state;
    assert_refused(&file, sizeof file, "waybill.conf:1: unknown option \"log_levle\"");
    assert_refused(&missing, sizeof missing, "/nonexistent/waybill.conf");
    assert_refused(&(wb_endpoint_options){ 0 }, sizeof(wb_endpoint_options), "no configuration file is named");
    assert_refused(NULL, 0, "no configuration file is named");
    assert_int_equal(wb_endpoint_open(&missing, sizeof missing, NULL, NULL), WB_FATAL); /* who does not ask */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options_of_a_later_version),
        cmocka_unit_test(test_what_is_wrong_with_the_file),
    };
    return cmocka_run_group_tests(tests, conf_setup, conf_teardown);
}
