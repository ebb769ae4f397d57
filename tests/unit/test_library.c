/* SPDX-License-Identifier: Apache-2.0
 *
 * libwaybill: what it refuses before it opens anything, and how a program is told.
 */
#include "config.h"

#include "tests/unit/conf_support.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <waybill/session.h>

#include "core/endpoint/endpoint.h"

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

/* ---- memory that is out ------------------------------------------------------------------ */

static _Thread_local int fails_in; /* this thread's n-th allocation from now on, and none else; 0: none */

static int is_out(void)
{
    return fails_in > 0 && --fails_in == 0;
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
    return is_out() ? NULL : __real_malloc(size);
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
    return is_out() ? NULL : __real_calloc(count, size);
}

static const char *write_endpoint(void)
{
    char text[PATH_MAX + 1000], top[PATH_MAX], plugins[PATH_MAX + 10];
    assert_non_null(realpath(getenv("top_builddir") ? getenv("top_builddir") : ".", top));
    (void)snprintf(plugins, sizeof plugins, "%s/plugins", top);
    setenv("WAYBILL_PLUGIN_DIR", plugins, 1);
    (void)snprintf(text, sizeof text,
                   "endpoints = ( { name = \"orders\"; handlers = [\"%s/tests/unit/handlers/.libs/orders.so\"]; concurrency = 3;\n"
                   "  transport = { plugin = \"sqlite\"; file = \"queue.db\"; };\n"
                   "  persistence = { plugin = \"sqlite\"; file = \"data.db\"; }; } );\n",
                   top);
    return conf_write("run.conf", text);
}

static void install(const char *path)
{
    wb_setup *setup = NULL;
    wb_endpoint *endpoint = NULL;
    wb_problems problems = { 0 };
    wb_error error = { 0 };
    assert_int_equal(wb_setup_load(path, 0, &setup, &problems), WB_OK);
    assert_error_count(&problems, 0);
    assert_int_equal(wb_endpoint_create(&setup->endpoints[0], &endpoint, &error), WB_OK);
    assert_int_equal(wb_endpoint_install(endpoint, &error), WB_OK);
    wb_endpoint_destroy(endpoint);
    wb_setup_free(setup);
    wb_problems_free(&problems);
}

/* The n-th allocation while workers are started fails. @return what wb_endpoint_run() said. */
static int run_with(const char *path, int n)
{
    const wb_endpoint_options options = { .config = path, .flags = WB_ENDPOINT_HANDLERS };
    wb_endpoint *endpoint = NULL;
    sigset_t before, after;
    assert_int_equal(wb_endpoint_open(&options, sizeof options, &endpoint, &reason), WB_OK);
    wb_endpoint_quit(endpoint); /* as soon as they are */
    (void)pthread_sigmask(SIG_SETMASK, NULL, &before);
    fails_in = n;
    const int r = wb_endpoint_run(endpoint, &reason);
    fails_in = 0;
    (void)pthread_sigmask(SIG_SETMASK, NULL, &after);
    wb_endpoint_close(endpoint);
    for (int number = 1; number < 32; number++)
        assert_int_equal(sigismember(&before, number), sigismember(&after, number));
    return r;
}

/* Those that were started end, and the caller gets its signals as before. */
static void test_workers_without_memory(void **state)
{
    const char *path = write_endpoint();
    int n = 1, r;
    (void)state;
    install(path);
    while ((r = run_with(path, n)) != WB_OK) {
        assert_int_equal(r, WB_RETRY);
        assert_string_equal(reason.text, "out of memory");
        n++;
    }
    assert_true(n > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options_of_a_later_version),
        cmocka_unit_test(test_what_is_wrong_with_the_file),
        cmocka_unit_test(test_workers_without_memory),
    };
    return cmocka_run_group_tests(tests, conf_setup, conf_teardown);
}
