/* SPDX-License-Identifier: Apache-2.0
 *
 * Outside of a batch: what only PostgreSQL has. */
#include "config.h"

#include "core/base/clock.h"
#include "tests/integration/pgsql_fixture.h"

static void store(wb_storage_session *s, uint64_t batch, const char *operations, size_t size)
{
    wb_commit commit = { .struct_size = sizeof commit,
                         .batch = batch,
                         .operations = operations,
                         .operations_size = size };
    begin_batch(s, batch);
    if (ops->commit(s, &commit, &failure) != WB_OK)
        fail_msg("%s", failure.text);
}

/* synchronous_commit is off for a mark and for nothing else. */
static void test_mark_alone_is_not_flushed(void **state)
{
    wb_storage_session *s = open_session(&orders);
    const wb_mark mark = { .batch = 10 };
    wb_begin begin = { .struct_size = sizeof begin, .marks = &mark, .mark_count = 1, .batch = 11 };
    (void)state;
    store(s, 10, "x", 1);
    assert_int_equal(ops->begin(s, &begin, &failure), WB_OK);
    PGresult *setting = PQexec(api->connection(s, 0), "show synchronous_commit");
    assert_string_equal(PQgetvalue(setting, 0, 0), "on");
    PQclear(setting);
    ops->close(s);

    /* a trigger tells what the mark ran with */
    observe("create table if not exists seen (setting text)");
    observe("truncate seen");
    observe("create or replace function see() returns trigger language plpgsql as $$ begin "
            "insert into seen values (current_setting('synchronous_commit')); return null; end $$");
    observe("create trigger see after delete on orders_pending "
            "for each row execute function see()");
    s = open_session(&orders);
    store(s, 10, "x", 1);
    assert_int_equal(ops->mark(s, &mark, 1, &failure), WB_OK);
    observe("drop trigger see on orders_pending");
    assert_int_equal(observe_number("select count(*) from seen where setting = 'off'"), 1);
    ops->close(s);
}

/* And for what is forgotten; not for what is remembered. */
static void test_forgotten_alone_is_not_flushed(void **state)
{
    wb_storage_session *s = open_session(&orders);
    wb_claim ids[] = { claim_of("a"), claim_of("b") };
    (void)state;
    ids[0].duplicate_of = ids[1].duplicate_of = 10;
    wb_begin begin = { .struct_size = sizeof begin, .forgotten = ids + 1, .forgotten_count = 1 };
    observe("create table if not exists seen (setting text)");
    observe("truncate seen");
    observe("create or replace function see() returns trigger language plpgsql as $$ begin "
            "insert into seen values (TG_OP || ' ' || current_setting('synchronous_commit')); return null; end $$");
    observe("create trigger see after insert or delete on orders_dedup "
            "for each row execute function see()");
    assert_int_equal(ops->remember(s, ids, 2, &failure), WB_OK);
    assert_int_equal(ops->forget(s, ids, 1, &failure), WB_OK);
    assert_int_equal(ops->begin(s, &begin, &failure), WB_OK);
    assert_int_equal(ops->rollback(s, &failure), WB_OK);
    observe("drop trigger see on orders_dedup");
    assert_int_equal(observe_number("select count(*) from seen where setting = 'INSERT on'"), 2);
    assert_int_equal(observe_number("select count(*) from seen where setting = 'DELETE off'"), 2);
    assert_int_equal(observe_number("select count(*) from orders_dedup"), 0);
    ops->close(s);
}

/* What another server gave may be more than a bigint holds. */
static void test_large_numbers_are_not_remembered(void **state)
{
    wb_storage_session *s = open_session(&orders);
    wb_claim id = claim_of("a");
    (void)state;
    id.duplicate_of = UINT64_C(1) << 63;
    assert_int_equal(ops->remember(s, &id, 1, &failure), WB_FATAL);
    assert_int_equal(failure.cause, WB_CAUSE_TOO_LARGE);
    id.duplicate_of = INT64_MAX;
    assert_int_equal(ops->remember(s, &id, 1, &failure), WB_OK);
    ops->close(s);
}

/* ---- a time limit for idle transactions -------------------------------------------------- */

static int linger(void *argument, const wb_pending *pending)
{
    size_t *visited = argument;
    (void)pending;
    ++*visited;
    wb_clock_pause(400 * WB_MILLISECOND, NULL);
    return WB_OK;
}

/* A row is dispatched for longer than that, with sessions of either kind. */
static void test_sweep_outlasts_idle_transactions(void **state)
{
    endpoint patient;
    wb_storage_session *early = open_session(&orders); /* the limit is not its */
    (void)state;
    alter_role("set idle_in_transaction_session_timeout = '100ms'");
    for (int prepare = 0; prepare < 2; prepare++) {
        size_t visited = 0;
        endpoint_init(&patient, "orders");
        patient.config.prepare = prepare;
        endpoint_create(&patient);
        wb_storage_session *s = open_session(&patient);
        wb_storage_session *other = open_session(&patient);
        if (!prepare) {
            store(early, 10, "x", 1);
            store(early, 11, "x", 1);
        }
        const int result = ops->sweep(s, 100, 10, linger, &visited, &failure);
        if (result != WB_OK)
            fail_msg("%s", failure.text);
        assert_int_equal(visited, 2);
        /* and the lock is free again */
        assert_int_equal(ops->next_pending(other, 0, 100, linger, &visited, &failure), WB_OK);
        assert_int_equal(visited, 3);
        ops->close(other);
        ops->close(s);
        endpoint_destroy(&patient);
    }
    ops->close(early);
    alter_role("reset idle_in_transaction_session_timeout");
}

/* ---- behind a pooler -------------------------------------------------------------------- */

#define OPEN "select count(*) from pg_stat_activity where application_name like 'waybill/%' " \
             "and datname = current_database() and state like 'idle in transaction%'"

static int sweep_too(void *argument, const wb_pending *pending)
{
    size_t visited = 0;
    (void)pending;
    assert_int_equal(ops->sweep(argument, 100, 10, linger, &visited, &failure), WB_OK);
    assert_int_equal(visited, 0);
    await_number(OPEN, 1);
    return WB_OK;
}

/* The lock is taken in a transaction. Who does not get it has none open either. */
static void test_whose_sweep_it_is_not(void **state)
{
    (void)state;
    endpoint_destroy(&orders);
    orders.config.prepare = 0;
    endpoint_create(&orders);
    wb_storage_session *s = open_session(&orders);
    wb_storage_session *other = open_session(&orders);
    store(s, 10, "x", 1);
    assert_int_equal(ops->sweep(s, 100, 10, sweep_too, other, &failure), WB_OK);
    await_number(OPEN, 0);
    ops->close(other);
    ops->close(s);
}

const struct CMUnitTest own_tests[] = {
    TEST_ORDERS(test_mark_alone_is_not_flushed),
    TEST_ORDERS(test_forgotten_alone_is_not_flushed),
    TEST_ORDERS(test_large_numbers_are_not_remembered),
    TEST_ORDERS(test_sweep_outlasts_idle_transactions),
    TEST_ORDERS(test_whose_sweep_it_is_not),
};
const size_t own_count = sizeof own_tests / sizeof own_tests[0];
