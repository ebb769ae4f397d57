/* SPDX-License-Identifier: Apache-2.0
 *
 * Delayed messages: what only PostgreSQL has. */
#include "config.h"

#include "tests/integration/pgsql_fixture.h"

#include "core/base/clock.h"

static void check(int result)
{
    if (result != WB_OK)
        fail_msg("%s", failure.text);
}

static int count(void *argument, const wb_delayed *message)
{
    (void)message;
    ++*(size_t *)argument;
    return WB_OK;
}

/* Behind a pooler a session keeps nothing from one transaction to the next, the plans' setting
 * and the flush that a fetch goes without least of all. */
static void test_behind_a_pooler(void **state)
{
    const wb_delayed_ops *store = ops->delayed;
    const char owner[WB_DELAYED_OWNER_SIZE] = "alice";
    const wb_delayed message = { .struct_size = sizeof message, .destination = "b",
                                 .destination_size = 1, .id = "a", .id_size = 1, .due = 1 };
    const wb_delayed_fetch fetch = { .struct_size = sizeof fetch, .limit = 9, .owner = owner,
                                     .lease = WB_SECOND };
    wb_delayed_key key = { .destination = "b", .destination_size = 1, .id = "a", .id_size = 1 };
    int64_t due = 0;
    int64_t now = 0;
    (void)state;
    endpoint_destroy(&orders);
    orders.info.delays = WB_DELAYS_BY_STORE;
    for (int prepare = 0; prepare < 2; prepare++) {
        size_t seen = 0;
        orders.config.prepare = prepare;
        endpoint_create(&orders);
        check(ops->install(orders.persistence, &failure));
        observe("delete from orders_delayed");
        wb_storage_session *s = open_session(&orders);
        check(store->store(s, &message, 1, &failure));
        check(store->fetch(s, &fetch, count, &seen, &failure));
        assert_int_equal(seen, 1);
        check(store->increment_failure_count(s, owner, &key, 1, 1, &failure));
        check(store->fetch(s, &fetch, count, &seen, &failure));
        check(store->remove(s, owner, &key, 1, &failure));
        assert_int_equal(key.was_there, 1);
        check(store->next(s, &due, &now, &failure));
        assert_true(due == WB_NEVER_DUE);
        await_number("select count(*) from pg_stat_activity where state like 'idle in trans%' "
                     "and application_name like 'waybill/%' and datname = current_database()",
                     0);
        begin_batch(s, 0);
        PGresult *settings = PQexec(api->connection(s, 0),
                                    "select current_setting('synchronous_commit') || "
                                    "current_setting('enable_seqscan')");
        assert_string_equal(PQgetvalue(settings, 0, 0), "onon");
        PQclear(settings);
        ops->close(s);
        if (!prepare)
            endpoint_destroy(&orders);
    }
}

const struct CMUnitTest own_tests[] = {
    TEST_ORDERS(test_behind_a_pooler),
};
const size_t own_count = sizeof own_tests / sizeof own_tests[0];
