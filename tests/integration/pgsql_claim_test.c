/* SPDX-License-Identifier: Apache-2.0
 *
 * Claims: what is a duplicate, of which batch, and who waits for whom. */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "tests/integration/pgsql_fixture.h"

#define WAITING                                                                                    \
    "select count(*) from pg_stat_activity where wait_event_type = 'Lock' "                        \
    "and application_name like 'waybill/%'"

static endpoint orders;

static int set_up(void **state)
{
    (void)state;
    endpoint_install(&orders, "orders");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    endpoint_destroy(&orders);
    return 0;
}

static void test_claims_are_ours_then_duplicates(void **state)
{
    wb_storage_session *s = open_session(&orders);
    wb_claim claims[] = { claim_of("a"), claim_of("b"), claim_of("c") };
    (void)state;
    begin_claims(s, 10, claims, 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(claims[i].duplicate_of, 0);
    assert_int_equal(commit_batch(s, 10, NULL, NULL), WB_OK);

    wb_claim more[] = { claim_of("a"), claim_of("aa"), claim_of("c"), claim_of("d") };
    begin_claims(s, 11, more, 4);
    assert_int_equal(more[0].duplicate_of, 10);
    assert_int_equal(more[1].duplicate_of, 0);
    assert_int_equal(more[2].duplicate_of, 10);
    assert_int_equal(more[3].duplicate_of, 0);
    assert_int_equal(commit_batch(s, 11, NULL, NULL), WB_OK);

    wb_claim all[] = { claim_of("a"), claim_of("aa"), claim_of("d") };
    begin_claims(s, 12, all, 3);
    assert_int_equal(all[0].duplicate_of, 10);
    assert_int_equal(all[1].duplicate_of, 11);
    assert_int_equal(all[2].duplicate_of, 11);
    assert_int_equal(ops->rollback(s, &failure), WB_OK);
    assert_int_equal(observe_number("select count(*) from orders_dedup"), 5);
    ops->close(s);
}

/* After a commit in doubt the host claims again, perhaps under the same number. */
static void test_same_batch_number_again_is_a_duplicate(void **state)
{
    wb_storage_session *s = open_session(&orders);
    wb_claim claim = claim_of("a");
    (void)state;
    begin_claims(s, 10, &claim, 1);
    assert_int_equal(commit_batch(s, 10, NULL, NULL), WB_OK);
    begin_claims(s, 10, &claim, 1);
    assert_int_equal(claim.duplicate_of, 10);
    assert_int_equal(ops->rollback(s, &failure), WB_OK);
    ops->close(s);
}

static void test_ids_are_bytes(void **state)
{
    static char longest[255];
    char other[255];
    wb_storage_session *s = open_session(&orders);
    (void)state;
    memset(longest, 0xff, sizeof longest);
    memcpy(other, longest, sizeof other);
    other[254] = (char)0xfe;
    wb_claim claims[] = {
        { "\0", 1, 7 },  { "\0\0", 2, 7 }, { "A", 1, 7 },   { "a", 1, 7 },
        { "a\0", 2, 7 }, { "a ", 2, 7 },   { "a'\\", 3, 7 }, { "{a,NULL}", 8, 7 },
        { other, 255, 7 }, { longest, 255, 7 },
    };
    const size_t count = sizeof claims / sizeof claims[0];
    begin_claims(s, 20, claims, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(claims[i].duplicate_of, 0);
    assert_int_equal(commit_batch(s, 20, NULL, NULL), WB_OK);
    assert_int_equal(observe_number("select count(*) from orders_dedup"), (long long)count);
    begin_claims(s, 21, claims, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(claims[i].duplicate_of, 20);
    assert_int_equal(ops->rollback(s, &failure), WB_OK);
    ops->close(s);
}

/* One id for each byte: alone, and 255 times. */
#define STRANGE 512

static void test_any_byte(void **state)
{
    static char ids[STRANGE][255];
    wb_claim claims[STRANGE];
    wb_storage_session *s = open_session(&orders);
    (void)state;
    for (size_t i = 0; i < STRANGE; i++) {
        memset(ids[i], (int)(i / 2), sizeof ids[i]);
        claims[i] = (wb_claim){ ids[i], i % 2 ? 255 : 1, 7 };
    }
    begin_claims(s, 20, claims, STRANGE);
    for (size_t i = 0; i < STRANGE; i++)
        assert_int_equal(claims[i].duplicate_of, 0);
    wb_commit commit = { .struct_size = sizeof commit, .batch = 20, .released = claims + 100,
                         .released_count = 100 };
    assert_int_equal(ops->commit(s, &commit, &failure), WB_OK);
    begin_claims(s, 21, claims, STRANGE); /* some duplicates, so that each is looked up */
    for (size_t i = 0; i < STRANGE; i++)
        assert_int_equal(claims[i].duplicate_of, i >= 100 && i < 200 ? 0 : 20);
    assert_int_equal(commit_batch(s, 21, NULL, NULL), WB_OK);
    ops->close(s);
}

static void test_endpoints_do_not_share_ids(void **state)
{
    endpoint billing;
    wb_claim claim = claim_of("a");
    (void)state;
    endpoint_install(&billing, "billing");
    wb_storage_session *s = open_session(&orders);
    wb_storage_session *t = open_session(&billing);
    begin_claims(s, 10, &claim, 1);
    assert_int_equal(commit_batch(s, 10, NULL, NULL), WB_OK);
    begin_claims(t, 11, &claim, 1);
    assert_int_equal(claim.duplicate_of, 0);
    assert_int_equal(commit_batch(t, 11, NULL, NULL), WB_OK);
    ops->close(s);
    ops->close(t);
    endpoint_destroy(&billing);
}

static void test_rollback_frees_claims(void **state)
{
    wb_storage_session *s = open_session(&orders);
    wb_claim claim = claim_of("a");
    (void)state;
    begin_claims(s, 10, &claim, 1);
    assert_int_equal(ops->rollback(s, &failure), WB_OK);
    assert_int_equal(ops->rollback(s, &failure), WB_OK); /* nothing is open: no error */
    begin_claims(s, 11, &claim, 1);
    assert_int_equal(claim.duplicate_of, 0);
    ops->close(s); /* and so does the end of the session */
    s = open_session(&orders);
    begin_claims(s, 12, &claim, 1);
    assert_int_equal(claim.duplicate_of, 0);
    ops->close(s);
}

static void test_released_claims_are_free(void **state)
{
    wb_storage_session *s = open_session(&orders);
    wb_claim claims[] = { claim_of("a"), claim_of("b"), claim_of("c") };
    wb_commit commit = { .struct_size = sizeof commit,
                         .batch = 10,
                         .operations = "x",
                         .operations_size = 1,
                         .released = &claims[1],
                         .released_count = 2 };
    (void)state;
    begin_claims(s, 10, claims, 3);
    assert_int_equal(ops->commit(s, &commit, &failure), WB_OK);
    begin_claims(s, 11, claims, 3);
    assert_int_equal(claims[0].duplicate_of, 10);
    assert_int_equal(claims[1].duplicate_of, 0);
    assert_int_equal(claims[2].duplicate_of, 0);
    ops->close(s);
}

/* A message that was a duplicate must stay one when its claim is "released" by mistake of
 * somebody who shares the id: only this batch's own records go. */
static void test_release_spares_other_batches(void **state)
{
    wb_storage_session *s = open_session(&orders);
    wb_claim claim = claim_of("a");
    wb_commit commit = { .struct_size = sizeof commit, .batch = 11, .released = &claim,
                         .released_count = 1 };
    (void)state;
    begin_claims(s, 10, &claim, 1);
    assert_int_equal(commit_batch(s, 10, NULL, NULL), WB_OK);
    begin_claims(s, 11, &claim, 1);
    assert_int_equal(ops->commit(s, &commit, &failure), WB_OK);
    assert_int_equal(observe_number("select count(*) from orders_dedup"), 1);
    ops->close(s);
}

typedef struct rival {
    wb_claim claims[3];
    size_t count;
    uint64_t batch;
    int result;
    pthread_t thread;
} rival;

static void *run_rival(void *argument)
{
    rival *r = argument;
    wb_error error;
    wb_storage_session *s = NULL;
    r->result = ops->open(orders.persistence, &s, &error);
    if (r->result != WB_OK)
        return NULL;
    wb_begin begin = { .struct_size = sizeof begin,
                       .batch = r->batch,
                       .claims = r->claims,
                       .claim_count = r->count };
    r->result = ops->begin(s, &begin, &error);
    if (r->result == WB_OK)
        r->result = ops->rollback(s, &error);
    ops->close(s);
    return NULL;
}

static void start_rival(rival *r, uint64_t batch)
{
    r->batch = batch;
    r->count = 3;
    r->claims[0] = claim_of("a");
    r->claims[1] = claim_of("b");
    r->claims[2] = claim_of("c");
    assert_int_equal(pthread_create(&r->thread, NULL, run_rival, r), 0);
}

static void test_second_waits_for_first(void **state)
{
    rival r;
    wb_storage_session *s = open_session(&orders);
    wb_claim claim = claim_of("b");
    (void)state;
    begin_claims(s, 10, &claim, 1);
    start_rival(&r, 11);
    await_number(WAITING, 1);
    assert_int_equal(commit_batch(s, 10, NULL, NULL), WB_OK);
    pthread_join(r.thread, NULL);
    assert_int_equal(r.result, WB_OK);
    assert_int_equal(r.claims[0].duplicate_of, 0);
    assert_int_equal(r.claims[1].duplicate_of, 10);
    assert_int_equal(r.claims[2].duplicate_of, 0);

    claim = claim_of("c");
    begin_claims(s, 12, &claim, 1);
    start_rival(&r, 13);
    await_number(WAITING, 1);
    assert_int_equal(ops->rollback(s, &failure), WB_OK);
    pthread_join(r.thread, NULL);
    assert_int_equal(r.result, WB_OK);
    assert_int_equal(r.claims[2].duplicate_of, 0);
    ops->close(s);
}

/* Many batches with the same ids, all at once: they queue up, none deadlocks. */
static void test_same_ids_never_deadlock(void **state)
{
    rival rivals[8];
    (void)state;
    for (int round = 0; round < 10; round++) {
        for (size_t i = 0; i < 8; i++)
            start_rival(&rivals[i], 100 + i);
        for (size_t i = 0; i < 8; i++) {
            pthread_join(rivals[i].thread, NULL);
            assert_int_equal(rivals[i].result, WB_OK);
        }
    }
}

static void test_lock_timeout_is_retry(void **state)
{
    endpoint impatient;
    wb_claim claim = claim_of("a");
    wb_storage_session *s = open_session(&orders);
    (void)state;
    for (int prepare = 0; prepare < 2; prepare++) {
        endpoint_init(&impatient, "orders");
        impatient.config.lock_timeout = 50 * WB_MILLISECOND;
        impatient.config.prepare = prepare;
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
    }
    ops->close(s);
}

static void test_batch_zero_claims_nothing(void **state)
{
    wb_storage_session *s = open_session(&orders);
    (void)state;
    begin_batch(s, 0);
    assert_int_equal(api->defer(s, 0, "create table if not exists anything (t text)", NULL), WB_OK);
    assert_int_equal(commit_batch(s, 0, NULL, NULL), WB_OK);
    assert_int_equal(observe_number("select count(*) from orders_dedup"), 0);
    ops->close(s);
}

static void clean_up_record(const char *name)
{
    assert_string_equal(name, "claim_sent");
    at_crash_point = NULL;
    await_number("select count(*) from pg_stat_activity where application_name like 'waybill/%' "
                 "and state = 'idle in transaction'",
                 1);
    observe("delete from orders_dedup where key = 'a'");
}

/* A record keeps us from claiming, and is cleaned up before we look for it. */
static void test_record_cleaned_up_meanwhile(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
        TEST(test_claims_are_ours_then_duplicates),
        TEST(test_same_batch_number_again_is_a_duplicate),
        TEST(test_ids_are_bytes),
        TEST(test_any_byte),
        TEST(test_endpoints_do_not_share_ids),
        TEST(test_rollback_frees_claims),
        TEST(test_released_claims_are_free),
        TEST(test_release_spares_other_batches),
        TEST(test_second_waits_for_first),
        TEST(test_same_ids_never_deadlock),
        TEST(test_lock_timeout_is_retry),
        TEST(test_batch_zero_claims_nothing),
        TEST(test_record_cleaned_up_meanwhile),
    };
    return cmocka_run_group_tests_name("pgsql claims", tests, load_plugin, NULL);
}
