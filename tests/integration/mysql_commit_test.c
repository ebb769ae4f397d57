/* SPDX-License-Identifier: Apache-2.0
 *
 * What COMMIT answers. No trigger can fail there, so that the errors are put in place of the
 * server's answer, which committed. */
#include "config.h"

#include <stdlib.h>

#include "core/base/clock.h"
#include "tests/integration/mysql_fixture.h"
#include "tests/integration/proxy.h"

static proxy *between;

static int set_up(void **state)
{
    (void)state;
    endpoint_install(&orders, "orders");
    between = proxy_start(getenv("MYSQL_HOST"), atoi(getenv("MYSQL_PORT")));
    orders.config.port = proxy_port(between);
    orders.config.ssl_mode = MYS_SSL_DISABLED; /* the proxy speaks, too */
    endpoint_destroy(&orders);
    endpoint_create(&orders);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    at_crash_point = NULL;
    proxy_stop(between);
    endpoint_destroy(&orders);
    return 0;
}

static unsigned next_code; /* 0: the connection breaks instead */

static void speak_instead(const char *name)
{
    char text[] = "\x0e\0\0\1\xff..#HY000gone!"; /* a packet of 14 bytes, the first of its answer */
    text[5] = (char)(next_code & 0xff);
    text[6] = (char)(next_code >> 8);
    if (strcmp(name, "commit_sent") != 0)
        return;
    await_number("select count(*) from orders_dedup", 1);
    wb_clock_pause(50 * WB_MILLISECOND, NULL);
    proxy_to_client(between, PROXY_PASS);
    if (next_code)
        proxy_tell_client(between, text, sizeof text - 1);
    else
        proxy_cut(between);
}

static void test_what_commit_answers(void **state)
{
    static const struct {
        unsigned code;
        int result;
    } rows[] = {
        { 3101, WB_ABORT },    /* certification failed in the group: it is rolled back */
        { 1213, WB_ABORT },    /* deadlock */
        { 1205, WB_RETRY },    /* a wait for a lock ended */
        { 1180, WB_IN_DOUBT }, /* "error during COMMIT": of one engine, or of the binary log */
        { 1105, WB_IN_DOUBT }, /* unknown */
        { 1598, WB_IN_DOUBT }, /* the binary log cannot be written */
        { 1927, WB_IN_DOUBT }, /* killed */
        { 1053, WB_IN_DOUBT }, /* shutdown */
        { 1290, WB_NOT_CONNECTED }, /* read only: refused in front of it */
        { 0, WB_IN_DOUBT },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        wb_storage_session *s = open_session(&orders);
        wb_claim claim = claim_of("a");
        observe("delete from orders_dedup");
        begin_claims(s, 10 + i, &claim, 1);
        next_code = rows[i].code;
        proxy_to_client(between, PROXY_SWALLOW);
        at_crash_point = speak_instead;
        const int result = commit_batch(s, 10 + i, NULL, NULL);
        at_crash_point = NULL;
        if (result != rows[i].result || (rows[i].code && failure.native_code != rows[i].code))
            fail_msg("error %u: class %d: %s", rows[i].code, result, failure.text);
        ops->close(s);
        s = open_session(&orders);
        begin_claims(s, 50 + i, &claim, 1);
        assert_int_equal(claim.duplicate_of, 10 + i); /* the record knows better */
        ops->close(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_commit_answers, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("mysql: what COMMIT answers", tests, load_plugin, NULL);
}
