/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence kit: take_pending(), with which of all who would dispatch a row one does.
 */
#include "config.h"

#include <stdlib.h>

#include "conformance/persistence/persistence.h"

static int take(wb_client *a, uint64_t batch)
{
    int taken = -1;
    wb_error_clear(&a->error);
    int r = a->ops->take_pending(a->session, batch, &taken, &a->error);
    return wb_client_check(a, r, WB_OK, "take a pending row") ? taken : -1;
}

static void expect(wb_client *a, uint64_t batch, int wanted)
{
    int taken = take(a, batch);
    wb_kit_check(a->kit, taken == wanted, "a row is taken as %d instead of %d (WB_TAKEN_x)", taken, wanted);
}

/* Whether it is, in the end: a server needs a moment to see that a client is gone. */
static void expect_soon(wb_client *a, uint64_t batch)
{
    int64_t deadline = wb_clock_monotonic() + WB_CALL_DEADLINE;
    int taken;
    while ((taken = take(a, batch)) == WB_TAKEN_BY_OTHERS && wb_clock_monotonic() < deadline)
        wb_clock_pause(20 * WB_MILLISECOND, NULL);
    wb_kit_check(a->kit, taken == WB_TAKEN, "a row that nobody has any more cannot be taken");
}

static int store_rows(wb_client *a, uint64_t count)
{
    for (uint64_t n = 1; n <= count; n++)
        if (!wb_client_parks(a, WB_BATCH(n), "operations"))
            return 0;
    return 1;
}

/* Two sessions of two instances, and three rows. 0: the case is over. */
static int prepare(wb_kit *kit, wb_client *ret_both[2])
{
    if (WB_LACKS(kit, take_pending))
        return 0;
    ret_both[0] = wb_client_open(kit, 0);
    wb_store *again = wb_store_again(kit, 0);
    ret_both[1] = again ? wb_client_open_on(kit, again) : NULL;
    if (!ret_both[0] || !ret_both[1] || !store_rows(ret_both[0], 3))
        return 0;
    if (take(ret_both[0], WB_BATCH(1)) != WB_TAKEN_UNGUARDED)
        return 1;
    wb_kit_skip(kit, "its sessions cannot keep a lock here");
    return 0;
}

static void one_has_it(wb_kit *kit)
{
    wb_client *c[2];
    if (!prepare(kit, c))
        return;
    expect(c[0], WB_BATCH(1), WB_TAKEN);
    expect(c[0], WB_BATCH(1), WB_TAKEN); /* again */
    expect(c[1], WB_BATCH(1), WB_TAKEN_BY_OTHERS);
    expect(c[1], WB_BATCH(2), WB_TAKEN);
    expect(c[0], WB_BATCH(2), WB_TAKEN_BY_OTHERS); /* and gives up the first one */
    expect(c[1], WB_BATCH(1), WB_TAKEN);
    expect(c[0], WB_BATCH(2), WB_TAKEN);
    expect(c[1], 0, WB_TAKEN_BY_OTHERS);
    expect(c[0], WB_BATCH(1), WB_TAKEN);
}

static void what_is_gone(wb_kit *kit)
{
    wb_client *c[2];
    if (!prepare(kit, c))
        return;
    wb_client_check(c[1], wb_client_mark(c[1], WB_BATCH(2), NULL, 0), WB_OK, "mark");
    expect(c[0], WB_BATCH(2), WB_TAKEN_BY_OTHERS);
    expect(c[0], WB_BATCH(9), WB_TAKEN_BY_OTHERS); /* never was */
    wb_client_check(c[1], wb_client_mark(c[1], WB_BATCH(3), "rest", 4), WB_OK, "mark");
    expect(c[0], WB_BATCH(3), WB_TAKEN);
}

static void closed_sessions(wb_kit *kit)
{
    wb_client *c[2];
    if (!prepare(kit, c))
        return;
    expect(c[1], WB_BATCH(2), WB_TAKEN);
    wb_client_close(c[1]);
    expect_soon(c[0], WB_BATCH(2));
}

static void live_with_row(wb_client *victim)
{
    expect(victim, WB_BATCH(2), WB_TAKEN);
}

static void killed_processes(wb_kit *kit)
{
    wb_client *c[2];
    if (prepare(kit, c) && wb_victim_run(kit, live_with_row))
        expect_soon(c[0], WB_BATCH(2));
}

/* What is done to a row that somebody has, by himself or by others. */
static void all_else_goes_on(wb_kit *kit)
{
    wb_claim claim = WB_CLAIM("order-9");
    wb_found found;
    wb_client *c[2];
    if (!prepare(kit, c))
        return;
    expect(c[0], WB_BATCH(2), WB_TAKEN);
    wb_client_check(c[1], wb_client_sweep(c[1], WB_BATCH_END, 10, &found), WB_OK, "sweep beside it");
    wb_kit_check(kit, found.count == 3, "%zu rows are swept instead of 3", found.count);
    free(found.operations);
    if (!wb_client_takes(c[0], WB_BATCH(9), &claim, 1) ||
        !wb_client_check(c[0], wb_client_commit(c[0], WB_BATCH(9), "parked", 6), WB_OK, "commit"))
        return;
    expect(c[1], WB_BATCH(2), WB_TAKEN_BY_OTHERS); /* over a transaction of its own */
    wb_client_check(c[1], wb_client_mark(c[1], WB_BATCH(2), "rest", 4), WB_OK, "mark beside it");
    wb_client_finds_pending(c[0], WB_BATCH(2), "rest", 4);
    wb_client_check(c[0], wb_client_mark(c[0], WB_BATCH(2), NULL, 0), WB_OK, "mark");
    wb_client_finds_pending(c[1], WB_BATCH(2), NULL, 0);
}

static void other_endpoint(wb_kit *kit)
{
    wb_client *c[2];
    if (!prepare(kit, c))
        return;
    wb_client *b = wb_client_open(kit, 1);
    if (!b || !store_rows(b, 1))
        return;
    expect(c[0], WB_BATCH(1), WB_TAKEN);
    expect(b, WB_BATCH(1), WB_TAKEN);
}

#define OUTBOX WB_CAP_OUTBOX
static const wb_kit_case cases[] = {
    { "take_pending(): of two sessions one has a row", OUTBOX, one_has_it },
    { "take_pending(): what is gone nobody takes", OUTBOX, what_is_gone },
    { "take_pending(): a session that is closed has nothing", OUTBOX, closed_sessions },
    { "take_pending(): a killed process has nothing", OUTBOX, killed_processes },
    { "take_pending(): batches, marks and sweeps go on", OUTBOX, all_else_goes_on },
    { "take_pending(): the same number is two rows for two endpoints", OUTBOX, other_endpoint },
};
const wb_kit_group wb_cases_take = WB_KIT_GROUP(cases);
