/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence kit: the sweeper, which visits pending rows whose message may never return.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/persistence/persistence.h"

/* Rows of batches 1 to count, stored in another order than that of their numbers. */
static int store_rows(wb_client *a, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        char id[32];
        uint64_t n = i * 7 % count + 1; /* 7 does not divide the counts used */
        (void)snprintf(id, sizeof id, "order-%" PRIu64, n);
        if (!wb_client_stores(a, WB_BATCH(n), id, "operations"))
            return 0;
    }
    return 1;
}

static void check_found(wb_kit *kit, const wb_found *found, uint64_t first, uint64_t last)
{
    size_t wanted = (size_t)(last + 1 - first);
    if (!wb_kit_check(kit, found->count == wanted, "%zu rows were visited instead of %zu",
                      found->count, wanted))
        return;
    for (size_t i = 0; i < wanted; i++)
        if (!wb_kit_check(kit, found->batches[i] == WB_BATCH(first + i), "row %zu is not the one in turn", i))
            return;
}

static void sweep_and_check(wb_client *a, uint64_t before, size_t limit, uint64_t first, uint64_t last)
{
    wb_found found;
    int r = wb_client_sweep(a, before, limit, &found);
    if (wb_client_check(a, r, WB_OK, "sweep"))
        check_found(a->kit, &found, first, last);
    free(found.operations);
}

static void oldest_first(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !store_rows(a, 10))
        return;
    sweep_and_check(a, WB_BATCH_END, 100, 1, 10);
    sweep_and_check(a, WB_BATCH_END, 100, 1, 10); /* a visit changes nothing */
}

static void within_limits(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !store_rows(a, 10))
        return;
    sweep_and_check(a, WB_BATCH_END, 3, 1, 3);
    sweep_and_check(a, WB_BATCH(5), 100, 1, 4); /* below, not at */
    sweep_and_check(a, WB_BATCH(5), 2, 1, 2);
    sweep_and_check(a, WB_BATCH(1), 100, 1, 0);
    sweep_and_check(a, 0, 100, 1, 0);
    sweep_and_check(a, WB_BATCH(11), SIZE_MAX, 1, 10);
    sweep_and_check(a, UINT64_MAX, 1, 1, 1);
}

static void marked_rows_are_gone(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !store_rows(a, 4))
        return;
    wb_client_check(a, wb_client_mark(a, WB_BATCH(1), NULL, 0), WB_OK, "mark");
    wb_client_check(a, wb_client_mark(a, WB_BATCH(2), "rest", 4), WB_OK, "mark");
    wb_found found;
    if (!wb_client_check(a, wb_client_sweep(a, WB_BATCH_END, 9, &found), WB_OK, "sweep"))
        return;
    check_found(kit, &found, 2, 4);
    wb_kit_check(kit, found.operations_size == 4 && memcmp(found.operations, "rest", 4) == 0,
                 "the first row does not hold what remained");
    free(found.operations);
}

static void other_endpoint(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 1);
    if (!a || !b || !store_rows(a, 2))
        return;
    sweep_and_check(b, WB_BATCH_END, 9, 1, 0);
}

/* ---- two at once ------------------------------------------------------------------------ */

typedef struct {
    wb_client *inner;
    size_t visits;
    int inner_result;
    wb_found inner_found;
} nested;

static int sweep_inside(void *argument, const wb_pending *row)
{
    nested *both = argument;
    (void)row;
    if (both->visits++ == 0) {
        both->inner_result = wb_client_sweep(both->inner, WB_BATCH_END, 100, &both->inner_found);
        free(both->inner_found.operations);
    }
    return WB_OK;
}

/* While one instance visits, another finds nothing to do. */
static void one_instance_at_a_time(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0);
    wb_store *again = wb_store_again(kit, 0);
    nested both = { .inner = again ? wb_client_open_on(kit, again) : NULL };
    if (!a || !both.inner || !store_rows(a, 4))
        return;
    int r = a->ops->sweep(a->session, WB_BATCH_END, 100, sweep_inside, &both, &a->error);
    wb_client_check(a, r, WB_OK, "sweep");
    wb_kit_check(kit, both.visits == 4, "%zu of 4 rows were visited", both.visits);
    wb_client_check(both.inner, both.inner_result, WB_OK, "sweep while another does");
    wb_kit_check(kit, both.inner_found.count == 0, "%zu rows were visited by two at once",
                 both.inner_found.count);
    sweep_and_check(both.inner, WB_BATCH_END, 100, 1, 4);
}

/* The session that sweeps has nothing open afterwards, also when the visitor stopped. */
static void session_goes_on(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0);
    WB_KIT_REQUIRE(kit, a != NULL, "there is no session");
    sweep_and_check(a, WB_BATCH_END, 100, 1, 0);
    if (store_rows(a, 3))
        sweep_and_check(a, WB_BATCH_END, 100, 1, 3);
    wb_client_stores(a, WB_BATCH(9), "order-9", NULL);
}

/* What is visited is sent and may take long: batches must not wait for it. */
static int work_elsewhere(void *argument, const wb_pending *row)
{
    nested *both = argument;
    if (both->visits++ == 0)
        (void)wb_client_stores(both->inner, WB_BATCH(99), "order-99", "operations");
    if (row->batch == WB_BATCH(1))
        wb_client_check(both->inner, wb_client_mark(both->inner, WB_BATCH(2), NULL, 0), WB_OK, "mark");
    return WB_OK;
}

static void batches_do_not_wait(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0);
    nested both = { .inner = wb_client_open(kit, 0) };
    if (!a || !both.inner || !store_rows(a, 3))
        return;
    int r = a->ops->sweep(a->session, WB_BATCH(50), 100, work_elsewhere, &both, &a->error);
    wb_client_check(a, r, WB_OK, "sweep");
    wb_kit_check(kit, both.visits == 3 || both.visits == 2, "%zu of 3 rows were visited", both.visits);
    wb_client_finds_pending(a, WB_BATCH(99), "operations", 10);
    wb_client_finds_pending(a, WB_BATCH(2), NULL, 0);
}

#define OUTBOX WB_CAP_OUTBOX
static const wb_kit_case cases[] = {
    { "a sweep visits the oldest first and changes nothing", OUTBOX, oldest_first },
    { "a sweep keeps to its limit and its bound", OUTBOX, within_limits },
    { "a sweep finds what remains, not what was marked", OUTBOX, marked_rows_are_gone },
    { "a sweep finds nothing of another endpoint", OUTBOX, other_endpoint },
    { "while one instance sweeps another visits nothing", OUTBOX, one_instance_at_a_time },
    { "a session goes on after a sweep", OUTBOX, session_goes_on },
    { "batches are stored and marked while a sweep visits", OUTBOX, batches_do_not_wait },
};
const wb_kit_group wb_cases_sweep = WB_KIT_GROUP(cases);
