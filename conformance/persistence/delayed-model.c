/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence kit: the delayed message store beside a model of it. Each call is a
 * transaction of its own, so that what two pollers do together is one of the orders of their
 * calls: all orders of short lists are made, and a long walk through calls that are drawn, and
 * after each the store must say what the model says.
 *
 * In an order the message that one has is the one whose key the model knows; times are given,
 * and leases last.
 */
#include "config.h"

#include <string.h>

#include "conformance/persistence/delayed.h"

#define IDS 4
#define PAST(n) ((int64_t)(n) * WB_SECOND)

static const char *const ids[IDS] = { "a", "b", "c", "d" };

typedef enum { STORE, FETCH, REMOVE, REMOVE_ANY, FAIL, RELEASE, POSTPONE, CANCEL, RESCHEDULE } verb;
enum { VERBS = RESCHEDULE + 1 };

/* One call. */
typedef struct {
    verb what;
    unsigned id;
    unsigned time; /* due, or fetched at, in seconds; no two messages are due at once */
    unsigned limit;
} step;

typedef struct {
    int is_there;
    unsigned due;
    unsigned failures;
    int owner; /* 0: free */
} row;

typedef struct {
    wb_client *clients[2];
    row rows[IDS];
} model;

static const char *owner_of(int who)
{
    return who ? wb_owner_b : wb_owner_a;
}

/* ---- what the model says ------------------------------------------------------------------- */

/* Of those for which `all` or that are free, the earliest due at `time` and not yet `done`. */
static int earliest(const model *of, int all, unsigned time, unsigned done)
{
    int found = -1;
    for (int i = 0; i < IDS; i++) {
        const row *one = &of->rows[i];
        if (one->is_there && (all || !one->owner) && one->due <= time && !(done & 1u << i) &&
            (found < 0 || one->due < of->rows[found].due))
            found = i;
    }
    return found;
}

static void expect_fetch(model *of, int who, const step *one, char *text)
{
    int found;
    text[0] = '\0';
    for (unsigned n = 0; n < one->limit && (found = earliest(of, 0, one->time, 0)) >= 0; n++) {
        of->rows[found].owner = who + 1;
        (void)strcat(strcat(text, ids[found]), " ");
    }
}

/* @return was_there */
static int expect_change(model *of, int who, const step *one)
{
    row *of_id = &of->rows[one->id];
    const int is_his = of_id->is_there && of_id->owner == who + 1;
    const int is_free = of_id->is_there && !of_id->owner;
    const int applies = one->what == REMOVE_ANY                            ? of_id->is_there
                        : one->what == CANCEL || one->what == RESCHEDULE ? is_free
                                                                         : is_his;
    if (!applies)
        return 0;
    if (one->what == RELEASE)
        of_id->owner = 0;
    else if (one->what == FAIL || one->what == POSTPONE || one->what == RESCHEDULE)
        *of_id = (row){ 1, one->time, of_id->failures + (one->what == FAIL), 0 };
    else
        *of_id = (row){ .is_there = 0 };
    return 1;
}

/* ---- the same in the store --------------------------------------------------------------------- */

static int changes(model *of, int who, const step *one)
{
    static const wb_change changes_of[] = { [REMOVE] = WB_REMOVE,
                                            [REMOVE_ANY] = WB_REMOVE,
                                            [FAIL] = WB_INCREMENT,
                                            [RELEASE] = WB_RELEASE,
                                            [POSTPONE] = WB_RELEASE,
                                            [CANCEL] = WB_CANCEL,
                                            [RESCHEDULE] = WB_RESCHEDULE };
    const char *owner = one->what == REMOVE_ANY ? NULL : owner_of(who);
    return wb_client_changes(of->clients[who], changes_of[one->what], owner, ids[one->id],
                             one->what == RELEASE ? 0 : PAST(one->time), expect_change(of, who, one));
}

static int make_step(model *of, int who, const step *one)
{
    wb_client *client = of->clients[who];
    wb_delayed_fetch what = wb_fetch_of(owner_of(who), PAST(one->time));
    char text[64];
    switch (one->what) {
    case STORE:
        if (!of->rows[one->id].is_there)
            of->rows[one->id] = (row){ 1, one->time, 0, 0 };
        return wb_client_delay(client, ids[one->id], PAST(one->time));
    case FETCH:
        what.limit = one->limit;
        expect_fetch(of, who, one, text);
        return wb_client_fetches(client, &what, text);
    case REMOVE:
    case REMOVE_ANY:
    case FAIL:
    case RELEASE:
    case POSTPONE:
    case CANCEL:
    case RESCHEDULE:
        break;
    }
    return changes(of, who, one);
}

/* Everything that waits, as the other session sees it, and what is next if something is free. */
static int is_as_modelled(model *of, int who)
{
    wb_client *look = of->clients[!who];
    const wb_delayed_filter all = { .struct_size = sizeof all };
    wb_delayed want[IDS];
    wb_seen seen = { .expected = want, .expected_count = 0 };
    unsigned done = 0;
    int found;
    while ((found = earliest(of, 1, UINT32_MAX, done)) >= 0) {
        done |= 1u << found;
        want[seen.expected_count] = wb_waiting(ids[found], PAST(of->rows[found].due));
        want[seen.expected_count++].failures = of->rows[found].failures;
    }
    found = earliest(of, 0, UINT32_MAX, 0);
    return wb_client_check(look, wb_delayed_list_into(look, &all, &seen), WB_OK, "list") &&
           wb_kit_check(look->kit, seen.count == seen.expected_count, "%zu messages wait of %zu",
                        seen.count, seen.expected_count) &&
           (found < 0 || wb_client_is_next(look, PAST(of->rows[found].due))) &&
           !look->kit->is_failed;
}

static void say_step(wb_kit *kit, int who, const step *one)
{
    static const char *const names[VERBS] = { "store",   "fetch",  "remove",    "remove any", "fail",
                                              "release", "postpone", "cancel", "reschedule" };
    wb_kit_check(kit, 0, "  %c: %s %s, time %u, limit %u", who ? 'B' : 'A', names[one->what],
                 ids[one->id], one->time, one->limit);
}

static int does_as_modelled(model *of, int who, const step *one)
{
    if (make_step(of, who, one) && is_as_modelled(of, who))
        return 1;
    say_step(of->clients[0]->kit, who, one);
    return 0;
}

static int opens_both(wb_kit *kit, model *of)
{
    memset(of, 0, sizeof *of);
    for (size_t i = 0; i < 2; i++)
        if (!(of->clients[i] = wb_client_open(kit, 0)))
            return 0;
    return 1;
}

/* ---- all orders -------------------------------------------------------------------------------- */

#define STEPS 3

typedef struct {
    const char *name;
    step lists[2][STEPS];
} pair;

#define FETCHES(at, count) { FETCH, 0, at, count }
#define DOES(what, id) { what, id, 0, 0 }
#define AT(what, id, at) { what, id, at, 0 }

/* "a" is due at 1 and "b" at 2. */
static const pair pairs[] = {
    { "two pollers", { { FETCHES(9, 1), DOES(REMOVE, 0), FETCHES(9, 2) },
                       { FETCHES(9, 2), DOES(REMOVE, 0), DOES(REMOVE, 1) } } },
    { "a poller that fails and one that gives back",
      { { FETCHES(9, 1), AT(FAIL, 0, 5), FETCHES(9, 4) },
        { FETCHES(9, 1), DOES(RELEASE, 0), FETCHES(9, 1) } } },
    { "a poller and a sender", { { FETCHES(9, 4), DOES(REMOVE, 0), FETCHES(9, 4) },
                                 { AT(STORE, 2, 3), AT(STORE, 0, 4), AT(STORE, 2, 5) } } },
    { "a poller and somebody who cancels",
      { { FETCHES(9, 1), DOES(RELEASE, 0), FETCHES(9, 1) },
        { DOES(CANCEL, 0), DOES(CANCEL, 1), DOES(CANCEL, 0) } } },
    { "a poller and somebody who reschedules",
      { { FETCHES(3, 1), AT(FAIL, 0, 6), FETCHES(5, 4) },
        { AT(RESCHEDULE, 0, 4), AT(RESCHEDULE, 1, 7), DOES(REMOVE_ANY, 0) } } },
};

/* Bit n of `order`: whose step comes n-th. */
static int runs_order(wb_kit *kit, model *of, const pair *both, unsigned order)
{
    size_t at[2] = { 0, 0 };
    const step before[] = { AT(STORE, 0, 1), AT(STORE, 1, 2) };
    memset(of->rows, 0, sizeof of->rows);
    if (!wb_client_forgets(of->clients[0]) || !make_step(of, 0, &before[0]) ||
        !make_step(of, 1, &before[1]))
        return 0;
    for (size_t i = 0; i < 2 * STEPS; i++) {
        const int who = order >> i & 1;
        if (!does_as_modelled(of, who, &both->lists[who][at[who]++]))
            return wb_kit_check(kit, 0, "%s, order %#x", both->name, order);
    }
    return 1;
}

static unsigned bits(unsigned number)
{
    unsigned count = 0;
    for (; number; number &= number - 1)
        count++;
    return count;
}

#define PAIRS (sizeof pairs / sizeof *pairs)
#define ORDERS 20 /* 6 over 3 */
#define STRIDE 7  /* no divisor of it: neighbours in time differ early and late */

static void list_orders(unsigned orders[ORDERS])
{
    size_t count = 0;
    for (unsigned order = 0; order < 1u << 2 * STEPS; order++)
        if (bits(order) == STEPS)
            orders[count++] = order;
}

/* Where each call takes a tenth of a second, all would take longer than a case may. */
static int64_t time_is_up(const wb_kit *kit)
{
    return wb_clock_monotonic() + kit->options->time_limit / 3;
}

/* Of each pair some, if not all. */
static void all_orders(wb_kit *kit)
{
    model of;
    unsigned orders[ORDERS];
    const int64_t until = time_is_up(kit);
    size_t done = 0;
    if (!opens_both(kit, &of))
        return;
    list_orders(orders);
    for (; done < PAIRS * ORDERS && wb_clock_monotonic() < until; done++)
        if (!runs_order(kit, &of, &pairs[done % PAIRS], orders[done / PAIRS * STRIDE % ORDERS]))
            return;
    if (done < PAIRS * ORDERS)
        wb_kit_note(kit, "time was up after %zu of %zu orders: the server answers slowly", done, PAIRS * ORDERS);
}

/* ---- a walk -------------------------------------------------------------------------------------- */

#define WALK 300

/* The same in each run. */
static unsigned draw(uint64_t *state, unsigned below)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(*state >> 33) % below;
}

/* Times differ, so that the order is known. */
static void a_long_walk(wb_kit *kit)
{
    model of;
    uint64_t state = 1;
    const int64_t until = time_is_up(kit);
    if (!opens_both(kit, &of))
        return;
    for (unsigned i = 0; i < WALK; i++) {
        if (wb_clock_monotonic() >= until) {
            wb_kit_note(kit, "time was up after %u of %d steps: the server answers slowly", i, WALK);
            return;
        }
        const int who = (int)draw(&state, 2);
        step one = { .what = (verb)draw(&state, VERBS),
                     .id = draw(&state, IDS),
                     .limit = 1 + draw(&state, 3) };
        one.time = 1 + draw(&state, 50) * WALK + i;
        if (!does_as_modelled(&of, who, &one)) {
            wb_kit_check(kit, 0, "in step %u of the walk", i);
            return;
        }
    }
}

static const wb_kit_case cases[] = {
    { "delayed: two sessions in every order of their calls", WB_CAP_DELAY_STORE, all_orders },
    { "delayed: a long walk of calls", WB_CAP_DELAY_STORE, a_long_walk },
};
const wb_kit_group wb_cases_delayed_model = WB_KIT_GROUP(cases);
