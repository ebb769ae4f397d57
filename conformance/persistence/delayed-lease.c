/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence kit: the delayed message store, what is due and who has taken it.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/persistence/delayed.h"

#define SHORT_LEASE (300 * WB_MILLISECOND)
/* Times long past, a second apart. */
#define PAST(n) ((int64_t)(n) * WB_SECOND)

static int stores_three(wb_client *client)
{
    return client && wb_client_delay(client, "c", PAST(3)) && wb_client_delay(client, "a", PAST(1)) &&
           wb_client_delay(client, "b", PAST(2));
}

/* ---- what is due -------------------------------------------------------------------------- */

static void earliest_first(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0);
    wb_delayed_fetch two = wb_fetch_of(wb_owner_a, 0);
    two.limit = 2;
    if (!stores_three(a) || !wb_client_fetches(a, &two, "a b ") || !wb_client_fetches(a, &two, "c "))
        return;
    wb_client_fetches(a, &two, "");
}

/* With times that are given, to the microsecond. */
static void due_at_a_time(wb_kit *kit)
{
    const int64_t due = PAST(1) + 1;
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !wb_client_delay(a, "a", due) || !wb_client_delay(a, "b", PAST(2)) ||
        !wb_client_delay(a, "never", PAST(8000000000)) ||
        !wb_client_takes_due(a, wb_owner_a, 1, "") || /* the first nanosecond is a time as well, not now */
        !wb_client_takes_due(a, wb_owner_a, due - 1, "") || !wb_client_is_next(a, due) ||
        !wb_client_takes_due(a, wb_owner_a, due + WB_ROUNDING, "a ") ||
        !wb_client_takes_due(a, wb_owner_a, PAST(2) - 1, "") ||
        !wb_client_takes_due(a, wb_owner_a, PAST(2), "b "))
        return;
    wb_client_takes_due(a, wb_owner_a, 0, "");
}

/* Longer than a slow disk takes to store and to take one: it is asked for before it is due. */
#define AHEAD (100 * WB_MILLISECOND)

/* One at a time; asked for all the while, and none comes before its time. */
static void never_early(wb_kit *kit)
{
    static const char *const ids[] = { "a", "b", "c", "d", "e" };
    const wb_delayed_fetch what = wb_fetch_of(wb_owner_a, 0);
    wb_client *a = wb_client_open(kit, 0);
    for (size_t i = 0; a && i < 5; i++) {
        const int64_t deadline = wb_clock_monotonic() + kit->options->patience;
        wb_seen seen = { .count = 0 };
        int64_t now;
        if (!wb_client_asks_time(a, &now) || !wb_client_delay(a, ids[i], now + AHEAD))
            return;
        const int64_t due = now + AHEAD;
        while (!seen.count && wb_clock_monotonic() < deadline)
            if (!wb_client_check(a, wb_delayed_fetch_into(a, &what, &seen), WB_OK, "fetch"))
                return;
        if (!wb_client_asks_time(a, &now) ||
            !wb_kit_check(kit, seen.count == 1, "what is due does not come") ||
            !wb_kit_check(kit, now >= due, "it came %" PRId64 " us early", (due - now) / 1000))
            return;
    }
}

/* The database's clock says what is due, and it is the one of clock(). */
static void by_the_databases_clock(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0);
    int64_t now, wall;
    if (!a || !wb_client_asks_time(a, &now) || !wb_client_delay(a, "past", now - WB_SECOND) ||
        !wb_client_delay(a, "future", now + 600 * WB_SECOND) ||
        !wb_client_takes_due(a, wb_owner_a, 0, "past ") || WB_LACKS(kit, clock) ||
        !wb_client_check(a, a->ops->clock(a->session, &wall, &a->error), WB_OK, "ask for the time"))
        return;
    wb_kit_check(kit, wall - now > -WB_SECOND && wall - now < WB_CALL_DEADLINE,
                 "next() and clock() tell times %" PRId64 " ms apart", (wall - now) / WB_MILLISECOND);
}

static void next_is_earliest(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !wb_client_is_next(a, WB_NEVER_DUE) || !wb_client_delay(a, "b", PAST(2)) ||
        !wb_client_is_next(a, PAST(2)) || !wb_client_delay(a, "c", PAST(3)) ||
        !wb_client_delay(a, "a", PAST(1)) || !wb_client_is_next(a, PAST(1)) ||
        !wb_client_changes(a, WB_REMOVE, NULL, "a", 0, 1))
        return;
    wb_client_is_next(a, PAST(2));
}

/* What is taken is next when its lease ends, unless something free is due before. */
static void next_looks_at_leases(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0);
    int64_t before, due, now;
    wb_delayed_fetch one = wb_fetch_of(wb_owner_a, 0);
    one.limit = 1;
    if (!a || !wb_client_asks_time(a, &before) || !wb_client_delay(a, "a", PAST(1)) ||
        !wb_client_fetches(a, &one, "a ") ||
        !wb_client_check(a, wb_delayed_next(a, &due, &now), WB_OK, "ask what is next") ||
        !wb_kit_check(kit, due >= before + WB_LONG_LEASE - WB_ROUNDING &&
                               due <= now + WB_LONG_LEASE + WB_ROUNDING,
                      "of one that is taken next() says %" PRId64 " s from now",
                      (due - now) / WB_SECOND) ||
        !wb_client_delay(a, "b", before + 2 * WB_LONG_LEASE) ||
        !wb_client_check(a, wb_delayed_next(a, &now, &before), WB_OK, "ask what is next") ||
        !wb_kit_check(kit, now == due, "what is due later hides what was taken") ||
        !wb_client_delay(a, "c", PAST(3)) || !wb_client_is_next(a, PAST(3)) ||
        !wb_client_gives_back(a, wb_owner_a, "a "))
        return;
    wb_client_is_next(a, PAST(1));
}

/* A hundred could be fetched, and are more than one who fetches may have in memory. */
static void fetch_is_bounded(wb_kit *kit)
{
    enum { COUNT = 40, SIZE = 1024 * 1024, MOST = WB_DELAYED_FETCH_BYTES / SIZE };
    wb_client *a = wb_client_open(kit, 0);
    char *operation = calloc(1, SIZE);
    wb_seen first = { .count = 0 }, rest = { .count = 0 };
    wb_delayed_fetch what = wb_fetch_of(wb_owner_a, 0);
    int is_stored = a && operation;
    for (unsigned i = 0; i < COUNT && is_stored; i++) {
        const char id[] = { (char)('0' + i), '\0' };
        wb_delayed message = wb_waiting(id, PAST(1 + i));
        message.operation = operation;
        message.operation_size = SIZE;
        is_stored = wb_client_delays(a, &message, 1);
    }
    free(operation);
    what.limit = 100;
    if (!is_stored || !wb_client_check(a, wb_delayed_fetch_into(a, &what, &first), WB_OK, "fetch") ||
        !wb_client_check(a, wb_delayed_fetch_into(a, &what, &rest), WB_OK, "fetch the rest"))
        return;
    wb_kit_check(kit, first.count > 0 && first.count <= MOST, "%zu messages of 1 MiB came in one fetch", first.count);
    wb_kit_check(kit, first.count + rest.count == COUNT, "%zu of 40 came in two fetches", first.count + rest.count);
}

/* More than a fetch may hold, by itself; unless the store's rows hold less. */
static void fetch_takes_one_at_least(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0);
    wb_delayed message = wb_waiting("huge", PAST(1));
    message.operation_size = WB_DELAYED_FETCH_BYTES + 1;
    message.operation = calloc(1, message.operation_size);
    int r = a && message.operation ? wb_delayed_store(a, &message, 1) : WB_FATAL;
    free((void *)(uintptr_t)message.operation);
    if (r == WB_REJECT)
        return;
    if (wb_client_check(a, r, WB_OK, "store it") && wb_client_delay(a, "behind", PAST(2)) &&
        wb_client_takes_due(a, wb_owner_a, 0, "huge "))
        wb_client_takes_due(a, wb_owner_a, 0, "behind ");
}

/* ---- leases -------------------------------------------------------------------------------- */

static void taken_is_taken(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 0);
    wb_delayed_fetch two = wb_fetch_of(wb_owner_a, 0);
    two.limit = 2;
    if (!b || !stores_three(a) || !wb_client_fetches(a, &two, "a b ") ||
        !wb_client_takes_due(b, wb_owner_b, 0, "c ") || !wb_client_takes_due(a, wb_owner_a, 0, "") ||
        !wb_client_takes_due(b, wb_owner_b, 0, "") ||
        !wb_client_takes_due(b, wb_owner_b, PAST(8000000000), "")) /* that is what is due, and ends no lease */
        return;
    wb_client_has_waiting(b, "a b c ");
}

/* Asked for all the while: it comes again, and not while the lease lasts. */
static void leases_end(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 0);
    wb_delayed_fetch some = wb_fetch_of(wb_owner_a, 0), all = wb_fetch_of(wb_owner_b, 0);
    int64_t start, now, deadline = wb_clock_monotonic() + kit->options->patience;
    wb_seen seen = { .count = 0 };
    some.lease = SHORT_LEASE;
    if (!b || !stores_three(a) || !wb_client_asks_time(a, &start) ||
        !wb_client_fetches(a, &some, "a b c "))
        return;
    while (!seen.count && wb_clock_monotonic() < deadline) {
        wb_clock_pause(WB_MILLISECOND, NULL);
        if (!wb_client_check(b, wb_delayed_fetch_into(b, &all, &seen), WB_OK, "fetch"))
            return;
    }
    if (!wb_client_asks_time(b, &now))
        return;
    wb_kit_check(kit, strcmp(seen.ids, "a b c ") == 0, "\"%s\" came when the lease ended", seen.ids);
    wb_kit_check(kit, now - start >= SHORT_LEASE - WB_ROUNDING, "it ended %" PRId64 " us early",
                 (SHORT_LEASE - (now - start)) / 1000);
    wb_kit_check(kit, seen.last.failures == 0, "it counts as a failure");
    wb_client_changes(a, WB_REMOVE, wb_owner_a, "a", 0, 0); /* it is another's now */
    wb_client_changes(a, WB_INCREMENT, wb_owner_a, "b", PAST(9), 0);
    wb_client_changes(a, WB_RELEASE, wb_owner_a, "c", 0, 0);
    wb_client_takes_due(a, wb_owner_a, 0, "");
    wb_client_changes(b, WB_REMOVE, wb_owner_b, "a", 0, 1);
}

/* A lease that has ended is an offer to others; until one takes it the message is its owner's. */
static void own_until_taken(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0);
    wb_delayed_fetch some = wb_fetch_of(wb_owner_a, 0);
    int64_t start, now;
    some.lease = SHORT_LEASE;
    if (!stores_three(a) || !wb_client_fetches(a, &some, "a b c ") || !wb_client_asks_time(a, &start))
        return;
    do
        wb_clock_pause(10 * WB_MILLISECOND, NULL);
    while (wb_client_asks_time(a, &now) && now - start <= SHORT_LEASE && !kit->is_failed);
    if (!wb_client_changes(a, WB_REMOVE, wb_owner_b, "a", 0, 0) || !wb_client_changes(a, WB_REMOVE, wb_owner_a, "a", 0, 1) ||
        !wb_client_changes(a, WB_INCREMENT, wb_owner_a, "b", PAST(9), 1) ||
        !wb_client_changes(a, WB_RELEASE, wb_owner_a, "c", PAST(8), 1))
        return;
    wb_client_takes_due(a, wb_owner_b, 0, "c b ");
}

static void owners_remove_their_own(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0);
    wb_delayed_fetch one = wb_fetch_of(wb_owner_a, 0);
    one.limit = 1;
    if (!stores_three(a) || !wb_client_fetches(a, &one, "a ") ||
        !wb_client_changes(a, WB_REMOVE, wb_owner_b, "a", 0, 0) ||
        !wb_client_changes(a, WB_REMOVE, wb_owner_a, "b", 0, 0) ||
        !wb_client_has_waiting(a, "a b c ") ||
        !wb_client_changes(a, WB_REMOVE, wb_owner_a, "a", 0, 1) ||
        !wb_client_changes(a, WB_REMOVE, wb_owner_a, "a", 0, 0) ||
        !wb_client_takes_due(a, wb_owner_a, 0, "b c ") ||
        !wb_client_changes(a, WB_REMOVE, NULL, "b", 0, 1) || !wb_client_has_waiting(a, "c ") ||
        !wb_client_delay(a, "b", PAST(2)) ||
        !wb_client_changes(a, WB_REMOVE, wb_owner_a, "b", 0, 0)) /* another row, that nobody took */
        return;
    wb_client_has_waiting(a, "b c ");
}

/* What is due at one time comes in any order. */
static int takes_again(wb_client *client, size_t count)
{
    wb_seen seen = { .count = 0 };
    const wb_delayed_fetch what = wb_fetch_of(wb_owner_a, PAST(1));
    return wb_client_check(client, wb_delayed_fetch_into(client, &what, &seen), WB_OK, "fetch") &&
           wb_kit_check(client->kit, seen.count == count, "%zu messages of %zu came again",
                        seen.count, count);
}

/* Mine, another's, nobody's, one that never was and one that is gone, in one call. */
static void was_there_is_exact(wb_kit *kit)
{
    static const char *const ids[] = { "none", "theirs", "mine", "free", "gone", "mine-2" };
    static const int wanted[] = { 0, 0, 1, 0, 0, 1 };
    wb_delayed messages[6];
    wb_delayed_key keys[6];
    wb_client *a = wb_client_open(kit, 0);
    for (size_t i = 0; i < 6; i++) {
        messages[i] = wb_waiting(ids[i], PAST(i + 1));
        keys[i] = wb_waiting_key(&messages[i]);
    }
    if (!a || !wb_client_delay(a, "theirs", PAST(1)) ||
        !wb_client_takes_due(a, wb_owner_b, 0, "theirs ") || !wb_client_delay(a, "mine", PAST(1)) ||
        !wb_client_delay(a, "mine-2", PAST(2)) || !wb_client_delay(a, "gone", PAST(3)) ||
        !wb_client_takes_due(a, wb_owner_a, 0, "mine mine-2 gone ") ||
        !wb_client_changes(a, WB_REMOVE, wb_owner_a, "gone", 0, 1) ||
        !wb_client_delay(a, "free", PAST(4)))
        return;
    for (int change = WB_INCREMENT; change >= WB_REMOVE; change--) {
        int r = wb_delayed_change(a, (wb_change)change, wb_owner_a, keys, 6, PAST(1));
        wb_client_check(a, r, WB_OK, change == WB_REMOVE ? "remove" : "count failures");
        for (size_t i = 0; i < 6; i++)
            wb_kit_check(kit, keys[i].was_there == wanted[i], "\"%s\": was_there is %d", ids[i],
                         keys[i].was_there);
        if (change == WB_INCREMENT && !takes_again(a, 2))
            return;
    }
    wb_client_has_waiting(a, "theirs free ");
}

/* ---- failures ------------------------------------------------------------------------------ */

static void failures_are_counted(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !wb_client_delay(a, "a", PAST(1)) ||
        !wb_client_changes(a, WB_INCREMENT, wb_owner_a, "a", PAST(2), 0))
        return;
    for (uint32_t n = 0; n < 3; n++) {
        wb_delayed want = wb_waiting("a", PAST(n + 1));
        wb_seen seen = { .expected = &want, .expected_count = 1 };
        const wb_delayed_fetch what = wb_fetch_of(wb_owner_a, PAST(n + 1));
        want.failures = n;
        wb_client_check(a, wb_delayed_fetch_into(a, &what, &seen), WB_OK, "fetch what is due");
        WB_KIT_REQUIRE(kit, seen.count == 1, "after %u failures %zu messages of 1 are due", n,
                       seen.count);
        if (!wb_client_changes(a, WB_INCREMENT, wb_owner_b, "a", PAST(9), 0) ||
            !wb_client_changes(a, WB_INCREMENT, wb_owner_a, "a", PAST(n + 2), 1) ||
            !wb_client_takes_due(a, wb_owner_b, PAST(n + 2) - 1, "") ||
            !wb_client_is_next(a, PAST(n + 2)))
            return;
    }
    wb_client_changes(a, WB_REMOVE, wb_owner_a, "a", 0, 0); /* given back, so not his */
}

static void released_is_unchanged(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 0);
    wb_delayed_fetch one = wb_fetch_of(wb_owner_b, 0);
    one.limit = 1;
    if (!b || !stores_three(a) || !wb_client_fetches(b, &one, "a ") ||
        !wb_client_takes_due(a, wb_owner_a, 0, "b c ") ||
        !wb_client_changes(a, WB_INCREMENT, wb_owner_a, "c", PAST(4), 1) ||
        !wb_client_takes_due(a, wb_owner_a, 0, "c ") ||
        !wb_client_changes(a, WB_RELEASE, wb_owner_a, "a", 0, 0) ||
        !wb_client_gives_back(a, wb_owner_a, "b c ") ||
        !wb_client_changes(a, WB_RELEASE, wb_owner_a, "b", 0, 0) || !wb_client_is_next(a, PAST(2)) ||
        !wb_client_changes(a, WB_REMOVE, wb_owner_a, "b", 0, 0))
        return;
    wb_delayed want[] = { wb_waiting("b", PAST(2)), wb_waiting("c", PAST(4)) };
    wb_seen seen = { .expected = want, .expected_count = 2 };
    const wb_delayed_fetch what = wb_fetch_of(wb_owner_a, 0);
    want[1].failures = 1;
    wb_client_check(a, wb_delayed_fetch_into(a, &what, &seen), WB_OK, "fetch what is due");
    wb_kit_check(kit, seen.count == 2, "%zu messages of 2 came", seen.count);
    wb_client_changes(b, WB_REMOVE, wb_owner_b, "a", 0, 1);
    if (!wb_client_changes(a, WB_RELEASE, wb_owner_a, "b", PAST(7), 1) || !wb_client_is_next(a, PAST(7)))
        return;
    want[0] = wb_waiting("b", PAST(7));
    wb_client_check(a, wb_delayed_fetch_into(a, &what, &seen), WB_OK, "fetch what is due again");
    wb_kit_check(kit, seen.count == 1, "%zu messages of 1 came", seen.count);
}

/* What an owner removes with his fetch; keys of nothing, and of what is another's, among them. */
static int rides(wb_client *client, const char *owner, const char *const removed[3], const char *ids)
{
    const wb_delayed_fetch what = wb_fetch_of(owner, 0);
    wb_delayed messages[3];
    wb_delayed_key keys[3];
    wb_seen seen = { .count = 0 };
    for (size_t i = 0; i < 3; i++) {
        messages[i] = wb_waiting(removed[i], 0);
        keys[i] = wb_waiting_key(&messages[i]);
    }
    return wb_client_check(client, wb_delayed_ride(client, keys, 3, &what, &seen), WB_OK, "remove and fetch") &&
           wb_kit_check(client->kit, strcmp(seen.ids, ids) == 0, "\"%s\" was fetched, not \"%s\"", seen.ids, ids);
}

static void removed_with_a_fetch(wb_kit *kit)
{
    static const char *const mine[] = { "a", "b", "b" }, *const theirs[] = { "c", "none", "a" },
                      *const free[] = { "d", "d", "none" };
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 0);
    wb_delayed_fetch two = wb_fetch_of(wb_owner_a, 0);
    two.limit = 2;
    if (!b || !stores_three(a) || !wb_client_fetches(a, &two, "a b ") || !rides(a, wb_owner_a, mine, "c ") ||
        !wb_client_has_waiting(b, "c ") || !rides(b, wb_owner_b, theirs, "") || !wb_client_has_waiting(b, "c ") ||
        !wb_client_delay(a, "d", PAST(4)) || !rides(b, wb_owner_b, free, "d ") ||
        !wb_client_has_waiting(a, "c d ") || !wb_client_gives_back(a, wb_owner_a, "c "))
        return;
    wb_client_gives_back(b, wb_owner_b, "d ");
}

/* ---- a fetch in two halves -------------------------------------------------------------------- */

/* Three wait, one of them is taken; its removal and a fetch of the others have begun. */
static int begins_beside(wb_client *a, wb_delayed *taken, wb_delayed_key *key)
{
    const wb_delayed_fetch what = wb_fetch_of(wb_owner_a, 0);
    wb_delayed_fetch one = what;
    one.limit = 1;
    *taken = wb_waiting("a", 0);
    *key = wb_waiting_key(taken);
    if (a && !WB_HAS(a->ops->delayed, wb_delayed_ops, begin_fetch)) {
        wb_kit_skip(a->kit, "there is no begin_fetch()");
        return 0;
    }
    return a && stores_three(a) && wb_client_fetches(a, &one, "a ") &&
           wb_client_check(a, wb_delayed_begin(a, key, 1, &what), WB_OK, "begin to fetch");
}

static void halves(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 0);
    const wb_delayed_fetch what = wb_fetch_of(wb_owner_b, 0);
    wb_seen mine = { .count = 0 }, theirs = { .count = 0 };
    wb_delayed taken;
    wb_delayed_key key;
    if (!b || !begins_beside(a, &taken, &key))
        return;
    wb_client_check(b, wb_delayed_fetch_into(b, &what, &theirs), WB_OK, "fetch beside it");
    wb_client_delay(b, "later", PAST(4102444800)); /* the year 2100 */
    wb_client_check(a, wb_delayed_end(a, &mine), WB_OK, "end the fetch");
    wb_kit_check(kit, mine.count + theirs.count == 2 && strcmp(mine.ids, theirs.ids) != 0 &&
                          strstr("b c ", mine.ids) && strstr("b c ", theirs.ids),
                 "\"%s\" and \"%s\" were fetched", mine.ids, theirs.ids);
    wb_client_has_waiting(a, "b c later ");
}

/* The server may still be at it: rows of what it does are locked, and passed over, or taken. */
static void closed_between_halves(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 0);
    const wb_delayed_filter all = { .struct_size = sizeof all };
    wb_seen seen = { .count = 0 };
    wb_delayed taken;
    wb_delayed_key key;
    if (!b || !begins_beside(a, &taken, &key))
        return;
    wb_client_close(a);
    wb_client_check(b, wb_delayed_list_into(b, &all, &seen), WB_OK, "list what waits");
    wb_kit_check(kit, strcmp(seen.ids, "a b c ") == 0 || strcmp(seen.ids, "b c ") == 0, "\"%s\" wait", seen.ids);
}

/* ---- visits -------------------------------------------------------------------------------- */

static int stop_early(void *argument)
{
    (void)argument;
    return WB_REJECT;
}

static void rest_stays_taken(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0);
    const wb_delayed_fetch what = wb_fetch_of(wb_owner_a, 0);
    wb_seen seen = { .meanwhile = stop_early };
    if (!stores_three(a))
        return;
    int r = wb_delayed_fetch_into(a, &what, &seen);
    wb_kit_check(kit, r == WB_REJECT && seen.count == 1, "the visitor's result became %s after %zu",
                 wb_result_name(r), seen.count);
    if (!wb_client_takes_due(a, wb_owner_b, 0, "") ||
        !wb_client_changes(a, WB_REMOVE, wb_owner_a, "c", 0, 1) ||
        !wb_client_gives_back(a, wb_owner_a, "a b "))
        return;
    wb_client_takes_due(a, wb_owner_b, 0, "a b ");
}

/* Another instance, while the first row is visited: all are taken already, nobody waits, and
 * what it stores is stored. */
static int look_beside(void *argument)
{
    wb_client *b = argument;
    wb_client_takes_due(b, wb_owner_b, 0, "");
    wb_client_delay(b, "d", PAST(4));
    wb_client_takes_due(b, wb_owner_b, 0, "d ");
    wb_client_changes(b, WB_CANCEL, NULL, "c", 0, 0);
    wb_client_changes(b, WB_REMOVE, wb_owner_b, "d", 0, 1);
    return WB_OK;
}

static void taken_before_visited(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0);
    wb_store *again = wb_store_again(kit, 0);
    wb_client *b = again ? wb_client_open_on(kit, again) : NULL;
    const wb_delayed_fetch what = wb_fetch_of(wb_owner_a, 0);
    wb_seen seen = { .meanwhile = look_beside, .argument = b };
    if (!b || !stores_three(a))
        return;
    wb_client_check(a, wb_delayed_fetch_into(a, &what, &seen), WB_OK, "fetch what is due");
    wb_kit_check(kit, strcmp(seen.ids, "a b c ") == 0, "\"%s\" were fetched", seen.ids);
}

#define STORE WB_CAP_DELAY_STORE
static const wb_kit_case cases[] = {
    { "delayed: what is due first is fetched first, up to the limit", STORE, earliest_first },
    { "delayed: due at a time, rounded up by a microsecond at most", STORE, due_at_a_time },
    { "delayed: nothing is fetched before it is due", STORE, never_early },
    { "delayed: what is due says the database's clock", STORE, by_the_databases_clock },
    { "delayed: what one fetch brings is bounded", STORE, fetch_is_bounded },
    { "delayed: a message larger than all that one fetch may hold comes alone", STORE, fetch_takes_one_at_least },
    { "delayed: next() says when the earliest is due, or never", STORE, next_is_earliest },
    { "delayed: next() says when a lease ends", STORE, next_looks_at_leases },
    { "delayed: what is taken nobody else is given", STORE, taken_is_taken },
    { "delayed: what was taken is given to others when the lease ends", STORE, leases_end },
    { "delayed: what was taken is its owner's until another takes it, though the lease has ended", STORE, own_until_taken },
    { "delayed: an owner removes what he has taken, nobody's owner all", STORE, owners_remove_their_own },
    { "delayed: was_there is exact where keys are mixed", STORE, was_there_is_exact },
    { "delayed: failures are counted, and the message is due when it is said", STORE, failures_are_counted },
    { "delayed: what an owner removes with his fetch is gone, and nothing else", STORE, removed_with_a_fetch },
    { "delayed: while a fetch that was begun is not ended, others go on, and nobody is given the same", STORE, halves },
    { "delayed: a session that is closed before its fetch is ended has lost nothing", STORE, closed_between_halves },
    { "delayed: release() gives back an owner's, unchanged or due at another time", STORE, released_is_unchanged },
    { "delayed: a visitor that ends a fetch leaves the rest taken", STORE, rest_stays_taken },
    { "delayed: messages are taken before the first is visited, and nobody waits", STORE,
      taken_before_visited },
};
const wb_kit_group wb_cases_delayed_lease = WB_KIT_GROUP(cases);
