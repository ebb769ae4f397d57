/* SPDX-License-Identifier: Apache-2.0
 *
 * Claims: what only PostgreSQL has. */
#include "config.h"

#include "core/base/clock.h"
#include "tests/integration/pgsql_fixture.h"

/* The limit is set with each transaction then. */
static void test_lock_timeout_without_prepare(void **state)
{
    endpoint impatient;
    wb_claim claim = claim_of("a");
    wb_storage_session *s = open_session(&orders);
    (void)state;
    endpoint_init(&impatient, "orders");
    impatient.config.lock_timeout = 50 * WB_MILLISECOND;
    impatient.config.prepare = 0;
    endpoint_create(&impatient);
    wb_storage_session *t = open_session(&impatient);
    begin_claims(s, 10, &claim, 1);
    wb_begin begin = { .struct_size = sizeof begin, .batch = 11, .claims = &claim,
                       .claim_count = 1 };
    assert_int_equal(ops->begin(t, &begin, &failure), WB_RETRY);
    assert_int_equal(failure.cause, WB_CAUSE_SERVER);
    assert_non_null(strstr(failure.text, "55P03"));
    assert_int_equal(ops->rollback(s, &failure), WB_OK);
    begin_claims(t, 12, &claim, 1); /* nothing was left open */
    assert_int_equal(claim.duplicate_of, 0);
    ops->close(t);
    endpoint_destroy(&impatient);
    ops->close(s);
}

static void clean_up_record(const char *name)
{
    assert_string_equal(name, "claim_sent");
    at_crash_point = NULL;
    await_number("select count(*) from pg_stat_activity where application_name like 'waybill/%' "
                 "and datname = current_database() and state = 'idle in transaction'",
                 1);
    observe("delete from orders_dedup where key = 'a'");
}

/* A record keeps us from claiming, and is cleaned up before we look for it. */
static void test_record_cleaned_up_before_the_look(void **state)
{
    wb_storage_session *s = open_session(&orders);
    wb_claim claims[] = { claim_of("a"), claim_of("b"), claim_of("c") };
    (void)state;
    observe("insert into orders_dedup values ('a', 5), ('c', 6)");
    at_crash_point = clean_up_record;
    begin_claims(s, 10, claims, 3);
    assert_int_equal(claims[0].duplicate_of, 0);
    assert_int_equal(claims[1].duplicate_of, 0);
    assert_int_equal(claims[2].duplicate_of, 6);
    assert_int_equal(commit_batch(s, 10, NULL, NULL), WB_OK);
    assert_int_equal(observe_number("select count(*) from orders_dedup where batch = 10"), 2);
    ops->close(s);
}

const struct CMUnitTest own_tests[] = {
    TEST_ORDERS(test_lock_timeout_without_prepare),
    TEST_ORDERS(test_record_cleaned_up_before_the_look),
};
const size_t own_count = sizeof own_tests / sizeof own_tests[0];
