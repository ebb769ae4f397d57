/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence kit: clock(), the time that batch numbers carry. Whoever shares the database
 * shares it, however wrong the clocks of the hosts are.
 */
#include "config.h"

#include <inttypes.h>

#include "conformance/persistence/persistence.h"

/* A clock may be a little wrong, the kit's as well; one in another unit, zone or epoch is not. */
#define MINUTES (10 * 60 * WB_SECOND)
/* The coarsest clock of a database counts seconds. */
#define RESOLUTION (1 * WB_SECOND)

static int ask(wb_client *a, int64_t *ret_wall)
{
    *ret_wall = 0;
    wb_error_clear(&a->error);
    return wb_client_check(a, a->ops->clock(a->session, ret_wall, &a->error), WB_OK,
                           "ask for the time");
}

static void tells_the_time(wb_kit *kit)
{
    int64_t wall;
    if (WB_LACKS(kit, clock))
        return;
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !ask(a, &wall))
        return;
    int64_t off = wall - wb_clock_wall();
    wb_kit_check(kit, off > -MINUTES && off < MINUTES,
                 "the database's time is %" PRId64 " ns, %" PRId64 " s from the host's", wall,
                 off / WB_SECOND);
}

/* Between transactions, as a host asks: a time that stands still is that of a transaction. */
static void time_goes_on(wb_kit *kit)
{
    int64_t first, last, now;
    if (WB_LACKS(kit, clock))
        return;
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !ask(a, &first))
        return;
    int64_t start = wb_clock_monotonic();
    last = first;
    for (uint64_t n = 1; n <= 5; n++) {
        char id[2] = { (char)('a' + n), '\0' };
        wb_clock_pause(300 * WB_MILLISECOND, NULL);
        if (!wb_client_stores(a, WB_BATCH(n), id, NULL) || !ask(a, &now) ||
            !wb_kit_check(kit, now >= last, "the time has gone back by %" PRId64 " ns", last - now))
            return;
        last = now;
    }
    int64_t passed = wb_clock_monotonic() - start;
    wb_kit_check(kit, last - first > 0 && last - first < passed + RESOLUTION,
                 "%" PRId64 " ms have passed, %" PRId64 " by the database's time",
                 passed / WB_MILLISECOND, (last - first) / WB_MILLISECOND);
}

/* It asks in no transaction and leaves none open: others see what this session commits, and
 * this one what others do. */
static void leaves_nothing_open(wb_kit *kit)
{
    int64_t wall;
    size_t deleted;
    if (WB_LACKS(kit, clock))
        return;
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 0);
    if (!a || !b || !ask(a, &wall) || !ask(b, &wall) ||
        !wb_client_stores(a, WB_BATCH(1), "order-1", "one") || !ask(a, &wall) || !ask(b, &wall))
        return;
    wb_client_finds_pending(b, WB_BATCH(1), "one", 3);
    wb_client_check(b, wb_client_mark(b, WB_BATCH(1), NULL, 0), WB_OK, "mark");
    wb_client_finds_pending(a, WB_BATCH(1), NULL, 0);
    if (!ask(a, &wall))
        return;
    wb_client_check(a, wb_client_clean_up(a, WB_BATCH_END, 10, &deleted), WB_OK, "clean up");
    wb_kit_check(kit, deleted == 1, "%zu records are said to be deleted instead of 1", deleted);
    wb_client_finds_owner(b, "order-1", 7, 0);
}

/* Sessions and instances agree, as far as calls take time. */
static void one_time_for_all(wb_kit *kit)
{
    int64_t first, second;
    if (WB_LACKS(kit, clock))
        return;
    wb_client *a = wb_client_open(kit, 0);
    wb_store *again = wb_store_again(kit, 0);
    wb_client *b = again ? wb_client_open_on(kit, again) : NULL;
    if (!a || !b)
        return;
    int64_t start = wb_clock_monotonic();
    if (!ask(a, &first) || !ask(b, &second))
        return;
    int64_t took = wb_clock_monotonic() - start;
    wb_kit_check(kit, second >= first - RESOLUTION && second <= first + took + RESOLUTION,
                 "two sessions are told times that are %" PRId64 " ms apart",
                 (second - first) / WB_MILLISECOND);
}

static const wb_kit_case cases[] = {
    { "clock() tells the time, within minutes of the host's", 0, tells_the_time },
    { "clock() goes on, and not back", WB_CAP_OUTBOX, time_goes_on },
    { "clock() leaves no transaction open", WB_CAP_OUTBOX, leaves_nothing_open },
    { "clock() tells all sessions the same", 0, one_time_for_all },
};
const wb_kit_group wb_cases_clock = WB_KIT_GROUP(cases);
