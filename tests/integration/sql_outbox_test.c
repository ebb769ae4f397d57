/* SPDX-License-Identifier: Apache-2.0
 *
 * Pending operations: stored, marked, swept; the cleanup of old records; the server's time. */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "tests/integration/sql_server.h"

typedef struct visits {
    size_t count;
    uint64_t batches[16];
    char *last;
    size_t last_size;
    int answer;
    void (*meanwhile)(void);
} visits;

static int visit(void *argument, const wb_pending *pending)
{
    visits *v = argument;
    assert_true(v->count < 16);
    v->batches[v->count++] = pending->batch;
    free(v->last);
    v->last = malloc(pending->operations_size + 1);
    memcpy(v->last, pending->operations, pending->operations_size);
    v->last_size = pending->operations_size;
    if (v->meanwhile)
        v->meanwhile();
    return v->answer;
}

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

static void test_pending_is_exact(void **state)
{
    const size_t large = words.operations;
    const size_t sizes[] = { 0, 1, 2000, 100000, large };
    wb_storage_session *s = open_session(&orders);
    char *bytes = malloc(large);
    (void)state;
    for (size_t i = 0; i < large; i++)
        bytes[i] = (char)(i * 7 + i / 251);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        visits v = { 0 };
        uint64_t batch = words.batch_max / 2 + 1 + i;
        store(s, batch, bytes, sizes[i]);
        assert_int_equal(ops->pending(s, &batch, 1, visit, &v, &failure), WB_OK);
        assert_int_equal(v.count, 1);
        assert_true(v.batches[0] == batch);
        assert_int_equal(v.last_size, sizes[i]);
        assert_memory_equal(v.last, bytes, sizes[i]);
        free(v.last);
    }
    free(bytes);
    ops->close(s);
}

static void test_no_operations_no_row(void **state)
{
    wb_storage_session *s = open_session(&orders);
    wb_claim claim = claim_of("a");
    (void)state;
    begin_claims(s, 10, &claim, 1);
    assert_int_equal(commit_batch(s, 10, NULL, NULL), WB_OK);
    assert_int_equal(observe_number("select count(*) from orders_pending"), 0);
    ops->close(s);
}

static void test_absent_ones_are_passed_over(void **state)
{
    wb_storage_session *s = open_session(&orders);
    const uint64_t batches[] = { 9, 10, 11, 12 };
    visits v = { 0 };
    (void)state;
    store(s, 10, "ten", 3);
    store(s, 12, "twelve", 6);
    assert_int_equal(ops->pending(s, batches, 4, visit, &v, &failure), WB_OK);
    assert_int_equal(v.count, 2);
    assert_int_equal(ops->pending(s, batches, 0, visit, &v, &failure), WB_OK);
    assert_int_equal(v.count, 2);
    free(v.last);
    ops->close(s);
}

static void test_visitor_stops(void **state)
{
    wb_storage_session *s = open_session(&orders);
    const uint64_t batches[] = { 10, 11 };
    visits v = { .answer = WB_REJECT };
    (void)state;
    store(s, 10, "x", 1);
    store(s, 11, "x", 1);
    assert_int_equal(ops->pending(s, batches, 2, visit, &v, &failure), WB_REJECT);
    assert_int_equal(ops->sweep(s, 100, 10, visit, &v, &failure), WB_REJECT);
    assert_int_equal(v.count, 2);
    begin_batch(s, 12); /* the session is idle again */
    free(v.last);
    ops->close(s);
}

static void test_mark_deletes_and_shrinks(void **state)
{
    wb_storage_session *s = open_session(&orders);
    const uint64_t eleven = 11;
    const wb_mark marks[] = {
        { .batch = 10 },
        { .batch = 11, .remaining = "rest", .remaining_size = 4 },
        { .batch = 12 },
        { .batch = 99 },
        { .batch = 98, .remaining = "rest", .remaining_size = 4 },
    };
    visits v = { 0 };
    (void)state;
    for (uint64_t batch = 10; batch < 14; batch++)
        store(s, batch, "operations", 10);
    for (int again = 0; again < 2; again++) { /* marking twice is no error */
        assert_int_equal(ops->mark(s, marks, 5, &failure), WB_OK);
        assert_int_equal(observe_number("select count(*) from orders_pending"), 2);
        assert_int_equal(observe_number("select count(*) from orders_pending where batch = 13"), 1);
    }
    assert_int_equal(ops->pending(s, &eleven, 1, visit, &v, &failure), WB_OK);
    assert_int_equal(v.last_size, 4);
    assert_memory_equal(v.last, "rest", 4);
    free(v.last);
    ops->close(s);
}

/* However small the table is, who reads it whole would wait for rows of others. */
static void test_marks_wait_for_nobody(void **state)
{
    wb_storage_session *s = open_session(&orders);
    wb_mark marks[10] = { 0 };
    (void)state;
    for (size_t i = 0; i < 10; i++)
        marks[i].batch = 10 + i;
    for (uint64_t batch = 10; batch < 30; batch++)
        store(s, batch, "operations", 10);
    observe("begin");
    observe("select * from orders_pending where batch = 29 for update");
    const int64_t start = wb_clock_monotonic();
    assert_int_equal(ops->mark(s, marks, 10, &failure), WB_OK);
    assert_true(wb_clock_monotonic() - start < 10 * WB_SECOND);
    observe("commit");
    assert_int_equal(observe_number("select count(*) from orders_pending"), 10);
    ops->close(s);
}

static const wb_mark riding[] = { { .batch = 10 },
                                  { .batch = 11, .remaining = "r", .remaining_size = 1 } };
/* And records to be forgotten, of both batches. */
static const wb_claim forgotten[] = { { "f", 1, 10 }, { "g", 1, 10 }, { "h", 1, 11 } };

static int begin_with_marks(wb_storage_session *s, wb_claim *claim)
{
    wb_begin begin = { .struct_size = sizeof begin,
                       .marks = riding,
                       .mark_count = 2,
                       .batch = 12,
                       .claims = claim,
                       .claim_count = 1,
                       .forgotten = forgotten,
                       .forgotten_count = 3 };
    return ops->begin(s, &begin, &failure);
}

static void store_two(wb_storage_session *s)
{
    store(s, 10, "operations", 10);
    store(s, 11, "operations", 10);
    assert_int_equal(ops->remember(s, forgotten, 3, &failure), WB_OK);
}

static void assert_marked(void)
{
    assert_int_equal(observe_number("select count(*) from orders_dedup where batch in (10, 11)"), 0);
    assert_int_equal(observe_number("select count(*) from orders_pending"), 1);
    assert_int_equal(observe_number("select length(operations) from orders_pending"), 1);
}

/* Marks that ride in begin() are flushed with its transaction or before it, and stand if it is
 * rolled back. */
static void test_marks_ride_along(void **state)
{
    wb_storage_session *s = open_session(&orders);
    wb_claim claim = claim_of("a");
    (void)state;
    store_two(s);
    assert_int_equal(begin_with_marks(s, &claim), WB_OK);
    assert_int_equal(observe_number("select count(*) from orders_pending"),
                     words.marks_wait ? 2 : 1);
    assert_int_equal(commit_batch(s, 12, NULL, NULL), WB_OK);
    assert_marked();
    ops->close(s);
}

static void test_marks_stand_when_rolled_back(void **state)
{
    wb_storage_session *s = open_session(&orders);
    wb_claim claim = claim_of("a");
    (void)state;
    store_two(s);
    assert_int_equal(begin_with_marks(s, &claim), WB_OK);
    assert_int_equal(ops->rollback(s, &failure), WB_OK);
    assert_marked();
    assert_int_equal(observe_number("select count(*) from orders_dedup"), 0);
    ops->close(s);
}

static void test_marks_stand_when_closed(void **state)
{
    wb_storage_session *s = open_session(&orders);
    wb_claim claim = claim_of("a");
    (void)state;
    store_two(s);
    assert_int_equal(begin_with_marks(s, &claim), WB_OK);
    ops->close(s);
    assert_marked();
    assert_int_equal(observe_number("select count(*) from orders_dedup"), 0);
}

static void test_marks_stand_when_the_commit_fails(void **state)
{
    wb_storage_session *s = open_session(&orders);
    wb_claim claim = claim_of("a");
    (void)state;
    store_two(s);
    assert_int_equal(begin_with_marks(s, &claim), WB_OK);
    assert_int_equal(api->defer(s, 0, "insert into missing values (1)", NULL), WB_OK);
    assert_int_equal(commit_batch(s, 12, "x", NULL), WB_RETRY);
    assert_marked();
    ops->close(s);
}

/* The duplicates' second look finds a number that was used before, and starts over. */
static void test_marks_stand_when_claims_start_over(void **state)
{
    wb_storage_session *s = open_session(&orders);
    wb_claim claims[] = { claim_of("a"), claim_of("b") };
    wb_begin begin = { .struct_size = sizeof begin,
                       .marks = riding,
                       .mark_count = 2,
                       .batch = 12,
                       .claims = claims,
                       .claim_count = 2,
                       .forgotten = forgotten,
                       .forgotten_count = 3 };
    (void)state;
    store_two(s);
    observe("insert into orders_dedup values ('a', 12)");
    assert_int_equal(ops->begin(s, &begin, &failure), WB_OK);
    assert_int_equal(claims[0].duplicate_of, 12);
    assert_int_equal(claims[1].duplicate_of, 0);
    assert_int_equal(commit_batch(s, 12, NULL, NULL), WB_OK);
    assert_marked();
    ops->close(s);
}

static void test_marks_stand_when_a_claim_is_held(void **state)
{
    endpoint impatient;
    wb_claim claim = claim_of("a");
    wb_storage_session *s = open_session(&orders);
    (void)state;
    store_two(s);
    endpoint_init(&impatient, "orders");
    impatient.config.lock_timeout = WB_SECOND;
    endpoint_create(&impatient);
    wb_storage_session *t = open_session(&impatient);
    begin_claims(s, 20, &claim, 1);
    assert_int_equal(begin_with_marks(t, &claim), WB_RETRY);
    assert_marked();
    ops->close(s);
    ops->close(t);
    endpoint_destroy(&impatient);
}

static wb_storage_session *other;

static void sweep_by_another(void)
{
    visits v = { 0 };
    assert_int_equal(ops->sweep(other, 100, 10, visit, &v, &failure), WB_OK);
    assert_int_equal(v.count, 0);
}

static void test_sweep_oldest_first_one_at_a_time(void **state)
{
    wb_storage_session *s = open_session(&orders);
    visits v = { 0 };
    (void)state;
    for (uint64_t batch = 30; batch >= 10; batch -= 5)
        store(s, batch, "x", 1);
    assert_int_equal(ops->sweep(s, 30, 3, visit, &v, &failure), WB_OK);
    assert_int_equal(v.count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(v.batches[i], 10 + 5 * i);
    other = open_session(&orders);
    v.count = 0;
    v.meanwhile = sweep_by_another;
    assert_int_equal(ops->sweep(s, 100, 10, visit, &v, &failure), WB_OK);
    assert_int_equal(v.count, 5);
    v.count = 0;
    v.meanwhile = NULL;
    assert_int_equal(ops->sweep(other, 100, 10, visit, &v, &failure), WB_OK);
    assert_int_equal(v.count, 5);
    free(v.last);
    ops->close(other);
    ops->close(s);
}

/* Another process sweeps: what this one was not shown is not taken for empty. */
static void test_a_sweep_of_others_hides_nothing(void **state)
{
    endpoint twin;
    visits v = { .meanwhile = sweep_by_another };
    (void)state;
    endpoint_init(&twin, "orders");
    endpoint_create(&twin);
    wb_storage_session *s = open_session(&twin);
    other = open_session(&orders);
    store(s, 10, "x", 1);
    clock_step = WB_SECOND / 4; /* each look is thought to be long */
    assert_int_equal(ops->sweep(s, 100, 10, visit, &v, &failure), WB_OK);
    assert_int_equal(v.count, 1);
    v.meanwhile = NULL;
    assert_int_equal(ops->sweep(other, 100, 10, visit, &v, &failure), WB_OK);
    assert_int_equal(v.count, 2);
    free(v.last);
    ops->close(other);
    ops->close(s);
    endpoint_destroy(&twin);
}

/* From row to row, those that stay where they are hide none. */
static void test_next_pending(void **state)
{
    wb_storage_session *s = open_session(&orders);
    const uint64_t high = words.batch_max;
    visits v = { 0 };
    (void)state;
    for (uint64_t batch = 30; batch >= 10; batch -= 10)
        store(s, batch, "x", 1);
    store(s, high, "last", 4);
    uint64_t after = 0;
    for (size_t i = 0; i < 3; i++, after = v.batches[v.count - 1])
        assert_int_equal(ops->next_pending(s, after, high, visit, &v, &failure), WB_OK);
    assert_int_equal(v.count, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(v.batches[i], 10 + 10 * i);
    assert_int_equal(ops->next_pending(s, 30, high, visit, &v, &failure), WB_OK);
    assert_int_equal(ops->next_pending(s, 9, 10, visit, &v, &failure), WB_OK);
    assert_int_equal(ops->next_pending(s, 10, 20, visit, &v, &failure), WB_OK);
    assert_int_equal(ops->next_pending(s, high, UINT64_MAX, visit, &v, &failure), WB_OK);
    assert_int_equal(ops->next_pending(s, UINT64_MAX, UINT64_MAX, visit, &v, &failure), WB_OK);
    assert_int_equal(v.count, 3);
    v.answer = WB_REJECT;
    assert_int_equal(ops->next_pending(s, 0, high, visit, &v, &failure), WB_REJECT);
    assert_int_equal(v.count, 4);
    begin_batch(s, 40); /* the session is idle again */
    assert_int_equal(ops->next_pending(s, 0, high, visit, &v, &failure), WB_FATAL);
    free(v.last);
    ops->close(s);
}

static void next_by_another(void)
{
    visits v = { 0 };
    assert_int_equal(ops->next_pending(other, 0, 100, visit, &v, &failure), WB_OK);
    assert_int_equal(ops->sweep(other, 100, 10, visit, &v, &failure), WB_OK);
    assert_int_equal(v.count, 0);
}

static void test_next_pending_one_at_a_time(void **state)
{
    wb_storage_session *s = open_session(&orders);
    visits v = { .meanwhile = next_by_another };
    (void)state;
    other = open_session(&orders);
    store(s, 10, "x", 1);
    assert_int_equal(ops->next_pending(s, 0, 100, visit, &v, &failure), WB_OK);
    assert_int_equal(ops->sweep(s, 100, 10, visit, &v, &failure), WB_OK);
    assert_int_equal(v.count, 2);
    v.meanwhile = NULL;
    assert_int_equal(ops->next_pending(other, 0, 100, visit, &v, &failure), WB_OK);
    assert_int_equal(v.count, 3);
    free(v.last);
    ops->close(other);
    ops->close(s);
}

/* ---- memory ------------------------------------------------------------------------ */

#define ROW ((size_t)32 * 1024 * 1024)

static long resident_kilobytes(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    long size = 0;
    assert_non_null(file);
    while (fgets(line, sizeof line, file) && sscanf(line, "VmRSS: %ld", &size) != 1)
        ;
    (void)fclose(file);
    return size;
}

static int measure(void *argument, const wb_pending *pending)
{
    long *most = argument;
    const long now = resident_kilobytes();
    assert_int_equal(pending->operations_size, ROW);
    *most = now > *most ? now : *most;
    return WB_OK;
}

/* Eight rows of 32 MiB; the library needs a row twice for a moment. */
static void test_sweep_holds_one_row(void **state)
{
    long most = 0;
    (void)state;
    make_large_rows();
    wb_storage_session *s = open_session(&orders);
    const long before = resident_kilobytes();
    assert_int_equal(ops->sweep(s, 100, 10, measure, &most, &failure), WB_OK);
    print_message("# %ld MB for rows of 32 MB\n", (most - before) / 1024);
    assert_true(most - before < 4 * (long)ROW / 1024);
    drop_large_rows();
    ops->close(s);
}

/* ---- time -------------------------------------------------------------------------- */

static void test_clock(void **state)
{
    wb_storage_session *s = open_session(&orders);
    int64_t time = 0, later = 0;
    (void)state;
    begin_batch(s, 10); /* what a handler leaves behind */
    assert_int_equal(query_plain(s, 0, words.time_zone), 0);
    assert_int_equal(commit_batch(s, 10, NULL, NULL), WB_OK);
    int64_t start = wb_clock_wall();
    assert_int_equal(ops->clock(s, &time, &failure), WB_OK);
    assert_true(time >= start - WB_MILLISECOND && time <= wb_clock_wall() + WB_MILLISECOND);
    wb_clock_pause(20 * WB_MILLISECOND, NULL);
    assert_int_equal(ops->clock(s, &later, &failure), WB_OK);
    assert_true(later >= time + 20 * WB_MILLISECOND);
    begin_batch(s, 11);
    assert_int_equal(ops->clock(s, &time, &failure), WB_FATAL);
    ops->close(s);
}

/* A statement with batch numbers of now and so many seconds. */
static void observe_at(const char *format, int first, int second)
{
    char statement[512];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    (void)snprintf(statement, sizeof statement, format, batch_at(first), batch_at(second));
#pragma GCC diagnostic pop
    observe(statement);
}

static void test_records_from_the_future(void **state)
{
    wb_storage_session *s = open_session(&orders);
    size_t deleted = 0;
    (void)state;
    warnings = 0;
    char spread[160];
    observe_at("insert into orders_dedup values ('a', 1), ('now', %s), ('soon', %s)", 0, 200);
    observe_at("insert into orders_pending values (%s, 'x'), (%s, 'WBK1 parked')", 0, 7200);
    assert_int_equal(ops->clean_up(s, 30, 10, &deleted, &failure), WB_OK);
    assert_int_equal(deleted, 1);
    assert_int_equal(warnings, 0);
    ops->close(s);

    s = open_session(&orders);
    (void)snprintf(spread, sizeof spread, "n + %s", batch_at(3600));
    fill_records(17, spread);
    observe_at("insert into orders_pending values (%s, 'x'), (%s, 'WBK1 parked')", 7201, 7202);
    for (int again = 0; again < 2; again++)
        assert_int_equal(ops->clean_up(s, 30, 10, &deleted, &failure), WB_OK);
    assert_int_equal(warnings, 1);
    assert_non_null(strstr(warning, "from the future are left alone"));
    assert_non_null(strstr(warning, " records=17 pending=1 seconds_ahead=3"));
    assert_int_equal(observe_number("select count(*) from orders_dedup"), 19);
    ops->close(s);
}

static void test_cleanup_spares_young_and_pending(void **state)
{
    wb_storage_session *s = open_session(&orders);
    size_t deleted = 0;
    (void)state;
    fill_records(5000, words.hundreds);
    observe("insert into orders_pending values (7, 'x'), (8, 'x')");
    assert_int_equal(ops->clean_up(s, 30, 500, &deleted, &failure), WB_OK);
    assert_int_equal(deleted, 500);
    assert_int_equal(observe_number("select min(batch) from orders_dedup"), 5); /* oldest first */
    do
        assert_int_equal(ops->clean_up(s, 30, 500, &deleted, &failure), WB_OK);
    while (deleted);
    assert_int_equal(observe_number("select count(*) from orders_dedup where batch < 30"), 200);
    assert_int_equal(observe_number("select count(*) from orders_dedup where batch in (7, 8)"),
                     200);
    assert_int_equal(observe_number("select count(*) from orders_dedup where batch >= 30"), 2001);
    observe("delete from orders_pending"); /* what was left behind is not forgotten */
    assert_int_equal(ops->clean_up(s, 30, 500, &deleted, &failure), WB_OK);
    assert_int_equal(deleted, 200);
    ops->close(s);
}

/* ---- beside an old snapshot -------------------------------------------------------------- */

#define OLD_STEPS 200
#define OLD_STEP 1000
#define OLD_FIRST 20
#define OLD_LAST 60 /* for longer than the machine is busy with something else */

/* The best of some, because others use the machine too. */
static double best_ms(const int64_t *times, size_t count)
{
    int64_t best = times[0];
    for (size_t i = 1; i < count; i++)
        best = times[i] < best ? times[i] : best;
    return (double)best / (double)WB_MILLISECOND;
}

/* What is deleted stays in the indexes: the last clean-up takes no longer than the first. */
static void test_cleanup_beside_a_snapshot(void **state)
{
    wb_storage_session *s = NULL;
    int64_t times[OLD_STEPS];
    size_t deleted = 0;
    (void)state;
    fill_records(OLD_STEPS * OLD_STEP + 10, words.hundreds);
    hold_snapshot();
    for (int i = 0; i < OLD_STEPS; i++) {
        if (s && i % 50 == 0)
            ops->close(s);
        if (i % 50 == 0) /* the endpoint remembers, not the session */
            s = open_session(&orders);
        const int64_t start = wb_clock_monotonic();
        assert_int_equal(ops->clean_up(s, 1000000, OLD_STEP, &deleted, &failure), WB_OK);
        times[i] = wb_clock_monotonic() - start;
        assert_int_equal(deleted, OLD_STEP);
    }
    const double first = best_ms(times, OLD_FIRST);
    const double last = best_ms(times + OLD_STEPS - OLD_LAST, OLD_LAST);
    print_message("# %d records a time beside a snapshot: %.1f ms the first %d times, %.1f ms the "
                  "last %d of %d\n",
                  OLD_STEP, first, OLD_FIRST, last, OLD_LAST, OLD_STEPS);
    assert_true(last < 2.5 * first);
    assert_int_equal(ops->clean_up(s, 1000000, OLD_STEP, &deleted, &failure), WB_OK);
    assert_int_equal(deleted, 10);
    release_snapshot();
    ops->close(s);
}

/* A walk over two rows. @return how long it took from the first to the second. */
static int64_t time_walk(wb_storage_session *s, uint64_t first, uint64_t second)
{
    visits v = { 0 };
    assert_int_equal(ops->next_pending(s, 0, words.batch_max, visit, &v, &failure), WB_OK);
    const int64_t start = wb_clock_monotonic();
    assert_int_equal(ops->next_pending(s, first, words.batch_max, visit, &v, &failure), WB_OK);
    const int64_t took = wb_clock_monotonic() - start;
    assert_int_equal(v.count, 2);
    assert_int_equal(v.batches[0], first);
    assert_int_equal(v.batches[1], second);
    free(v.last);
    return took;
}

/* How many rows a list of heads has, and how long it took. */
static size_t list_heads(wb_storage_session *s, uint32_t flags, int64_t *ret_took)
{
    visits v = { 0 };
    const wb_pending_filter all = { .struct_size = sizeof all, .before = words.batch_max, .limit = 10, .head = 8,
                                    .flags = flags };
    const int64_t start = wb_clock_monotonic();
    assert_int_equal(ops->list_pending(s, &all, visit, &v, &failure), WB_OK);
    *ret_took = wb_clock_monotonic() - start;
    free(v.last);
    return v.count;
}

/* What was in nobody's way a while ago is in the way of no list that may pass it; any other is whole. */
static void expect_lists(wb_storage_session *s, size_t passing, size_t whole)
{
    int64_t quick, slow;
    assert_int_equal(list_heads(s, WB_PENDING_PASS_EMPTY, &quick), passing);
    assert_int_equal(list_heads(s, 0, &slow), whole);
    print_message("# a list of %zu rows: %.1f ms, %.1f ms if it may pass what is empty\n", whole,
                  (double)slow / WB_MILLISECOND, (double)quick / WB_MILLISECOND);
}

/* A look that took long is not repeated at once, nor is what it passed over forgotten for good.
 * The first row stays where it is. */
static void test_sweep_beside_a_snapshot(void **state)
{
    wb_storage_session *s = open_session(&orders);
    int64_t again = INT64_MAX;
    (void)state;
    fill_pending(300000);
    store(s, 400000, "x", 1);
    hold_snapshot();
    observe("delete from orders_pending where batch between 4 and 300000");
    observe("delete from orders_pending where batch < 3");
    /* Whatever it takes, it is thought to be long. It is remembered for twenty steps, of which the test takes fifteen: on a busy
     * machine the rest has to do. */
    clock_step = 20 * WB_SECOND;
    const int64_t first = time_walk(s, 3, 400000);
    for (int i = 0; i < 3; i++) {
        const int64_t took = time_walk(s, 3, 400000);
        again = took < again ? took : again;
    }
    print_message("# to the next row behind 300000 deleted ones: %.1f ms, %.1f ms the next time\n",
                  (double)first / WB_MILLISECOND, (double)again / WB_MILLISECOND);
    assert_true(again < first / 3);
    expect_lists(s, 2, 2);
    store(s, 7, "late", 4);
    (void)time_walk(s, 3, 400000);
    expect_lists(s, 2, 3);
    clock_ahead += 20 * (first + 4 * clock_step);
    expect_lists(s, 3, 3);
    (void)time_walk(s, 3, 7);
    release_snapshot();
    ops->close(s);
}

static void *clean_up_slowly(void *argument)
{
    size_t *deleted = argument;
    wb_error error;
    if (ops->clean_up(other, 10, 10, deleted, &error) != WB_OK)
        *deleted = SIZE_MAX;
    return NULL;
}

static void test_cleanup_one_at_a_time(void **state)
{
    wb_storage_session *s = open_session(&orders);
    size_t deleted = 7;
    size_t deleted_slowly = 0;
    pthread_t thread;
    (void)state;
    observe("insert into orders_dedup values ('a', 1)");
    hold_record();
    other = open_session(&orders);
    assert_int_equal(pthread_create(&thread, NULL, clean_up_slowly, &deleted_slowly), 0);
    await_deleter();
    assert_int_equal(ops->clean_up(s, 10, 10, &deleted, &failure), WB_OK);
    assert_int_equal(deleted, 0);
    release_record();
    pthread_join(thread, NULL);
    assert_int_equal(deleted_slowly, 1);
    assert_int_equal(ops->clean_up(s, 10, 10, &deleted, &failure), WB_OK); /* is free again */
    ops->close(other);
    ops->close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_ORDERS(test_pending_is_exact),
        TEST_ORDERS(test_no_operations_no_row),
        TEST_ORDERS(test_absent_ones_are_passed_over),
        TEST_ORDERS(test_visitor_stops),
        TEST_ORDERS(test_mark_deletes_and_shrinks),
        TEST_ORDERS(test_marks_wait_for_nobody),
        TEST_ORDERS(test_marks_ride_along),
        TEST_ORDERS(test_marks_stand_when_rolled_back),
        TEST_ORDERS(test_marks_stand_when_closed),
        TEST_ORDERS(test_marks_stand_when_the_commit_fails),
        TEST_ORDERS(test_marks_stand_when_claims_start_over),
        TEST_ORDERS(test_marks_stand_when_a_claim_is_held),
        TEST_ORDERS(test_sweep_oldest_first_one_at_a_time),
        TEST_ORDERS(test_a_sweep_of_others_hides_nothing),
        TEST_ORDERS(test_next_pending),
        TEST_ORDERS(test_next_pending_one_at_a_time),
        TEST_ORDERS(test_sweep_holds_one_row),
        TEST_ORDERS(test_clock),
        TEST_ORDERS(test_records_from_the_future),
        TEST_ORDERS(test_cleanup_spares_young_and_pending),
        TEST_ORDERS(test_cleanup_one_at_a_time),
        TEST_ORDERS(test_cleanup_beside_a_snapshot),
        TEST_ORDERS(test_sweep_beside_a_snapshot),
    };
    return run_sql_tests("outbox", tests, sizeof tests / sizeof tests[0]);
}
