/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence kit: what people look at who look after a running endpoint. It is true, changes
 * nothing, and neither waits nor keeps anybody waiting.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/persistence/persistence.h"
#include "core/base/arena.h"

static int store_records(wb_client *a, uint64_t count, const char *operations)
{
    for (uint64_t n = 1; n <= count; n++) {
        char id[24];
        (void)snprintf(id, sizeof id, "order-%02" PRIu64, n);
        if (!wb_client_stores(a, WB_BATCH(n), id, operations))
            return 0;
    }
    return 1;
}

/* ---- in numbers ------------------------------------------------------------------------- */

static int ask_stats(wb_client *a, int is_exact, wb_outbox_stats *ret_stats)
{
    memset(ret_stats, 0x5a, sizeof *ret_stats);
    ret_stats->struct_size = sizeof *ret_stats;
    ret_stats->is_exact = is_exact;
    wb_error_clear(&a->error);
    return wb_client_check(a, a->ops->stats(a->session, ret_stats, &a->error), WB_OK, "ask for numbers");
}

/* What is said to be exact is, whether it was asked for or not. */
static void expect_stats(wb_client *a, uint64_t count, uint64_t oldest, uint64_t newest)
{
    wb_outbox_stats stats;
    for (int is_exact = 0; is_exact <= 1; is_exact++) {
        if (!ask_stats(a, is_exact, &stats))
            return;
        wb_kit_check(a->kit, stats.records_are == WB_COUNT_EXACT || (!is_exact && count),
                     "%" PRIu64 " records are counted as WB_COUNT_ %d", count, stats.records_are);
        wb_kit_check(a->kit, stats.records_are != WB_COUNT_EXACT || stats.records == count,
                     "%" PRIu64 " records are said to be there instead of %" PRIu64, stats.records, count);
        wb_kit_check(a->kit, stats.oldest_record == oldest && stats.newest_record == newest,
                     "the oldest and newest records are %" PRIu64 " and %" PRIu64 ", not %" PRIu64 " and %" PRIu64,
                     stats.oldest_record, stats.newest_record, oldest, newest);
        wb_kit_check(a->kit, stats.record_bytes >= -1 && stats.pending_bytes >= -1 &&
                                 stats.record_bytes < INT64_C(1) << 50 && stats.pending_bytes < INT64_C(1) << 50,
                     "%" PRId64 " and %" PRId64 " bytes", stats.record_bytes, stats.pending_bytes);
    }
}

static void in_numbers(wb_kit *kit)
{
    size_t deleted;
    if (WB_LACKS(kit, stats))
        return;
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 1);
    if (!a || !b)
        return;
    expect_stats(a, 0, 0, 0);
    if (!store_records(a, 7, "operations"))
        return;
    expect_stats(a, 7, WB_BATCH(1), WB_BATCH(7));
    expect_stats(b, 0, 0, 0); /* of another endpoint */
    wb_client_check(a, wb_client_mark(a, WB_BATCH(1), NULL, 0), WB_OK, "mark");
    wb_client_check(a, wb_client_clean_up(a, WB_BATCH(3), 100, &deleted), WB_OK, "clean up");
    expect_stats(a, 6, WB_BATCH(2), WB_BATCH(7));
}

static void beside_a_transaction(wb_kit *kit)
{
    wb_claim claim = WB_CLAIM("new");
    if (WB_LACKS(kit, stats))
        return;
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 0);
    if (!a || !b || !store_records(a, 2, NULL) || !wb_client_takes(a, WB_BATCH(3), &claim, 1))
        return;
    expect_stats(b, 2, WB_BATCH(1), WB_BATCH(2));
    if (wb_client_check(a, wb_client_commit(a, WB_BATCH(3), NULL, 0), WB_OK, "commit beside it"))
        expect_stats(b, 3, WB_BATCH(1), WB_BATCH(3));
}

/* A host of another version has a table that is longer, or shorter. */
static void shorter_stats(wb_kit *kit)
{
    struct {
        wb_outbox_stats stats;
        char more[64];
    } longer;
    if (WB_LACKS(kit, stats))
        return;
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !store_records(a, 1, NULL))
        return;
    memset(&longer, 0x5a, sizeof longer);
    longer.stats.struct_size = sizeof longer;
    longer.stats.is_exact = 1;
    int r = a->ops->stats(a->session, &longer.stats, &a->error);
    wb_client_check(a, r, WB_OK, "ask for numbers");
    wb_kit_check(kit, longer.stats.records == 1, "a longer table is not filled");
    for (size_t i = 0; i < sizeof longer.more; i++)
        if (!wb_kit_check(kit, longer.more[i] == 0x5a, "what is behind the table was written"))
            return;
}

/* ---- records of a range ------------------------------------------------------------------ */

static void expect_count(wb_client *a, uint64_t from, uint64_t before, size_t limit, uint64_t wanted)
{
    uint64_t count = WB_NOT_ANSWERED;
    wb_error_clear(&a->error);
    int r = a->ops->count_records(a->session, from, before, limit, &count, &a->error);
    if (wb_client_check(a, r, WB_OK, "count records"))
        wb_kit_check(a->kit, count == wanted, "%" PRIu64 " records are counted instead of %" PRIu64, count, wanted);
}

static void records_of_a_range(wb_kit *kit)
{
    if (WB_LACKS(kit, count_records))
        return;
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 1);
    if (!a || !b || !store_records(a, 9, NULL))
        return;
    expect_count(a, 0, UINT64_MAX, 100, 9);
    expect_count(a, WB_BATCH(3), WB_BATCH(7), 100, 4); /* from the one on, below the other */
    expect_count(a, 0, WB_BATCH(1), 100, 0);
    expect_count(a, WB_BATCH(10), UINT64_MAX, 100, 0);
    expect_count(a, WB_BATCH(7), WB_BATCH(3), 100, 0);
    expect_count(a, 0, UINT64_MAX, 5, 5);
    expect_count(a, 0, UINT64_MAX, SIZE_MAX, 9);
    expect_count(b, 0, UINT64_MAX, 100, 0);
}

static void as_many_as_cleaned_up(wb_kit *kit)
{
    size_t deleted;
    if (WB_LACKS(kit, count_records))
        return;
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !store_records(a, 6, "operations"))
        return;
    expect_count(a, 0, WB_BATCH_END, 100, 0); /* nothing is dispatched */
    for (uint64_t n = 2; n <= 5; n++)
        wb_client_check(a, wb_client_mark(a, WB_BATCH(n), n == 3 ? "rest" : NULL, n == 3 ? 4 : 0), WB_OK, "mark");
    expect_count(a, 0, WB_BATCH(5), 100, 2);
    wb_client_check(a, wb_client_clean_up(a, WB_BATCH(5), 100, &deleted), WB_OK, "clean up");
    wb_kit_check(kit, deleted == 2, "%zu records were deleted, 2 were counted", deleted);
    expect_count(a, 0, WB_BATCH_END, 100, 1);
}

/* ---- pending rows ------------------------------------------------------------------------ */

static int note_row(void *argument, const wb_pending *row)
{
    wb_found *found = argument;
    free(found->operations);
    found->operations = wb_alloc(row->operations_size + 1);
    if (row->operations_size)
        memcpy(found->operations, row->operations, row->operations_size);
    found->operations_size = row->operations_size;
    if (found->count < WB_FOUND_MAX)
        found->batches[found->count++] = row->batch;
    return WB_OK;
}

static int list(wb_client *a, const wb_pending_filter *asked, wb_found *found)
{
    wb_pending_filter filter = *asked;
    filter.struct_size = sizeof filter;
    found->count = 0;
    found->operations = NULL;
    wb_error_clear(&a->error);
    return a->ops->list_pending(a->session, &filter, note_row, found, &a->error);
}

/* The rows first to last, if there are any, and of the last one these bytes. */
static int expect_rows(wb_client *a, wb_pending_filter filter, uint64_t first, uint64_t last, const char *bytes)
{
    wb_found found;
    const size_t size = bytes ? strlen(bytes) : 0, count = last >= first ? last - first + 1 : 0;
    int good = wb_client_check(a, list(a, &filter, &found), WB_OK, "list pending rows") &&
               wb_kit_check(a->kit, found.count == count, "%zu rows are listed instead of %zu", found.count, count);
    for (size_t i = 0; good && i < count; i++)
        good = wb_kit_check(a->kit, found.batches[i] == WB_BATCH(first + i), "row %zu has number %" PRIu64, i,
                            found.batches[i]);
    if (good && count && bytes)
        wb_kit_check(a->kit, found.operations_size == size && memcmp(found.operations, bytes, size) == 0,
                     "a row has other bytes: %zu instead of %zu", found.operations_size, size);
    free(found.operations);
    return good;
}

static void pending_rows(wb_kit *kit)
{
    const char *bytes = "operations of a row";
    if (WB_LACKS(kit, list_pending))
        return;
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 1);
    if (!a || !b)
        return;
    expect_rows(a, (wb_pending_filter){ .before = UINT64_MAX }, 1, 0, NULL);
    for (uint64_t n = 8; n >= 1; n--)
        if (!wb_client_parks(a, WB_BATCH(n), bytes))
            return;
    expect_rows(a, (wb_pending_filter){ .before = UINT64_MAX }, 1, 8, bytes);
    expect_rows(a, (wb_pending_filter){ .before = UINT64_MAX, .head = 10 }, 1, 8, "operations");
    expect_rows(a, (wb_pending_filter){ .before = UINT64_MAX, .head = 1000 }, 1, 8, bytes);
    expect_rows(a, (wb_pending_filter){ .before = UINT64_MAX, .limit = 3 }, 1, 3, bytes);
    expect_rows(a, (wb_pending_filter){ .before = UINT64_MAX, .limit = 3, .head = 4 }, 1, 3, "oper");
    expect_rows(a, (wb_pending_filter){ .after = WB_BATCH(2), .before = WB_BATCH(6) }, 3, 5, bytes);
    expect_rows(a, (wb_pending_filter){ .after = WB_BATCH(8), .before = UINT64_MAX, .head = 1 }, 1, 0, NULL);
    expect_rows(a, (wb_pending_filter){ .after = UINT64_MAX, .before = UINT64_MAX }, 1, 0, NULL);
    expect_rows(a, (wb_pending_filter){ .after = WB_BATCH(6), .before = WB_BATCH(2) }, 1, 0, NULL);
    expect_rows(b, (wb_pending_filter){ .before = UINT64_MAX }, 1, 0, NULL);
}

/* More rows than a page could hold, and a row that is none. */
static void many_rows(wb_kit *kit)
{
    enum { ROWS = 40 };
    if (WB_LACKS(kit, list_pending))
        return;
    wb_client *a = wb_client_open(kit, 0);
    char *large = wb_alloc_zero(1, 200001);
    wb_kit_defer(kit, free, large);
    memset(large, 'x', 200000);
    for (uint64_t n = 1; a && n <= ROWS; n++)
        if (!wb_client_parks(a, WB_BATCH(n), n < ROWS ? large : ""))
            return;
    if (!a)
        return;
    expect_rows(a, (wb_pending_filter){ .before = WB_BATCH(ROWS) }, 1, ROWS - 1, large);
    expect_rows(a, (wb_pending_filter){ .before = UINT64_MAX }, 1, ROWS, "");
    expect_rows(a, (wb_pending_filter){ .before = UINT64_MAX, .head = 150000 }, 1, ROWS, "");
    expect_rows(a, (wb_pending_filter){ .after = WB_BATCH(1), .before = UINT64_MAX, .head = 3, .limit = 30 }, 2, 31, "xxx");
}

static int refuse(void *argument, const wb_pending *row)
{
    (void)row;
    return ++*(size_t *)argument == 2 ? WB_REJECT : WB_OK;
}

static void visitor_is_heard(wb_kit *kit)
{
    if (WB_LACKS(kit, list_pending))
        return;
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !store_records(a, 4, "operations"))
        return;
    for (size_t head = 0; head <= 4; head += 4) {
        size_t visits = 0;
        const wb_pending_filter filter = { .struct_size = sizeof filter, .before = UINT64_MAX, .head = head };
        int r = a->ops->list_pending(a->session, &filter, refuse, &visits, &a->error);
        wb_client_check(a, r, WB_REJECT, "hand on what the visitor said");
        wb_kit_check(kit, visits == 2, "the visitor was called %zu times", visits);
    }
    expect_rows(a, (wb_pending_filter){ .before = UINT64_MAX }, 1, 4, "operations");
}

typedef struct {
    wb_client *other;
    size_t visits;
} meeting;

static int list_meanwhile(void *argument, const wb_pending *row)
{
    meeting *both = argument;
    (void)row;
    both->visits++;
    expect_rows(both->other, (wb_pending_filter){ .before = UINT64_MAX }, 1, 3, "operations");
    expect_rows(both->other, (wb_pending_filter){ .before = UINT64_MAX, .head = 2 }, 1, 3, "op");
    return WB_OK;
}

/* A sweeper's lock, and a batch's, are no concern of who looks. */
static void beside_others(wb_kit *kit)
{
    wb_claim claim = WB_CLAIM("new");
    if (WB_LACKS(kit, list_pending) || WB_LACKS(kit, next_pending))
        return;
    wb_client *a = wb_client_open(kit, 0), *c = wb_client_open(kit, 0);
    meeting both = { .other = wb_client_open(kit, 0) };
    if (!a || !c || !both.other || !store_records(a, 3, "operations"))
        return;
    int r = a->ops->next_pending(a->session, 0, WB_BATCH_END, list_meanwhile, &both, &a->error);
    wb_client_check(a, r, WB_OK, "visit the next row");
    wb_kit_check(kit, both.visits == 1, "%zu rows were visited", both.visits);
    if (!wb_client_takes(c, WB_BATCH(4), &claim, 1))
        return;
    expect_rows(a, (wb_pending_filter){ .before = UINT64_MAX }, 1, 3, "operations");
    if (wb_client_check(c, wb_client_commit(c, WB_BATCH(4), "operations", 10), WB_OK, "commit"))
        expect_rows(a, (wb_pending_filter){ .before = UINT64_MAX }, 1, 4, "operations");
}

#define OUTBOX WB_CAP_OUTBOX
static const wb_kit_case cases[] = {
    { "stats() counts records and knows the oldest and the newest", OUTBOX, in_numbers },
    { "stats() does not wait for a transaction, nor count what it claims", OUTBOX, beside_a_transaction },
    { "stats() fills the table of a newer host", OUTBOX, shorter_stats },
    { "count_records() keeps to its bounds and its limit", OUTBOX, records_of_a_range },
    { "count_records() counts what a clean-up deletes", OUTBOX, as_many_as_cleaned_up },
    { "list_pending() lists rows in order, whole or their heads", OUTBOX, pending_rows },
    { "list_pending() lists many rows, large ones and one of no bytes", OUTBOX, many_rows },
    { "list_pending() hands on what the visitor says", OUTBOX, visitor_is_heard },
    { "list_pending() waits for nobody", OUTBOX, beside_others },
};
const wb_kit_group wb_cases_look = WB_KIT_GROUP(cases);
