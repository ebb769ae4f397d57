/* SPDX-License-Identifier: Apache-2.0
 *
 * Claims: what is a duplicate, of which batch, and who waits for whom. */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "tests/integration/sql_server.h"

static int victims;

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

/* However small the table is, who reads it whole would wait for claims of others. */
static void test_released_beside_open_claims(void **state)
{
    wb_storage_session *s = open_session(&orders), *other = open_session(&orders);
    char ids[40][8];
    wb_claim claims[40];
    wb_commit commit = { .struct_size = sizeof commit, .batch = 11, .released = claims, .released_count = 10 };
    (void)state;
    for (size_t i = 0; i < 40; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "%02zu", i);
        claims[i] = claim_of(ids[i]);
    }
    begin_claims(s, 11, claims, 20);
    begin_claims(other, 12, claims + 20, 20);
    const int64_t start = wb_clock_monotonic();
    assert_int_equal(ops->commit(s, &commit, &failure), WB_OK);
    assert_true(wb_clock_monotonic() - start < 10 * WB_SECOND);
    assert_int_equal(observe_number("select count(*) from orders_dedup"), 10);
    ops->close(other);
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
    await_waiting(1);
    assert_int_equal(commit_batch(s, 10, NULL, NULL), WB_OK);
    pthread_join(r.thread, NULL);
    assert_int_equal(r.result, WB_OK);
    assert_int_equal(r.claims[0].duplicate_of, 0);
    assert_int_equal(r.claims[1].duplicate_of, 10);
    assert_int_equal(r.claims[2].duplicate_of, 0);

    claim = claim_of("c");
    begin_claims(s, 12, &claim, 1);
    start_rival(&r, 13);
    await_waiting(1);
    assert_int_equal(ops->rollback(s, &failure), WB_OK);
    pthread_join(r.thread, NULL);
    assert_int_equal(r.result, WB_OK);
    assert_int_equal(r.claims[2].duplicate_of, 0);
    ops->close(s);
}

/* Many batches with the same ids, all at once: they queue up. When the first rolls back,
 * InnoDB may find its waiters in each other's way and pick a victim: it is told to come
 * again, and some batch gets on. */
static void test_same_ids_get_on(void **state)
{
    rival rivals[8];
    (void)state;
    for (int round = 0; round < 20; round++) {
        int aborted = 0;
        for (size_t i = 0; i < 8; i++)
            start_rival(&rivals[i], 100 + i);
        for (size_t i = 0; i < 8; i++) {
            pthread_join(rivals[i].thread, NULL);
            if (rivals[i].result != WB_OK)
                assert_int_equal(rivals[i].result, WB_ABORT);
            aborted += rivals[i].result != WB_OK;
        }
        assert_in_range(aborted, 0, words.may_deadlock ? 7 : 0);
        victims += aborted;
    }
    print_message("# %d of 160 were deadlock victims\n", victims);
}

/* ---- each id once ---------------------------------------------------------------- */

#define IDS 40
#define TRIES 60

static char all_ids[IDS][8];

typedef struct worker {
    unsigned seed;
    int wins[IDS];
    int aborted;
    int failed;
    pthread_t thread;
} worker;

static unsigned next_random(worker *w)
{
    w->seed = w->seed * 1103515245 + 12345;
    return w->seed / 65536;
}

/* Some ids in their order; half of the transactions are rolled back. */
static int try_batch(worker *w, wb_storage_session *s, uint64_t batch)
{
    wb_error error;
    wb_claim claims[IDS];
    size_t which[IDS];
    size_t count = 0;
    for (size_t i = 0; i < IDS; i++)
        if (next_random(w) % 3 == 0) {
            which[count] = i;
            claims[count++] = claim_of(all_ids[i]);
        }
    wb_begin begin = { .struct_size = sizeof begin, .batch = batch, .claims = claims,
                       .claim_count = count };
    wb_commit commit = { .struct_size = sizeof commit, .batch = batch };
    int result = ops->begin(s, &begin, &error);
    if (result != WB_OK)
        return result;
    if (next_random(w) % 2)
        return ops->rollback(s, &error);
    result = ops->commit(s, &commit, &error);
    for (size_t i = 0; i < count && result == WB_OK; i++)
        w->wins[which[i]] += claims[i].duplicate_of == 0;
    return result;
}

static void *run_worker(void *argument)
{
    worker *w = argument;
    wb_error error;
    wb_storage_session *s = NULL;
    if (ops->open(orders.persistence, &s, &error) != WB_OK) {
        w->failed++;
        return NULL;
    }
    for (uint64_t i = 0; i < TRIES; i++) {
        int result = try_batch(w, s, 1000 * w->seed + i + 1);
        w->aborted += result == WB_ABORT;
        w->failed += result != WB_OK && result != WB_ABORT;
    }
    ops->close(s);
    return NULL;
}

/* Whoever deadlocks, is told so and comes again: each id is won once, and none is lost. */
static void test_each_id_is_won_once(void **state)
{
    static worker workers[8];
    int aborted = 0;
    (void)state;
    for (size_t i = 0; i < IDS; i++)
        (void)snprintf(all_ids[i], sizeof all_ids[i], "%05zu", i * 7);
    for (unsigned i = 0; i < 8; i++) {
        workers[i] = (worker){ .seed = i + 1 };
        assert_int_equal(pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]), 0);
    }
    for (size_t i = 0; i < 8; i++)
        pthread_join(workers[i].thread, NULL);
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(workers[i].failed, 0);
        aborted += workers[i].aborted;
    }
    for (size_t id = 0; id < IDS; id++) {
        int wins = 0;
        for (size_t i = 0; i < 8; i++)
            wins += workers[i].wins[id];
        assert_int_equal(wins, 1);
    }
    print_message("# %d of %d batches were deadlock victims\n", aborted, 8 * TRIES);
    assert_int_equal(observe_number("select count(*) from orders_dedup"), IDS);
}

static void test_lock_timeout_is_retry(void **state)
{
    endpoint impatient;
    wb_claim claim = claim_of("a");
    wb_storage_session *s = open_session(&orders);
    (void)state;
    endpoint_init(&impatient, "orders");
    impatient.config.lock_timeout = WB_SECOND;
    endpoint_create(&impatient);
    wb_storage_session *t = open_session(&impatient);
    begin_claims(s, 10, &claim, 1);
    wb_begin begin = { .struct_size = sizeof begin, .batch = 11, .claims = &claim,
                       .claim_count = 1 };
    assert_int_equal(ops->begin(t, &begin, &failure), WB_RETRY);
    assert_int_equal(failure.native_code, words.lock_timeout);
    assert_int_equal(failure.cause, WB_CAUSE_SERVER);
    assert_int_equal(ops->rollback(s, &failure), WB_OK);
    begin_claims(t, 12, &claim, 1); /* nothing was left open */
    assert_int_equal(claim.duplicate_of, 0);
    ops->close(t);
    endpoint_destroy(&impatient);
    ops->close(s);
}

static void test_batch_zero_claims_nothing(void **state)
{
    wb_storage_session *s = open_session(&orders);
    (void)state;
    begin_batch(s, 0);
    assert_int_equal(api->defer(s, 0, words.nothing, NULL), WB_OK);
    assert_int_equal(commit_batch(s, 0, NULL, NULL), WB_OK);
    assert_int_equal(observe_number("select count(*) from orders_dedup"), 0);
    ops->close(s);
}

/* A record that is being cleaned up is waited for, and then claimed; PostgreSQL takes it for one
 * that is there. */
static void test_record_cleaned_up_meanwhile(void **state)
{
    rival r;
    (void)state;
    observe("insert into orders_dedup values ('a', 5), ('c', 6)");
    observe("begin");
    char statement[64];
    (void)snprintf(statement, sizeof statement, "delete from orders_dedup where %s = 'a'",
                   words.key);
    observe(statement);
    start_rival(&r, 10);
    await_waiting(1);
    observe("commit");
    pthread_join(r.thread, NULL);
    assert_int_equal(r.result, WB_OK);
    assert_int_equal(r.claims[0].duplicate_of, 0);
    assert_int_equal(r.claims[1].duplicate_of, 0);
    assert_int_equal(r.claims[2].duplicate_of, 6);
}

/* After a commit in doubt under the same number, with other ids: those that were committed
 * are told from ours. */
static void test_same_number_partly(void **state)
{
    wb_storage_session *s = open_session(&orders);
    wb_claim first[] = { claim_of("a"), claim_of("c") };
    wb_claim second[] = { claim_of("a"), claim_of("b"), claim_of("c"), claim_of("d") };
    (void)state;
    begin_claims(s, 10, first, 2);
    assert_int_equal(commit_batch(s, 10, NULL, NULL), WB_OK);
    begin_claims(s, 10, second, 4);
    assert_int_equal(second[0].duplicate_of, 10);
    assert_int_equal(second[1].duplicate_of, 0);
    assert_int_equal(second[2].duplicate_of, 10);
    assert_int_equal(second[3].duplicate_of, 0);
    assert_int_equal(commit_batch(s, 10, NULL, NULL), WB_OK);
    assert_int_equal(observe_number("select count(*) from orders_dedup where batch = 10"), 4);
    ops->close(s);
}

/* More ids than one statement holds. */
static void test_large_batches(void **state)
{
    static char ids[1200][8];
    static wb_claim claims[1200];
    wb_storage_session *s = open_session(&orders);
    (void)state;
    for (int i = 0; i < 1200; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "%07d", i);
        claims[i] = claim_of(ids[i]);
    }
    begin_claims(s, 10, claims + 100, 1100);
    for (int i = 100; i < 1200; i++)
        assert_int_equal(claims[i].duplicate_of, 0);
    assert_int_equal(commit_batch(s, 10, NULL, NULL), WB_OK);
    begin_claims(s, 11, claims, 1200);
    for (int i = 0; i < 1200; i++)
        assert_int_equal(claims[i].duplicate_of, i < 100 ? 0 : 10);
    assert_int_equal(commit_batch(s, 11, NULL, NULL), WB_OK);
    observe("delete from orders_dedup");
    begin_claims(s, 12, claims, 1200);
    wb_commit commit = { .struct_size = sizeof commit, .batch = 12, .released = claims + 10,
                         .released_count = 1190 };
    assert_int_equal(ops->commit(s, &commit, &failure), WB_OK);
    assert_int_equal(observe_number("select count(*) from orders_dedup"), 10);
    ops->close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_ORDERS(test_claims_are_ours_then_duplicates),
        TEST_ORDERS(test_same_batch_number_again_is_a_duplicate),
        TEST_ORDERS(test_ids_are_bytes),
        TEST_ORDERS(test_any_byte),
        TEST_ORDERS(test_endpoints_do_not_share_ids),
        TEST_ORDERS(test_rollback_frees_claims),
        TEST_ORDERS(test_released_claims_are_free),
        TEST_ORDERS(test_released_beside_open_claims),
        TEST_ORDERS(test_release_spares_other_batches),
        TEST_ORDERS(test_second_waits_for_first),
        TEST_ORDERS(test_same_ids_get_on),
        TEST_ORDERS(test_each_id_is_won_once),
        TEST_ORDERS(test_lock_timeout_is_retry),
        TEST_ORDERS(test_batch_zero_claims_nothing),
        TEST_ORDERS(test_same_number_partly),
        TEST_ORDERS(test_large_batches),
        TEST_ORDERS(test_record_cleaned_up_meanwhile), /* the last: not everywhere */
    };
    const size_t count = sizeof tests / sizeof tests[0];
    return run_sql_tests("claims", tests, words.waits_for_deletion ? count : count - 1);
}
