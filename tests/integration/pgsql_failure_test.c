/* SPDX-License-Identifier: Apache-2.0
 *
 * Bad days that only PostgreSQL has. */
#include "config.h"

#include "core/base/clock.h"
#include "tests/integration/pgsql_fixture.h"

static void test_serialization_failure_is_abort(void **state)
{
    wb_storage_session *s = open_session(&orders);
    (void)state;
    begin_batch(s, 10);
    assert_int_equal(api->defer(s, 1,
                                "do $$ begin raise exception using errcode = "
                                "'serialization_failure'; end $$",
                                NULL),
                     WB_OK);
    assert_int_equal(commit_batch(s, 10, "x", NULL), WB_ABORT);
    begin_batch(s, 11);
    assert_int_equal(commit_batch(s, 11, "x", NULL), WB_OK);
    ops->close(s);
}

/* Whose fault is not known from the code: the host finds out. */
static void test_statement_timeout_is_the_servers(void **state)
{
    size_t item;
    (void)state;
    for (int prepare = 0; prepare < 2; prepare++) {
        endpoint_destroy(&orders);
        orders.config.statement_timeout = 50 * WB_MILLISECOND;
        orders.config.prepare = prepare;
        endpoint_create(&orders);
        wb_storage_session *s = open_session(&orders);
        begin_batch(s, 10);
        assert_int_equal(api->defer(s, 6, "select pg_sleep(60)", NULL), WB_OK);
        assert_int_equal(commit_batch(s, 10, "x", &item), WB_RETRY);
        assert_int_equal(item, SIZE_MAX);
        assert_int_equal(failure.cause, WB_CAUSE_SERVER);
        assert_non_null(strstr(failure.text, "57014"));
        ops->close(s);
    }
}

const struct CMUnitTest own_tests[] = {
    TEST_PROXIED(test_serialization_failure_is_abort),
    TEST_PROXIED(test_statement_timeout_is_the_servers),
};
const size_t own_count = sizeof own_tests / sizeof own_tests[0];
