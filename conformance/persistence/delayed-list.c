/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence kit: the delayed message store, as people look at it and change it.
 */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "conformance/persistence/delayed.h"

#define PAST(n) ((int64_t)(n) * WB_SECOND)

static int stores_three(wb_client *client)
{
    return client && wb_client_delay(client, "c", PAST(3)) && wb_client_delay(client, "a", PAST(1)) &&
           wb_client_delay(client, "b", PAST(2));
}

/* ---- lists --------------------------------------------------------------------------------- */

static void a_list_takes_nothing(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !wb_client_has_waiting(a, "") || !stores_three(a) ||
        !wb_client_has_waiting(a, "a b c ") || !wb_client_has_waiting(a, "a b c "))
        return;
    wb_client_takes_due(a, wb_owner_a, 0, "a b c ");
}

static void list_is(wb_client *client, const wb_delayed_filter *filter, const char *ids)
{
    wb_seen seen = { .count = 0 };
    wb_client_check(client, wb_delayed_list_into(client, filter, &seen), WB_OK, "list what waits");
    wb_kit_check(client->kit, strcmp(seen.ids, ids) == 0, "\"%s\" are listed, not \"%s\"", seen.ids,
                 ids);
}

#define LIST(client, ids, ...)                                                                     \
    do {                                                                                           \
        const wb_delayed_filter filter = { .struct_size = sizeof filter, __VA_ARGS__ };            \
        list_is((client), &filter, (ids));                                                         \
    } while (0)
#define TO(text) .destination = (text), .destination_size = sizeof(text) - 1
#define ID(text) .id = (text), .id_size = sizeof(text) - 1

static void conditions_all_hold(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0);
    wb_delayed other[] = { wb_waiting("a", PAST(4)), wb_waiting("d", PAST(5)), wb_waiting("a", PAST(4)) };
    other[2].retries = 1; /* of one id and time, and each is listed */
    for (size_t i = 0; i < 3; i++) {
        other[i].destination = "bill";
        other[i].destination_size = 4;
    }
    if (!stores_three(a) || !wb_client_delays(a, other, 3))
        return;
    LIST(a, "a b c a a d ", .limit = 0);
    LIST(a, "a b ", .limit = 2);
    LIST(a, "a b c ", TO("billing"));
    LIST(a, "a a d ", TO("bill"));
    LIST(a, "", TO("BILL"));
    LIST(a, "a a a ", ID("a"));
    LIST(a, "a a ", ID("a"), TO("bill"));
    LIST(a, "", ID("b"), TO("bill"));
    LIST(a, "b c a a d ", .due_from = PAST(2));
    LIST(a, "c a a d ", .due_from = PAST(2) + WB_ROUNDING);
    LIST(a, "a ", .due_before = PAST(2));
    LIST(a, "a b ", .due_before = PAST(2) + WB_ROUNDING);
    LIST(a, "b c ", .due_from = PAST(2), .due_before = PAST(4));
    LIST(a, "c ", TO("billing"), .due_from = PAST(3), .due_before = PAST(9), .limit = 1);
    LIST(a, "", .due_from = PAST(4), .due_before = PAST(2));
}

/* By its id a message is shown whole; what is taken says until when. */
static void a_list_shows_it_all(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0);
    wb_delayed want = wb_waiting("a", PAST(1));
    wb_seen seen = { .expected = &want, .expected_count = 1 };
    const wb_delayed_filter filter = { .struct_size = sizeof filter, ID("a") };
    int64_t before, after;
    want.retries = 7;
    want.operation = "the operation\0 as it was stored";
    want.operation_size = 31;
    if (!a || !wb_client_delays(a, &want, 1) ||
        !wb_client_check(a, wb_delayed_list_into(a, &filter, &seen), WB_OK, "list a message") ||
        !wb_kit_check(kit, seen.count == 1 && seen.last.operation, "it is not shown whole") ||
        !wb_kit_check(kit, seen.last.leased_until == 0, "nobody has taken it") ||
        !wb_client_asks_time(a, &before) || !wb_client_takes_due(a, wb_owner_a, 0, "a ") ||
        !wb_client_asks_time(a, &after) ||
        !wb_client_check(a, wb_delayed_list_into(a, &filter, &seen), WB_OK, "list it again"))
        return;
    wb_kit_check(kit, seen.last.leased_until >= before + WB_LONG_LEASE - WB_ROUNDING &&
                          seen.last.leased_until <= after + WB_LONG_LEASE + WB_ROUNDING,
                 "it is said to be taken for %" PRId64 " s more",
                 (seen.last.leased_until - before) / WB_SECOND);
    wb_delayed_key key = wb_waiting_key(&want);
    wb_client_check(a, wb_delayed_change(a, WB_INCREMENT, wb_owner_a, &key, 1, PAST(2)), WB_OK,
                    "count a failure");
    want.failures = 1;
    want.due = PAST(2);
    wb_client_check(a, wb_delayed_list_into(a, &filter, &seen), WB_OK, "list it again");
    wb_kit_check(kit, seen.last.leased_until == 0, "it was given back, and is said to be taken");
}

static int stop_early(void *argument)
{
    (void)argument;
    return WB_REJECT;
}

static void a_visitor_ends_a_list(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0);
    const wb_delayed_filter all = { .struct_size = sizeof all };
    wb_seen seen = { .meanwhile = stop_early };
    if (!stores_three(a))
        return;
    int r = wb_delayed_list_into(a, &all, &seen);
    wb_kit_check(kit, r == WB_REJECT && seen.count == 1, "the visitor's result became %s after %zu",
                 wb_result_name(r), seen.count);
    wb_client_takes_due(a, wb_owner_a, 0, "a b c ");
}

/* Whatever others do while somebody reads slowly. */
static int work_beside(void *argument)
{
    wb_client *b = argument;
    if (!wb_client_takes_due(b, wb_owner_b, PAST(2), "a b "))
        return WB_REJECT;
    wb_client_changes(b, WB_REMOVE, wb_owner_b, "a", 0, 1);
    wb_client_gives_back(b, wb_owner_b, "b ");
    wb_client_changes(b, WB_RESCHEDULE, NULL, "b", PAST(2), 1);
    wb_client_delay(b, "a", PAST(1));
    return WB_OK;
}

static void a_list_keeps_nobody_waiting(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 0);
    const wb_delayed_filter first = { .struct_size = sizeof first, .limit = 1 };
    wb_seen seen = { .meanwhile = work_beside, .argument = b };
    if (!b || !stores_three(a))
        return;
    wb_client_check(a, wb_delayed_list_into(a, &first, &seen), WB_OK, "list beside others");
    wb_client_has_waiting(a, "a b c ");
}

/* ---- cancel and reschedule ------------------------------------------------------------------- */

static void cancelled_is_never_fetched(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 0);
    wb_delayed_fetch one = wb_fetch_of(wb_owner_a, 0);
    one.limit = 1;
    if (!b || !stores_three(a) || !wb_client_changes(b, WB_CANCEL, NULL, "b", 0, 1) ||
        !wb_client_changes(b, WB_CANCEL, NULL, "b", 0, 0) ||
        !wb_client_changes(b, WB_CANCEL, NULL, "none", 0, 0) ||
        !wb_client_fetches(a, &one, "a ") || !wb_client_changes(b, WB_CANCEL, NULL, "a", 0, 0) ||
        !wb_client_takes_due(a, wb_owner_a, 0, "c ") ||
        !wb_client_changes(a, WB_REMOVE, wb_owner_a, "a", 0, 1) ||
        !wb_client_changes(b, WB_CANCEL, NULL, "a", 0, 0) || !wb_client_gives_back(a, wb_owner_a, "c ") ||
        !wb_client_changes(b, WB_CANCEL, NULL, "c", 0, 1))
        return;
    wb_client_takes_due(a, wb_owner_a, 0, "");
}

static void cancelled_in_one_call(wb_kit *kit)
{
    static const char *const ids[] = { "none", "taken", "free", "free-2" };
    static const int wanted[] = { 0, 0, 1, 1 };
    wb_delayed messages[4];
    wb_delayed_key keys[4];
    wb_client *a = wb_client_open(kit, 0);
    for (size_t i = 0; i < 4; i++) {
        messages[i] = wb_waiting(ids[i], PAST(i + 1));
        keys[i] = wb_waiting_key(&messages[i]);
    }
    if (!a || !wb_client_delays(a, messages + 1, 1) ||
        !wb_client_takes_due(a, wb_owner_a, 0, "taken ") || !wb_client_delays(a, messages + 2, 2))
        return;
    for (int change = WB_RESCHEDULE; change >= WB_CANCEL; change--) {
        int r = wb_delayed_change(a, (wb_change)change, NULL, keys, 4, PAST(9));
        wb_client_check(a, r, WB_OK, change == WB_CANCEL ? "cancel" : "reschedule");
        for (size_t i = 0; i < 4; i++)
            wb_kit_check(kit, keys[i].was_there == wanted[i], "\"%s\": was_there is %d", ids[i],
                         keys[i].was_there);
    }
    wb_client_has_waiting(a, "taken ");
}

static void rescheduled_is_due_then(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0);
    wb_delayed_fetch one = wb_fetch_of(wb_owner_a, 0);
    one.limit = 1;
    if (!stores_three(a) || !wb_client_changes(a, WB_RESCHEDULE, NULL, "a", PAST(5), 1) ||
        !wb_client_is_next(a, PAST(2)) || !wb_client_has_waiting(a, "b c a ") ||
        !wb_client_changes(a, WB_RESCHEDULE, NULL, "c", PAST(1), 1) ||
        !wb_client_is_next(a, PAST(1)) ||
        !wb_client_changes(a, WB_RESCHEDULE, NULL, "none", PAST(1), 0) ||
        !wb_client_fetches(a, &one, "c ") ||
        !wb_client_changes(a, WB_RESCHEDULE, NULL, "c", PAST(7), 0) ||
        !wb_client_takes_due(a, wb_owner_a, PAST(5) - 1, "b ") ||
        !wb_client_gives_back(a, wb_owner_a, "c b "))
        return;
    wb_client_takes_due(a, wb_owner_a, 0, "c b a ");
}

/* Whoever took it may be gone for good. */
/* next() tells that a lease has ended. */
static int outlasts_its_lease(wb_client *client)
{
    const int64_t deadline = wb_clock_monotonic() + client->kit->options->patience;
    int64_t due = 0, now = 0;
    int r;
    while ((r = wb_delayed_next(client, &due, &now)) == WB_OK && due > now && wb_clock_monotonic() < deadline)
        wb_clock_pause(WB_MILLISECOND, NULL);
    return wb_client_check(client, r, WB_OK, "ask what is next") &&
           wb_kit_check(client->kit, due <= now, "the lease does not end");
}

/* Whoever took it may have sent it, whatever becomes of it in the next one's hands. */
static void taken_for_ever(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0);
    const wb_delayed messages[] = { wb_waiting("a", PAST(1)), wb_waiting("b", PAST(2)) };
    const wb_delayed_filter all = { .struct_size = sizeof all };
    wb_delayed_fetch what = wb_fetch_of(wb_owner_a, 0);
    wb_seen seen = { .kit = kit };
    what.lease = 100 * WB_MILLISECOND;
    if (!a || !wb_client_delays(a, messages, 2) || !wb_client_fetches(a, &what, "a b ") ||
        !outlasts_its_lease(a) || !wb_client_changes(a, WB_RESCHEDULE, NULL, "a", PAST(3), 0) ||
        !wb_client_changes(a, WB_CANCEL, NULL, "b", 0, 0) ||
        !wb_client_check(a, wb_delayed_list_into(a, &all, &seen), WB_OK, "list") ||
        !wb_kit_check(kit, seen.last.leased_until != 0, "the list hides that it was taken") ||
        !wb_client_takes_due(a, wb_owner_b, 0, "a b ") || !wb_client_gives_back(a, wb_owner_b, "a ") ||
        !wb_client_changes(a, WB_INCREMENT, wb_owner_b, "b", PAST(2), 1) ||
        !wb_client_changes(a, WB_CANCEL, NULL, "b", 0, 0) ||
        !wb_client_changes(a, WB_RESCHEDULE, NULL, "a", PAST(3), 0) ||
        !wb_client_check(a, wb_delayed_list_into(a, &all, &seen), WB_OK, "list what was given back") ||
        !wb_kit_check(kit, seen.last.leased_until != 0, "the list hides that it may have been sent") ||
        !wb_client_delay(a, "c", PAST(3)) || !wb_client_takes_due(a, wb_owner_a, 0, "a b c ") ||
        !wb_client_gives_back(a, wb_owner_a, "a b c ") || !wb_client_changes(a, WB_CANCEL, NULL, "a", 0, 0) ||
        !wb_client_changes(a, WB_CANCEL, NULL, "c", 0, 1))
        return;
    wb_client_takes_due(a, wb_owner_b, 0, "a b ");
}

#define STORE WB_CAP_DELAY_STORE
static const wb_kit_case cases[] = {
    { "delayed: a list shows what waits, earliest due first, and takes nothing", STORE, a_list_takes_nothing },
    { "delayed: all conditions of a filter hold", STORE, conditions_all_hold },
    { "delayed: a list shows operations by id, failures and leases", STORE, a_list_shows_it_all },
    { "delayed: a visitor may end a list", STORE, a_visitor_ends_a_list },
    { "delayed: a list keeps nobody waiting", STORE, a_list_keeps_nobody_waiting },
    { "delayed: what was cancelled is never fetched, what is taken is not cancelled", STORE,
      cancelled_is_never_fetched },
    { "delayed: cancel() and reschedule() say of each whether it was free", STORE, cancelled_in_one_call },
    { "delayed: what was rescheduled is due then, what is taken stays", STORE, rescheduled_is_due_then },
    { "delayed: what was taken when a lease ended is never cancelled, what was given back is", STORE,
      taken_for_ever },
};
const wb_kit_group wb_cases_delayed_list = WB_KIT_GROUP(cases);
