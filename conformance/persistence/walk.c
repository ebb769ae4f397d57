/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence kit: next_pending(), with which a sweeper walks over the pending rows, one a
 * call, so that rows that stay do not hide those behind them.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/persistence/persistence.h"
#include "core/base/arena.h"

/* Rows of batches 1 to count, stored in another order than that of their numbers. */
static int store_rows(wb_client *a, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        char id[32];
        uint64_t n = i * 7 % count + 1; /* 7 does not divide the counts used */
        (void)snprintf(id, sizeof id, "order-%" PRIu64, n);
        if (!wb_client_stores(a, WB_BATCH(n), id, id))
            return 0;
    }
    return 1;
}

/* The next row is this one, or with 0 there is none. */
static int expect_next(wb_client *a, uint64_t after, uint64_t before, uint64_t wanted)
{
    wb_found found;
    int r = wb_client_next(a, after, before, &found);
    free(found.operations);
    return wb_client_check(a, r, WB_OK, "visit the next row") &&
           wb_kit_check(a->kit, found.count <= 1, "one call has visited %zu rows", found.count) &&
           wb_kit_check(a->kit, found.count == (wanted != 0), "%zu rows were visited instead of %d",
                        found.count, wanted != 0) &&
           wb_kit_check(a->kit, !wanted || found.batches[0] == wanted,
                        "row %" PRIu64 " was visited instead of %" PRIu64,
                        found.count ? found.batches[0] : 0, wanted);
}

/* From row to row, beginning below all: rows first to last, and then none. */
static int expect_walk(wb_client *a, uint64_t before, uint64_t first, uint64_t last)
{
    uint64_t after = 0;
    for (uint64_t n = first; n <= last; n++) {
        if (!expect_next(a, after, before, WB_BATCH(n)))
            return 0;
        after = WB_BATCH(n);
    }
    return expect_next(a, after, before, 0);
}

static void in_order(wb_kit *kit)
{
    if (WB_LACKS(kit, next_pending))
        return;
    wb_client *a = wb_client_open(kit, 0);
    if (a && expect_next(a, 0, WB_BATCH_END, 0) && store_rows(a, 10) &&
        expect_walk(a, WB_BATCH_END, 1, 10))
        expect_walk(a, WB_BATCH_END, 1, 10); /* a visit changes nothing */
}

static void between_its_bounds(wb_kit *kit)
{
    if (WB_LACKS(kit, next_pending))
        return;
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !store_rows(a, 10))
        return;
    expect_next(a, WB_BATCH(4), WB_BATCH(6), WB_BATCH(5));
    expect_next(a, WB_BATCH(4), WB_BATCH(5), 0); /* above the one, below the other */
    expect_next(a, WB_BATCH(4), WB_BATCH(4), 0);
    expect_next(a, WB_BATCH(6), WB_BATCH(4), 0);
    expect_next(a, 0, WB_BATCH(1), 0);
    expect_next(a, 0, 0, 0);
    expect_next(a, 0, UINT64_MAX, WB_BATCH(1));
    expect_next(a, WB_BATCH(9), UINT64_MAX, WB_BATCH(10));
    expect_next(a, WB_BATCH(10), UINT64_MAX, 0);
    expect_next(a, UINT64_MAX, UINT64_MAX, 0);
    expect_next(a, WB_BATCH_END, UINT64_MAX, 0);
}

/* The largest number that a bound can be above, as a signed one. */
static void the_largest_number(wb_kit *kit)
{
    const uint64_t largest = INT64_MAX - 1;
    if (WB_LACKS(kit, next_pending))
        return;
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !store_rows(a, 2) || !wb_client_parks(a, largest, "operations"))
        return;
    expect_next(a, WB_BATCH(2), UINT64_MAX, largest);
    expect_next(a, WB_BATCH(2), INT64_MAX, largest);
    expect_next(a, WB_BATCH(2), largest, 0);
    expect_next(a, largest, UINT64_MAX, 0);
}

/* Bytes come whole and are the row's; none at all is a row, too. */
static void rows_as_they_are(wb_kit *kit)
{
    enum { SIZE = 1048576 };
    wb_found found;
    if (WB_LACKS(kit, next_pending))
        return;
    wb_client *a = wb_client_open(kit, 0);
    char *bytes = wb_alloc(SIZE);
    wb_kit_defer(kit, free, bytes);
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (char)(i * 7 + i / 251);
    for (uint64_t n = 1; a && n <= 2; n++) {
        size_t size = n == 1 ? 0 : SIZE;
        if (!wb_client_takes(a, WB_BATCH(n), NULL, 0) ||
            !wb_client_check(a, wb_client_commit(a, WB_BATCH(n), bytes, size), WB_OK, "commit") ||
            !wb_client_check(a, wb_client_next(a, WB_BATCH(n - 1), WB_BATCH_END, &found), WB_OK,
                             "visit the next row"))
            return;
        wb_kit_check(kit, found.count == 1 && found.operations_size == size,
                     "%zu rows of %zu bytes, 1 of %zu was stored", found.count,
                     found.count ? found.operations_size : 0, size);
        wb_kit_check(kit, !found.count || found.operations_size != size || !size ||
                              memcmp(found.operations, bytes, size) == 0,
                     "the bytes of a row have changed");
        free(found.operations);
    }
}

/* What a sweeper does: the row that was visited is marked, or stays, and the next one comes. */
static void marked_on_the_way(wb_kit *kit)
{
    uint64_t after = 0;
    if (WB_LACKS(kit, next_pending))
        return;
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !store_rows(a, 6))
        return;
    for (uint64_t n = 1; n <= 6; n++) {
        if (!expect_next(a, after, WB_BATCH_END, WB_BATCH(n)))
            return;
        after = WB_BATCH(n);
        if (n % 3 == 0) /* stays */
            continue;
        int r = n % 3 == 1 ? wb_client_mark(a, after, NULL, 0) : wb_client_mark(a, after, "rest", 4);
        if (!wb_client_check(a, r, WB_OK, "mark the row that was visited"))
            return;
    }
    wb_client_finds_pending(a, WB_BATCH(1), NULL, 0);
    wb_client_finds_pending(a, WB_BATCH(2), "rest", 4);
    wb_client_finds_pending(a, WB_BATCH(3), "order-3", 7);
    expect_next(a, 0, WB_BATCH_END, WB_BATCH(2));
    expect_next(a, WB_BATCH(3), WB_BATCH_END, WB_BATCH(5));
}

static void not_of_another_endpoint(wb_kit *kit)
{
    if (WB_LACKS(kit, next_pending))
        return;
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 1);
    if (a && b && store_rows(a, 2))
        expect_next(b, 0, WB_BATCH_END, 0);
}

/* ---- the visitor ------------------------------------------------------------------------ */

static int refuse(void *argument, const wb_pending *row)
{
    (void)row;
    ++*(size_t *)argument;
    return WB_REJECT;
}

static void visitor_is_heard(wb_kit *kit)
{
    size_t visits = 0;
    if (WB_LACKS(kit, next_pending))
        return;
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !store_rows(a, 3))
        return;
    int r = a->ops->next_pending(a->session, 0, WB_BATCH_END, refuse, &visits, &a->error);
    wb_kit_check(kit, visits == 1, "the visitor was called %zu times", visits);
    wb_client_check(a, r, WB_REJECT, "hand on what the visitor said");
    expect_walk(a, WB_BATCH_END, 1, 3);
    wb_client_stores(a, WB_BATCH(9), "order-9", NULL);
}

typedef struct {
    wb_client *other;
    int (*does)(wb_client *other, wb_found *found);
    int result;
    wb_found found;
} meeting;

static int meet(void *argument, const wb_pending *row)
{
    meeting *both = argument;
    (void)row;
    both->result = both->does(both->other, &both->found);
    free(both->found.operations);
    return WB_OK;
}

static int visit_too(wb_client *other, wb_found *found)
{
    return wb_client_next(other, 0, WB_BATCH_END, found);
}

static int sweep_too(wb_client *other, wb_found *found)
{
    return wb_client_sweep(other, WB_BATCH_END, 100, found);
}

/* While a row is visited another instance finds nothing to visit, however it looks. */
static void one_visitor(wb_kit *kit, int (*does)(wb_client *other, wb_found *found))
{
    if (WB_LACKS(kit, next_pending))
        return;
    wb_client *a = wb_client_open(kit, 0);
    wb_store *again = wb_store_again(kit, 0);
    meeting both = { .other = again ? wb_client_open_on(kit, again) : NULL, .does = does };
    if (!a || !both.other || !store_rows(a, 4))
        return;
    int r = a->ops->next_pending(a->session, 0, WB_BATCH_END, meet, &both, &a->error);
    wb_client_check(a, r, WB_OK, "visit the next row");
    wb_client_check(both.other, both.result, WB_OK, "visit while another does");
    wb_kit_check(kit, both.found.count == 0, "%zu rows were visited by two at once",
                 both.found.count);
    expect_walk(both.other, WB_BATCH_END, 1, 4);
}

static void one_walks(wb_kit *kit)
{
    one_visitor(kit, visit_too);
}

static void one_walks_or_sweeps(wb_kit *kit)
{
    one_visitor(kit, sweep_too);
}

/* What is visited is sent and may take long: batches must not wait for it. */
static int work_elsewhere(wb_client *other, wb_found *found)
{
    (void)wb_client_stores(other, WB_BATCH(99), "order-99", "operations");
    found->operations = NULL;
    return wb_client_mark(other, WB_BATCH(2), NULL, 0);
}

static void batches_do_not_wait(wb_kit *kit)
{
    if (WB_LACKS(kit, next_pending))
        return;
    wb_client *a = wb_client_open(kit, 0);
    meeting both = { .other = wb_client_open(kit, 0), .does = work_elsewhere };
    if (!a || !both.other || !store_rows(a, 3))
        return;
    int r = a->ops->next_pending(a->session, 0, WB_BATCH_END, meet, &both, &a->error);
    wb_client_check(a, r, WB_OK, "visit the next row");
    wb_client_check(both.other, both.result, WB_OK, "mark while another visits");
    wb_client_finds_pending(a, WB_BATCH(99), "operations", 10);
    expect_next(a, WB_BATCH(1), WB_BATCH_END, WB_BATCH(3));
}

#define OUTBOX WB_CAP_OUTBOX
static const wb_kit_case cases[] = {
    { "next_pending() walks over the rows in order, one a call", OUTBOX, in_order },
    { "next_pending() keeps to its bounds", OUTBOX, between_its_bounds },
    { "next_pending() visits the largest number", OUTBOX, the_largest_number },
    { "next_pending() hands out rows as they are", OUTBOX, rows_as_they_are },
    { "rows are marked or stay while next_pending() walks on", OUTBOX, marked_on_the_way },
    { "next_pending() finds nothing of another endpoint", OUTBOX, not_of_another_endpoint },
    { "next_pending() hands on what the visitor says", OUTBOX, visitor_is_heard },
    { "while one instance visits a row another visits none", OUTBOX, one_walks },
    { "while one instance visits a row another sweeps none", OUTBOX, one_walks_or_sweeps },
    { "batches are stored and marked while next_pending() visits", OUTBOX, batches_do_not_wait },
};
const wb_kit_group wb_cases_walk = WB_KIT_GROUP(cases);
