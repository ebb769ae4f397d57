/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence kit: the delayed message store between processes, and beside what somebody else is at: whoever
 * stores shares no memory with whom he could overwrite, and a store that is busy says so.
 */
#include "config.h"

#include <string.h>

#include "conformance/persistence/delayed.h"

#define PAST(n) ((int64_t)(n) * WB_SECOND)

/* ---- processes that store ------------------------------------------------------------------- */

#define PROCESSES 3
#define EACH 20
#define ARRIVED 0
/* A process that is not there by then is not waited for: the others go on alone. */
#define MEET_WITHIN (10 * WB_SECOND)

/* Of process 2 message 13: "213". */
static void name_of(unsigned which, unsigned number, char id[8])
{
    (void)snprintf(id, 8, "%u", (which + 1) * 100 + number);
}

/* Beside the others: what they were in the way of is stored again, as a host does. */
static int delay_at_last(wb_client *client, const char *id, int64_t due)
{
    const int64_t deadline = wb_clock_monotonic() + WB_CALL_DEADLINE;
    const wb_delayed message = wb_waiting(id, due);
    int r;
    while (((r = wb_delayed_store(client, &message, 1)) == WB_RETRY || r == WB_ABORT) && wb_clock_monotonic() < deadline)
        wb_clock_pause(WB_MILLISECOND, NULL);
    return wb_client_check(client, r, WB_OK, "store a message");
}

static void live_and_delay(wb_client *client, unsigned which, wb_board *board)
{
    const int64_t deadline = wb_clock_monotonic() + MEET_WITHIN;
    char id[8];
    (void)atomic_fetch_add(&board->counts[ARRIVED], 1);
    while (atomic_load(&board->counts[ARRIVED]) < PROCESSES && wb_clock_monotonic() < deadline)
        wb_clock_pause(WB_MILLISECOND / 5, NULL);
    for (unsigned n = 0; n < EACH; n++) {
        name_of(which, n, id);
        if (!delay_at_last(client, id, PAST((which + 1) * 100 + n)))
            return;
    }
}

/* Each in the place of what it removes, which nobody has but itself. */
static void live_and_replace(wb_client *client, unsigned which, wb_board *board)
{
    char id[8], own[8];
    (void)which, (void)board;
    name_of(0, 0, id);
    name_of(0, EACH, own);
    if (wb_client_takes_due(client, wb_owner_b, PAST(100), "100 ") &&
        wb_client_changes(client, WB_REMOVE, wb_owner_b, id, 0, 1))
        (void)wb_client_delay(client, own, PAST(100 + EACH));
}

/* Each message is its own: as it was stored, by whomever, and beside whomever. */
static void between_processes(wb_kit *kit)
{
    static char ids[PROCESSES * EACH][8];
    wb_delayed expected[PROCESSES * EACH];
    const wb_delayed_fetch what = wb_fetch_of(wb_owner_a, 0);
    wb_seen seen = { .expected = expected, .expected_count = PROCESSES * EACH };
    wb_client *look = wb_client_open(kit, 0);
    for (unsigned i = 0; i < PROCESSES * EACH; i++) {
        const unsigned which = i / EACH, number = i % EACH + (which == 0); /* the very first is replaced */
        name_of(which, number, ids[i]);
        expected[i] = wb_waiting(ids[i], PAST((which + 1) * 100 + number));
    }
    atomic_store(&wb_board_of(kit)->counts[ARRIVED], 0);
    if (!look || !wb_strangers_run(kit, PROCESSES, live_and_delay) || !wb_strangers_run(kit, 1, live_and_replace))
        return;
    wb_client_check(look, wb_delayed_fetch_into(look, &what, &seen), WB_OK, "fetch what is due");
    wb_kit_check(kit, seen.count == PROCESSES * EACH, "%zu messages of %d are there", seen.count, PROCESSES * EACH);
}

/* ---- a visitor that stops ------------------------------------------------------------------ */

static int stop(void *argument)
{
    (void)argument;
    return WB_REJECT;
}

/* Another one each time. */
static void live_and_write(wb_client *client, unsigned which, wb_board *board)
{
    char id[8], fetched[9];
    const unsigned number = 4 + atomic_fetch_add(&board->counts[0], 1);
    (void)snprintf(id, sizeof id, "%u", number);
    (void)snprintf(fetched, sizeof fetched, "%s ", id);
    (void)which;
    if (wb_client_delay(client, id, PAST(number)) && wb_client_takes_due(client, wb_owner_b, PAST(number), fetched))
        (void)wb_client_changes(client, WB_REMOVE, wb_owner_b, id, 0, 1);
}

/* Behind a fetch or a list that its visitor stopped nothing is open, before the session is used again. */
static void stopped_is_over(wb_kit *kit)
{
    const wb_delayed_filter all = { .struct_size = sizeof all };
    const wb_delayed_fetch what = wb_fetch_of(wb_owner_a, PAST(3));
    wb_seen fetched = { .meanwhile = stop }, listed = { .meanwhile = stop };
    wb_client *a = wb_client_open(kit, 0);
    atomic_store(&wb_board_of(kit)->counts[0], 0);
    if (!a || !wb_client_delay(a, "1", PAST(1)) || !wb_client_delay(a, "2", PAST(2)) || !wb_client_delay(a, "3", PAST(3)) ||
        !wb_client_check(a, wb_delayed_fetch_into(a, &what, &fetched), WB_REJECT, "stop a fetch") ||
        !wb_strangers_run(kit, 1, live_and_write) ||
        !wb_client_check(a, wb_delayed_list_into(a, &all, &listed), WB_REJECT, "stop a list") ||
        !wb_strangers_run(kit, 1, live_and_write))
        return;
    wb_client_has_waiting(a, "1 2 3 ");
}

/* ---- a busy store -------------------------------------------------------------------------- */

typedef struct {
    const char *doing;
    int (*call)(wb_client *client);
} deed;

/* What processes note on the board. */
#define CALLED 1             /* so many have made their call */
#define IS_DONE(i) (2 + (i)) /* and of which it was done */
#define IS_IN_DOUBT(i) (64 + (i)) /* or may have been */
#define WAS_IN_DOUBT 128     /* the one that is made again */
/* As long as a lock may be waited for. */
#define HELD_FOR (60 * WB_SECOND)

static int call_store(wb_client *client)
{
    const wb_delayed message = wb_waiting("stored", PAST(50));
    return wb_delayed_store(client, &message, 1);
}

static int call_next(wb_client *client)
{
    int64_t due, now;
    return wb_delayed_next(client, &due, &now);
}

static int call_list(wb_client *client)
{
    const wb_delayed_filter all = { .struct_size = sizeof all };
    wb_seen seen = { .count = 0 };
    return wb_delayed_list_into(client, &all, &seen);
}

static int may_be_done(const wb_client *client)
{
    return atomic_load(&wb_board_of(client->kit)->counts[WAS_IN_DOUBT]) != 0;
}

/* What is due by then nobody else changes. */
static int call_fetch(wb_client *client)
{
    const wb_delayed_fetch what = wb_fetch_of(wb_owner_b, PAST(9));
    wb_seen seen = { .count = 0 };
    int r = wb_delayed_fetch_into(client, &what, &seen);
    if (r == WB_OK && !may_be_done(client))
        wb_kit_check(client->kit, strcmp(seen.ids, "fetched ") == 0, "\"%s\" was fetched", seen.ids);
    return r;
}

/* Whoever is told that it was done is told that it was there: it is so the first time. */
static int change(wb_client *client, wb_change which, const char *owner, const char *id, int64_t due)
{
    const wb_delayed message = wb_waiting(id, 0);
    wb_delayed_key key = wb_waiting_key(&message);
    int r = wb_delayed_change(client, which, owner, &key, 1, due);
    if (r == WB_OK && !may_be_done(client))
        wb_kit_check(client->kit, key.was_there == 1, "\"%s\": was_there is %d", id, key.was_there);
    return r;
}

static int call_remove(wb_client *client)
{
    return change(client, WB_REMOVE, wb_owner_a, "removed", 0);
}

static int call_increment(wb_client *client)
{
    return change(client, WB_INCREMENT, wb_owner_a, "failed", PAST(20));
}

static int call_release(wb_client *client)
{
    return change(client, WB_RELEASE, wb_owner_a, "released", PAST(30));
}

static int call_cancel(wb_client *client)
{
    return change(client, WB_CANCEL, NULL, "cancelled", 0);
}

static int call_reschedule(wb_client *client)
{
    return change(client, WB_RESCHEDULE, NULL, "moved", PAST(40));
}

static const deed deeds[] = {
    { "store", call_store },
    { "ask what is next", call_next },
    { "list", call_list },
    { "fetch", call_fetch },
    { "remove", call_remove },
    { "count a failure", call_increment },
    { "give back", call_release },
    { "cancel", call_cancel },
    { "reschedule", call_reschedule },
};
#define DEEDS (sizeof deeds / sizeof *deeds)

/* What is to be changed is there, and what needs an owner is taken. */
static int prepare(wb_client *a)
{
    return wb_client_delay(a, "removed", PAST(1)) && wb_client_delay(a, "failed", PAST(2)) &&
           wb_client_delay(a, "released", PAST(3)) && wb_client_takes_due(a, wb_owner_a, PAST(3), "removed failed released ") &&
           wb_client_delay(a, "fetched", PAST(9)) && wb_client_delay(a, "cancelled", PAST(10)) &&
           wb_client_delay(a, "moved", PAST(11));
}

static int is_true_in_time(int (*is_true)(wb_board *board), wb_board *board)
{
    const int64_t deadline = wb_clock_monotonic() + HELD_FOR;
    while (!is_true(board) && wb_clock_monotonic() < deadline)
        wb_clock_pause(WB_MILLISECOND, NULL);
    return is_true(board);
}

static int all_are_open(wb_board *board)
{
    return atomic_load(&board->counts[ARRIVED]) == DEEDS;
}

static int all_have_called(wb_board *board)
{
    return atomic_load(&board->counts[CALLED]) == DEEDS;
}

static int somebody_holds(wb_board *board)
{
    return atomic_load(&board->flag);
}

static void hold(wb_client *client, wb_board *board)
{
    wb_claim held = WB_CLAIM("order-1");
    const int is_open = wb_kit_check(client->kit, is_true_in_time(all_are_open, board), "another process has no session");
    const int holds = is_open && wb_client_takes(client, WB_BATCH(1), &held, 1);
    atomic_store(&board->flag, 1);
    if (!holds)
        return;
    wb_kit_check(client->kit, is_true_in_time(all_have_called, board), "a call waits longer than %d s",
                 (int)(HELD_FOR / WB_SECOND));
    wb_client_check(client, wb_client_commit(client, WB_BATCH(1), NULL, 0), WB_OK, "commit");
}

static void call(wb_client *client, unsigned which, wb_board *board)
{
    const deed *what = &deeds[which];
    (void)atomic_fetch_add(&board->counts[ARRIVED], 1);
    if (!is_true_in_time(somebody_holds, board))
        return;
    int r = what->call(client);
    wb_kit_check(client->kit, r == WB_OK || wb_kit_is_servers_fault(r, &client->error), "to %s: %s, cause %d: %s", what->doing,
                 wb_result_name(r), client->error.cause, client->error.text);
    atomic_store(&board->counts[IS_DONE(which)], r == WB_OK);
    atomic_store(&board->counts[IS_IN_DOUBT(which)], r == WB_IN_DOUBT);
    (void)atomic_fetch_add(&board->counts[CALLED], 1);
}

/* One holds, and each of the others makes one call: all at once, so that one that waits keeps nobody waiting longer. */
static void live_beside(wb_client *client, unsigned which, wb_board *board)
{
    if (which == DEEDS)
        hold(client, board);
    else
        call(client, which, board);
}

/* Beside a transaction of another process, which may have all of the store, each call is done, or it could not be for
 * the server's sake; and then it is made again, and none the worse for it. */
static void beside_a_transaction(wb_kit *kit)
{
    wb_board *board = wb_board_of(kit);
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !prepare(a))
        return;
    memset(board, 0, sizeof *board);
    if (!wb_strangers_run(kit, DEEDS + 1, live_beside))
        return;
    for (size_t i = 0; i < DEEDS; i++) {
        if (atomic_load(&board->counts[IS_DONE(i)]))
            continue;
        atomic_store(&board->counts[WAS_IN_DOUBT], atomic_load(&board->counts[IS_IN_DOUBT(i)]));
        wb_client_check(a, deeds[i].call(a), WB_OK, deeds[i].doing);
    }
    wb_client_has_waiting(a, "fetched failed released moved stored ");
}

#define STORE WB_CAP_DELAY_STORE
static const wb_kit_case cases[] = {
    { "delayed: what several processes store is all there", STORE, between_processes },
    { "delayed: behind a visitor that stopped another process stores and fetches", STORE, stopped_is_over },
    { "delayed: beside an open transaction of another process a call is done, or it is the server's fault", STORE | WB_CAP_OUTBOX,
      beside_a_transaction },
};
const wb_kit_group wb_cases_delayed_between = WB_KIT_GROUP(cases);
