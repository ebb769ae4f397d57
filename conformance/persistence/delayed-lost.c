/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence kit: the delayed message store on connections that break. A call has happened
 * or not, never in part; what is reported must allow what a new session finds, and the call can
 * be made again.
 */
#include "config.h"

#include <string.h>

#include "conformance/persistence/delayed.h"
#include "conformance/persistence/lost.h"

#define PAST(n) ((int64_t)(n) * WB_SECOND)
/* For a server to notice that a connection is gone. */
#define LOCKS_GONE (10 * WB_SECOND)
#define ALLOWED (WB_GONE_OR_UNKNOWN | WB_ONE_OF(WB_OK))

/* ---- before the call ------------------------------------------------------------------------- */

static int store_two(wb_client *client)
{
    return wb_client_delay(client, "a", PAST(1)) && wb_client_delay(client, "b", PAST(2));
}

static int take_two(wb_client *client)
{
    return store_two(client) && wb_client_takes_due(client, wb_owner_a, 0, "a b ");
}

/* ---- calls ----------------------------------------------------------------------------------- */

static int call_store(wb_client *client)
{
    const wb_delayed two[] = { wb_waiting("c", PAST(3)), wb_waiting("d", PAST(4)) };
    return wb_delayed_store(client, two, 2);
}

static int call_next(wb_client *client)
{
    int64_t due, now;
    int r = wb_delayed_next(client, &due, &now);
    wb_kit_check(client->kit, r != WB_OK || due >= PAST(1), "next() was ok and says nothing");
    return r;
}

static int call_fetch(wb_client *client)
{
    const wb_delayed_fetch what = wb_fetch_of(wb_owner_a, 0);
    wb_seen seen = { .count = 0 };
    int r = wb_delayed_fetch_into(client, &what, &seen);
    wb_kit_check(client->kit, r != WB_OK || seen.count == 2, "a fetch was ok and found %zu of 2",
                 seen.count);
    return r;
}

static int call_list(wb_client *client)
{
    const wb_delayed_filter all = { .struct_size = sizeof all };
    wb_seen seen = { .count = 0 };
    int r = wb_delayed_list_into(client, &all, &seen);
    wb_kit_check(client->kit, r != WB_OK || seen.count == 2, "a list was ok and found %zu of 2",
                 seen.count);
    return r;
}

/* Both messages, and one that is not there. */
static int change_three(wb_client *client, wb_change change, int *ret_there)
{
    const wb_delayed messages[] = { wb_waiting("a", 0), wb_waiting("none", 0), wb_waiting("b", 0) };
    wb_delayed_key keys[3];
    for (size_t i = 0; i < 3; i++)
        keys[i] = wb_waiting_key(&messages[i]);
    const char *owner = change <= WB_RELEASE ? wb_owner_a : NULL;
    int r = wb_delayed_change(client, change, owner, keys, 3, change == WB_RELEASE ? 0 : PAST(9));
    *ret_there = keys[0].was_there + keys[2].was_there;
    wb_kit_check(client->kit, r != WB_OK || !keys[1].was_there, "what never was is said to be there");
    return r;
}

#define CHANGE(name, change)                                                                       \
    static int name(wb_client *client)                                                             \
    {                                                                                              \
        int there;                                                                                 \
        int r = change_three(client, (change), &there);                                            \
        wb_kit_check(client->kit, r != WB_OK || there == 2, "%d of 2 are said to be there", there); \
        return r;                                                                                  \
    }

CHANGE(call_remove, WB_REMOVE)
CHANGE(call_increment, WB_INCREMENT)
CHANGE(call_release, WB_RELEASE)
CHANGE(call_cancel, WB_CANCEL)
CHANGE(call_reschedule, WB_RESCHEDULE)

static int take_two_of_three(wb_client *client)
{
    return take_two(client) && wb_client_delay(client, "c", PAST(3));
}

static int call_ride(wb_client *client)
{
    const wb_delayed messages[] = { wb_waiting("a", 0), wb_waiting("b", 0) };
    wb_delayed_key keys[] = { wb_waiting_key(&messages[0]), wb_waiting_key(&messages[1]) };
    const wb_delayed_fetch what = wb_fetch_of(wb_owner_a, 0);
    wb_seen seen = { .count = 0 };
    int r = wb_delayed_ride(client, keys, 2, &what, &seen);
    wb_kit_check(client->kit, r != WB_OK || strcmp(seen.ids, "c ") == 0, "a fetch was ok and found \"%s\"", seen.ids);
    return r;
}

/* ---- what must be true afterwards -------------------------------------------------------------- */

static size_t count_waiting(wb_client *look)
{
    const wb_delayed_filter all = { .struct_size = sizeof all };
    wb_seen seen = { .count = 0 };
    wb_client_check(look, wb_delayed_list_into(look, &all, &seen), WB_OK, "list what waits");
    return seen.count;
}

/* `done`: as a new session finds it. */
static void check_report(wb_client *look, int done, int result, int is_sent)
{
    wb_kit_check(look->kit, done || result != WB_OK, "what was said to be done is not");
    wb_kit_check(look->kit, !done || is_sent, "a call that was never sent has happened");
}

static void check_store(wb_client *look, int result, int is_sent)
{
    const size_t count = count_waiting(look);
    wb_kit_check(look->kit, count == 2 || count == 4, "%zu messages wait, a part was stored", count);
    check_report(look, count == 4, result, is_sent);
    wb_client_check(look, call_store(look), WB_OK, "store again");
    wb_client_takes_due(look, wb_owner_a, 0, "a b c d ");
}

/* Whoever has taken them. */
static void give_back_all(wb_client *look)
{
    const char *const owners[] = { wb_owner_a, wb_owner_b };
    const wb_delayed messages[] = { wb_waiting("a", 0), wb_waiting("b", 0) };
    for (size_t i = 0; i < 2; i++) {
        wb_delayed_key keys[] = { wb_waiting_key(&messages[0]), wb_waiting_key(&messages[1]) };
        int r = wb_delayed_change(look, WB_RELEASE, owners[i], keys, 2, 0);
        wb_client_check(look, r, WB_OK, "give back what was taken");
    }
}

/* Whether the two were taken or not: given back they come. */
static void check_fetch(wb_client *look, int result, int is_sent)
{
    wb_seen seen = { .count = 0 };
    const wb_delayed_fetch what = wb_fetch_of(wb_owner_b, 0);
    wb_client_check(look, wb_delayed_fetch_into(look, &what, &seen), WB_OK, "fetch");
    wb_kit_check(look->kit, seen.count == 0 || seen.count == 2, "a part was taken");
    check_report(look, seen.count == 0, result, is_sent);
    give_back_all(look);
    wb_client_takes_due(look, wb_owner_b, 0, "a b ");
}

static void check_untouched(wb_client *look, int result, int is_sent)
{
    (void)result, (void)is_sent;
    wb_client_takes_due(look, wb_owner_a, 0, "a b ");
}

/* Gone, both or none; and again, of what is left. */
static void check_gone(wb_client *look, wb_change change, int result, int is_sent)
{
    const size_t left = count_waiting(look);
    int there;
    wb_kit_check(look->kit, left == 0 || left == 2, "%zu of 2 are left, a part has gone", left);
    check_report(look, left == 0, result, is_sent);
    wb_client_check(look, change_three(look, change, &there), WB_OK, "do it again");
    wb_kit_check(look->kit, there == (int)left, "%zu were left, %d are said to have been there", left,
                 there);
    wb_client_has_waiting(look, "");
}

static void check_remove(wb_client *look, int result, int is_sent)
{
    check_gone(look, WB_REMOVE, result, is_sent);
}

static void check_cancel(wb_client *look, int result, int is_sent)
{
    check_gone(look, WB_CANCEL, result, is_sent);
}

/* Due later, both or none. */
static void check_later(wb_client *look, wb_change change, int result, int is_sent)
{
    const wb_delayed_filter later = { .struct_size = sizeof later, .due_from = PAST(9) };
    wb_seen seen = { .count = 0 };
    int there;
    wb_client_check(look, wb_delayed_list_into(look, &later, &seen), WB_OK, "list");
    wb_kit_check(look->kit, seen.count == 0 || seen.count == 2, "a part was changed");
    wb_kit_check(look->kit, seen.last.failures <= 1, "a failure was counted twice");
    check_report(look, seen.count == 2, result, is_sent);
    wb_client_check(look, change_three(look, change, &there), WB_OK, "do it again");
    give_back_all(look);
    wb_client_is_next(look, PAST(9));
}

static void check_increment(wb_client *look, int result, int is_sent)
{
    check_later(look, WB_INCREMENT, result, is_sent);
}

static void check_reschedule(wb_client *look, int result, int is_sent)
{
    check_later(look, WB_RESCHEDULE, result, is_sent);
}

static void check_release(wb_client *look, int result, int is_sent)
{
    wb_seen seen = { .count = 0 };
    const wb_delayed_fetch what = wb_fetch_of(wb_owner_b, 0);
    wb_client_check(look, wb_delayed_fetch_into(look, &what, &seen), WB_OK, "fetch");
    wb_kit_check(look->kit, seen.count == 0 || seen.count == 2, "a part was given back");
    check_report(look, seen.count == 2, result, is_sent);
    give_back_all(look);
    wb_client_takes_due(look, wb_owner_a, 0, "a b ");
}

/* A server that is busy holds the rows of a connection that is gone for a while: a fetch passes over them. */
static void fetch_patiently(wb_client *look, size_t wanted, wb_seen *seen)
{
    const wb_delayed_fetch what = wb_fetch_of(wb_owner_b, 0);
    const int64_t until = wb_clock_monotonic() + LOCKS_GONE;
    int r;
    while ((r = wb_delayed_fetch_into(look, &what, seen)) == WB_OK && seen->count < wanted && wb_clock_monotonic() < until)
        wb_clock_pause(20 * WB_MILLISECOND, NULL);
    wb_client_check(look, r, WB_OK, "fetch");
}

/* Two are gone and the third is taken, or nothing of that; unless it was two calls. */
static void check_ride(wb_client *look, int result, int is_sent)
{
    if (!WB_HAS(look->ops->delayed, wb_delayed_ops, begin_fetch))
        return;
    const size_t left = count_waiting(look);
    wb_seen seen = { .count = 0 };
    fetch_patiently(look, left == 3, &seen);
    wb_kit_check(look->kit, (left == 1 && seen.count == 0) || (left == 3 && seen.count == 1),
                 "%zu are left, %zu of them free: a part was done", left, seen.count);
    check_report(look, left == 1, result, is_sent);
}

static const wb_lost_call of_store = { store_two, call_store, ALLOWED, check_store };
static const wb_lost_call of_next = { store_two, call_next, WB_GONE, check_untouched };
static const wb_lost_call of_fetch = { store_two, call_fetch, ALLOWED, check_fetch };
static const wb_lost_call of_list = { store_two, call_list, WB_GONE_OR_DONE, check_untouched };
static const wb_lost_call of_remove = { take_two, call_remove, ALLOWED, check_remove };
static const wb_lost_call of_increment = { take_two, call_increment, ALLOWED, check_increment };
static const wb_lost_call of_release = { take_two, call_release, ALLOWED, check_release };
static const wb_lost_call of_ride = { take_two_of_three, call_ride, ALLOWED, check_ride };
static const wb_lost_call of_cancel = { store_two, call_cancel, ALLOWED, check_cancel };
static const wb_lost_call of_reschedule = { store_two, call_reschedule, ALLOWED, check_reschedule };

/* ---- the cases --------------------------------------------------------------------------------- */

#define TRIAL(name, trial)                                                                         \
    static void name##_cut(wb_kit *kit)                                                            \
    {                                                                                              \
        wb_lost_cut(kit, &(trial));                                                                \
    }                                                                                              \
    static void name##_request(wb_kit *kit)                                                        \
    {                                                                                              \
        wb_lost_lose(kit, &(trial), WB_LOSE_REQUEST);                                              \
    }                                                                                              \
    static void name##_reply(wb_kit *kit)                                                          \
    {                                                                                              \
        wb_lost_lose(kit, &(trial), WB_LOSE_REPLY);                                                \
    }

TRIAL(store, of_store)
TRIAL(next, of_next)
TRIAL(fetch, of_fetch)
TRIAL(list, of_list)
TRIAL(remove, of_remove)
TRIAL(increment, of_increment)
TRIAL(release, of_release)
TRIAL(ride, of_ride)
TRIAL(cancel, of_cancel)
TRIAL(reschedule, of_reschedule)

static void crash_in_store(wb_kit *kit)
{
    wb_lost_in_crash(kit, &of_store, WB_CRASH_AT_REPLY);
}

static void crash_in_remove(wb_kit *kit)
{
    wb_lost_in_crash(kit, &of_remove, WB_CRASH_AT_REPLY);
}

/* A session is opened and lost in all; the outbox's begin() says that it is lost. */
#define NEEDS (WB_CAP_DELAY_STORE | WB_CAP_OUTBOX)
#define CASES(name, call)                                                                          \
    { "delayed: cut before " call, NEEDS, name##_cut },                                            \
    { "delayed: the request of " call " is lost", NEEDS, name##_request },                         \
    { "delayed: the reply of " call " is lost", NEEDS, name##_reply }

static const wb_kit_case cases[] = {
    CASES(store, "store()"),
    CASES(next, "next()"),
    CASES(fetch, "fetch()"),
    CASES(list, "list()"),
    CASES(remove, "remove()"),
    CASES(increment, "increment_failure_count()"),
    CASES(release, "release()"),
    CASES(ride, "begin_fetch() and end_fetch()"),
    CASES(cancel, "cancel()"),
    CASES(reschedule, "reschedule()"),
    { "delayed: crash: in store(), all or nothing", NEEDS, crash_in_store },
    { "delayed: crash: in remove(), all or nothing", NEEDS, crash_in_remove },
};
const wb_kit_group wb_cases_delayed_lost = WB_KIT_GROUP(cases);
