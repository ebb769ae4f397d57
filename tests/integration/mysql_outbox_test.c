/* SPDX-License-Identifier: Apache-2.0
 *
 * Outside of a batch: what only MariaDB has. */
#include "config.h"

#include "core/base/clock.h"
#include "tests/integration/mysql_fixture.h"

static int linger(void *argument, const wb_pending *pending)
{
    size_t *visited = argument;
    (void)pending;
    ++*visited;
    wb_clock_pause(1500 * WB_MILLISECOND, NULL);
    return WB_OK;
}

/* A row is dispatched for longer than transactions may be idle; its lock is held all the while. */
static void test_sweep_outlasts_idle_transactions(void **state)
{
    size_t visited = 0;
    (void)state;
    observe("insert into orders_pending values (10, 'x'), (11, 'x')");
    wb_storage_session *other = open_session(&orders);
    observe("set global idle_transaction_timeout = 1"); /* of sessions that are opened now */
    wb_storage_session *s = open_session(&orders);
    observe("set global idle_transaction_timeout = default");
    const int result = ops->sweep(s, 100, 10, linger, &visited, &failure);
    if (result != WB_OK)
        fail_msg("%s", failure.text);
    assert_int_equal(visited, 2);
    begin_batch(s, 12); /* the limit is there: this one is ended by it */
    wb_clock_pause(2500 * WB_MILLISECOND, NULL);
    assert_int_equal(commit_batch(s, 12, "x", NULL), WB_NOT_CONNECTED);
    assert_int_equal(ops->next_pending(other, 0, 100, linger, &visited, &failure), WB_OK);
    assert_int_equal(visited, 3);
    ops->close(other);
    ops->close(s);
}

const struct CMUnitTest own_tests[] = {
    TEST_ORDERS(test_sweep_outlasts_idle_transactions),
};
const size_t own_count = sizeof own_tests / sizeof own_tests[0];
