/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence kit: sessions that use the delayed message store at the same moment, and
 * processes that are killed while they hold messages.
 */
#include "config.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/persistence/actor.h"
#include "conformance/persistence/delayed.h"
#include "core/base/arena.h"

#define PAST(n) ((int64_t)(n) * WB_SECOND)
#define MESSAGES 120
#define WORKERS 4
/* Of calls that lose against others: WB_ABORT and WB_RETRY are calls that did nothing. */
#define TRIES_MAX 200

/* ---- workers --------------------------------------------------------------------------------- */

typedef struct {
    wb_kit *kit;
    char ids[MESSAGES][8];
    wb_delayed messages[MESSAGES];
    pthread_mutex_t lock;
    unsigned fetched[MESSAGES]; /* how often, by whomever */
    unsigned changed[MESSAGES]; /* how often was_there said 1 */
    int stored;                 /* all are there */
} shared;

typedef struct {
    shared *with;
    wb_client *client;
    char owner[WB_DELAYED_OWNER_SIZE];
    wb_change change;
    size_t in_hand[MESSAGES];
    size_t count;
    size_t total; /* of all fetches: a store may give the same again and again */
} worker;

static int happened(int result)
{
    return result != WB_RETRY && result != WB_ABORT;
}

static int note_fetched(void *argument, const wb_delayed *row)
{
    worker *w = argument;
    char text[8] = "";
    memcpy(text, row->id, row->id_size < sizeof text ? row->id_size : sizeof text - 1);
    const size_t number = (size_t)atoi(text);
    if (number >= MESSAGES || w->count == MESSAGES || w->total++ > 2 * MESSAGES)
        return WB_FATAL;
    w->in_hand[w->count++] = number;
    pthread_mutex_lock(&w->with->lock);
    w->with->fetched[number]++;
    pthread_mutex_unlock(&w->with->lock);
    return WB_OK;
}

static int fetches(worker *w, size_t limit)
{
    wb_delayed_fetch what = wb_fetch_of(w->owner, 0);
    int r = WB_RETRY;
    what.limit = limit;
    w->count = 0;
    for (int i = 0; i < TRIES_MAX && !happened(r); i++) {
        wb_error_clear(&w->client->error);
        r = w->client->ops->delayed->fetch(w->client->session, &what, note_fetched, w,
                                           &w->client->error);
    }
    return wb_client_check(w->client, r, WB_OK, "fetch beside others");
}

/* Those in hand, of `messages`; counted where was_there says 1. */
static int makes_change(worker *w, wb_change change, const char *owner)
{
    wb_delayed_key keys[MESSAGES];
    int r = WB_RETRY;
    for (size_t i = 0; i < w->count; i++)
        keys[i] = wb_waiting_key(&w->with->messages[w->in_hand[i]]);
    for (int i = 0; i < TRIES_MAX && !happened(r); i++)
        r = wb_delayed_change(w->client, change, owner, keys, w->count, PAST(5));
    pthread_mutex_lock(&w->with->lock);
    for (size_t i = 0; r == WB_OK && i < w->count; i++)
        w->with->changed[w->in_hand[i]] += keys[i].was_there == 1;
    pthread_mutex_unlock(&w->with->lock);
    return wb_client_check(w->client, r, WB_OK, "change messages beside others");
}

static int is_stored(shared *with)
{
    pthread_mutex_lock(&with->lock);
    int is = with->stored;
    pthread_mutex_unlock(&with->lock);
    return is;
}

/* Until nothing is left, once all was stored. */
static void poll_and_remove(void *argument)
{
    worker *w = argument;
    const int64_t deadline = wb_clock_monotonic() + 2 * w->with->kit->options->patience;
    for (int is_last = 0; !is_last && wb_clock_monotonic() < deadline;) {
        const int all = is_stored(w->with);
        if (!fetches(w, 7) || (w->count && !makes_change(w, WB_REMOVE, w->owner)))
            return;
        is_last = all && !w->count;
    }
}

static void poll_and_keep(void *argument)
{
    worker *w = argument;
    while (fetches(w, 5) && w->count)
        ;
}

/* From the last to the first, some in one call. */
static void change_all(void *argument)
{
    worker *w = argument;
    for (size_t left = MESSAGES; left;) {
        for (w->count = 0; w->count < 6 && left;)
            w->in_hand[w->count++] = --left;
        if (!makes_change(w, w->change, NULL))
            return;
    }
}

static void store_all(void *argument)
{
    worker *w = argument;
    int good = 1;
    for (size_t i = 0; good && i < MESSAGES; i++) {
        int r = WB_RETRY;
        for (int n = 0; n < TRIES_MAX && !happened(r); n++)
            r = wb_delayed_store(w->client, &w->with->messages[i], 1);
        good = wb_client_check(w->client, r, WB_OK, "store beside others");
    }
    pthread_mutex_lock(&w->with->lock);
    w->with->stored = 1;
    pthread_mutex_unlock(&w->with->lock);
}

static shared *share(wb_kit *kit)
{
    shared *with = wb_alloc_zero(1, sizeof *with);
    wb_kit_defer(kit, free, with);
    with->kit = kit;
    pthread_mutex_init(&with->lock, NULL);
    for (size_t i = 0; i < MESSAGES; i++) {
        (void)snprintf(with->ids[i], sizeof with->ids[i], "%zu", i);
        with->messages[i] = wb_waiting(with->ids[i], (int64_t)(i + 1) * WB_ROUNDING);
    }
    return with;
}

/* @return whether all have returned; each works on a session of its own. */
static int run(shared *with, worker *workers, void (*const *work)(void *), size_t count)
{
    wb_actor actors[WORKERS];
    for (size_t i = 0; i < count; i++) {
        workers[i].with = with;
        workers[i].owner[0] = (char)('0' + i);
        if (!(workers[i].client = wb_client_open(with->kit, 0)))
            return 0;
    }
    for (size_t i = 0; i < count; i++)
        wb_actor_start(&actors[i]);
    for (size_t i = 0; i < count; i++)
        wb_actor_do(&actors[i], work[i], &workers[i]);
    for (size_t i = 0; i < count; i++) {
        wb_actor_await(with->kit, &actors[i]);
        wb_actor_stop(&actors[i]);
    }
    return !with->kit->is_failed;
}

static int stores_first(shared *with)
{
    wb_client *client = wb_client_open(with->kit, 0);
    with->stored = 1;
    return client && wb_client_delays(client, with->messages, MESSAGES);
}

static void check_once(shared *with, const unsigned *times, const char *what)
{
    for (size_t i = 0; i < MESSAGES; i++)
        wb_kit_check(with->kit, times[i] == 1, "message %zu was %s %u times", i, what, times[i]);
}

static void four_pollers(wb_kit *kit)
{
    worker workers[WORKERS] = { 0 };
    void (*const work[])(void *) = { poll_and_remove, poll_and_remove, poll_and_remove,
                                     poll_and_remove };
    shared *with = share(kit);
    if (!stores_first(with) || !run(with, workers, work, WORKERS))
        return;
    check_once(with, with->fetched, "fetched");
    check_once(with, with->changed, "removed");
}

static void senders_and_pollers(wb_kit *kit)
{
    worker workers[WORKERS] = { 0 };
    void (*const work[])(void *) = { store_all, poll_and_remove, poll_and_remove };
    shared *with = share(kit);
    if (!run(with, workers, work, 3))
        return;
    check_once(with, with->fetched, "fetched");
    check_once(with, with->changed, "removed");
}

/* As a sender does that is not sure: nothing is fetched meanwhile. */
static void senders_of_the_same(wb_kit *kit)
{
    worker workers[WORKERS] = { 0 };
    void (*const work[])(void *) = { store_all, store_all, store_all };
    shared *with = share(kit);
    if (!run(with, workers, work, 3))
        return;
    workers[0].count = 0;
    poll_and_keep(&workers[0]);
    check_once(with, with->fetched, "fetched");
}

static void change_against_change(wb_kit *kit, wb_change change)
{
    worker workers[WORKERS] = { { .change = change }, { .change = change } };
    void (*const work[])(void *) = { change_all, change_all };
    shared *with = share(kit);
    if (stores_first(with) && run(with, workers, work, 2))
        check_once(with, with->changed, change == WB_REMOVE ? "removed" : "cancelled");
}

static void removes_of_the_same(wb_kit *kit)
{
    change_against_change(kit, WB_REMOVE);
}

static void cancels_of_the_same(wb_kit *kit)
{
    change_against_change(kit, WB_CANCEL);
}

/* Each message goes one way. */
static void cancel_against_fetch(wb_kit *kit)
{
    worker workers[WORKERS] = { { .change = WB_CANCEL } };
    void (*const work[])(void *) = { change_all, poll_and_keep, poll_and_keep };
    shared *with = share(kit);
    if (!stores_first(with) || !run(with, workers, work, 3))
        return;
    for (size_t i = 0; i < MESSAGES; i++)
        wb_kit_check(kit, with->fetched[i] + with->changed[i] == 1,
                     "message %zu was fetched %u times and cancelled %u times", i, with->fetched[i],
                     with->changed[i]);
}

/* ---- processes that are killed ----------------------------------------------------------------- */

static void live_past_store(wb_client *victim)
{
    (void)wb_client_delay(victim, "b", PAST(2));
}

/* What it is to do the process is told over the board. */
static wb_change *change_of(wb_kit *kit)
{
    return (wb_change *)(void *)wb_board_of(kit)->told;
}

static void live_past_change(wb_client *victim)
{
    const wb_change change = *change_of(victim->kit);
    const char *owner = change == WB_CANCEL || change == WB_RESCHEDULE ? NULL : wb_owner_b;
    if (!owner || wb_client_takes_due(victim, owner, PAST(1), "a "))
        (void)wb_client_changes(victim, change, owner, "a", PAST(2), 1);
}

/* The last thing that it did, each time another one. */
static void killed_after_changes(wb_kit *kit)
{
    wb_client *look = wb_client_open(kit, 0);
    for (int change = WB_REMOVE; look && change <= WB_RESCHEDULE; change++) {
        const int is_gone = change == WB_REMOVE || change == WB_CANCEL;
        *change_of(kit) = (wb_change)change;
        if (!wb_client_delay(look, "a", PAST(1)) || !wb_victim_run(kit, live_past_change) ||
            !wb_client_takes_due(look, wb_owner_a, PAST(1), "") ||
            !wb_client_takes_due(look, wb_owner_a, PAST(2), is_gone ? "" : "a ") ||
            !wb_client_has_waiting(look, is_gone ? "" : "a ") || !wb_client_changes(look, WB_REMOVE, NULL, "a", 0, !is_gone))
            return;
    }
}

/* Long enough to be seen, and short enough to be waited for. */
#define LEASE_OF_VICTIM (1500 * WB_MILLISECOND)

static int die(void *argument)
{
    (void)argument;
    return raise(SIGKILL);
}

/* When the victim asked for what it took, by the store's clock. */
static int64_t *asked(wb_kit *kit)
{
    return (int64_t *)(void *)wb_board_of(kit)->told;
}

static void live_until_visited(wb_client *victim)
{
    wb_delayed_fetch what = wb_fetch_of(wb_owner_b, 0);
    wb_seen seen = { .meanwhile = die };
    what.lease = LEASE_OF_VICTIM;
    if (!wb_client_asks_time(victim, asked(victim->kit)))
        return;
    (void)wb_delayed_fetch_into(victim, &what, &seen);
    wb_kit_check(victim->kit, 0, "the fetch found nothing");
}

static void killed_after_store(wb_kit *kit)
{
    wb_client *look = wb_client_open(kit, 0);
    if (look && wb_client_delay(look, "a", PAST(1)) && wb_victim_run(kit, live_past_store))
        wb_client_takes_due(look, wb_owner_a, 0, "a b ");
}

/* While the first is visited all are taken, for everybody: nobody is given them before the
 * lease ends, and then they come. */
static void killed_in_visit(wb_kit *kit)
{
    wb_client *look = wb_client_open(kit, 0);
    const wb_delayed_fetch all = wb_fetch_of(wb_owner_a, 0);
    const int64_t deadline = wb_clock_monotonic() + LEASE_OF_VICTIM + kit->options->patience;
    wb_seen seen = { .count = 0 };
    int64_t now;
    if (!look || !wb_client_delay(look, "a", PAST(1)) || !wb_client_delay(look, "b", PAST(2)) ||
        !wb_victim_run(kit, live_until_visited))
        return;
    while (!seen.count && wb_clock_monotonic() < deadline) {
        wb_clock_pause(WB_MILLISECOND, NULL);
        if (!wb_client_check(look, wb_delayed_fetch_into(look, &all, &seen), WB_OK, "fetch"))
            return;
    }
    if (!wb_client_asks_time(look, &now))
        return;
    wb_kit_check(kit, strcmp(seen.ids, "a b ") == 0, "\"%s\" came after the lease of a dead process",
                 seen.ids);
    wb_kit_check(kit, now - *asked(kit) >= LEASE_OF_VICTIM - WB_ROUNDING,
                 "what a process had taken was given away before its lease ended");
}

#define STORE WB_CAP_DELAY_STORE
static const wb_kit_case cases[] = {
    { "delayed: four pollers share what is due, none is in two hands", STORE, four_pollers },
    { "delayed: what is stored while pollers fetch is fetched once", STORE, senders_and_pollers },
    { "delayed: the same message from three senders is one", STORE, senders_of_the_same },
    { "delayed: of two that remove one message one is told that it was there", STORE, removes_of_the_same },
    { "delayed: of two that cancel one message one is told that it was there", STORE, cancels_of_the_same },
    { "delayed: each message is cancelled or fetched", STORE, cancel_against_fetch },
    { "delayed: what a process stored before it was killed is there", STORE, killed_after_store },
    { "delayed: what a process changed before it was killed is changed", STORE, killed_after_changes },
    { "delayed: what a killed process had taken comes when its lease ends", STORE, killed_in_visit },
};
const wb_kit_group wb_cases_delayed_pairs = WB_KIT_GROUP(cases);
