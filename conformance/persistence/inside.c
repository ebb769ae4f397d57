/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence kit: inside of commit(). A process is killed there, at one place after the other.
 * And what commit() and other calls promise to last is on the disk when they return.
 */
#include "config.h"

#include <string.h>

#include "conformance/persistence/delayed.h"
#include "conformance/persistence/trace.h"

/* A commit that turns to the system more often is tried at so many places all the same. */
#define PLACES_MAX 60

/* What the process is to commit. */
typedef struct {
    uint64_t batch;
    char id[24];
    char key[WB_BUSINESS_KEY];
    int has_business;
} task;

static task *task_of(wb_kit *kit)
{
    return (task *)(void *)wb_board_of(kit)->told;
}

static void choose(wb_kit *kit, unsigned place)
{
    task *what = task_of(kit);
    what->batch = WB_BATCH(place + 1);
    (void)snprintf(what->id, sizeof what->id, "order-%u", place);
    what->has_business = kit->options->business != NULL;
    wb_business_key(kit, what->key);
}

static void begin(wb_client *victim)
{
    task *what = task_of(victim->kit);
    wb_claim claim = { what->id, strlen(what->id), 0 };
    if (wb_client_takes(victim, what->batch, &claim, 1) && what->has_business)
        (void)wb_business_writes(victim, what->key);
}

/* What a store does only now and then, when it begins a log anew, is done before. */
static void begin_second(wb_client *victim)
{
    if (wb_client_stores(victim, WB_BATCH(PLACES_MAX), "first", "operations"))
        begin(victim);
}

static int commit(wb_client *victim)
{
    return wb_client_commit(victim, task_of(victim->kit)->batch, "operations", 10);
}

/* The claim waits for a server that has not seen yet that nobody is there any more.
 * @return 1 or 0: all of it is there, or nothing; -1: neither, which is noted. */
static int is_there(wb_client *look)
{
    const task *what = task_of(look->kit);
    wb_claim claim = { what->id, strlen(what->id), 0 };
    if (!wb_client_check(look, wb_client_begin_patiently(look, WB_BATCH_OF_LOOKS, &claim, 1), WB_OK, "claim again") ||
        !wb_client_check(look, wb_client_rollback(look), WB_OK, "roll back"))
        return -1;
    const int there = claim.duplicate_of != 0;
    return wb_kit_check(look->kit, !there || claim.duplicate_of == what->batch, "the record is of another batch") &&
                   wb_client_finds_pending(look, what->batch, there ? "operations" : NULL, 10) &&
                   (!what->has_business || wb_business_finds(look, what->key, there))
               ? there
               : -1;
}

/* @return whether to go on. */
static int kill_at(wb_client *look, unsigned place, int *ret_there)
{
    wb_tracer trace = { .prepare = begin, .call = commit, .kill_at = place };
    choose(look->kit, place);
    if (!wb_tracer_run(look->kit, &trace))
        return 0;
    *ret_there = is_there(look);
    if (*ret_there < 0)
        wb_kit_note(look->kit, "the process was killed at system call %u of its commit", place);
    return *ret_there >= 0;
}

/* Once to count them, and then at each. */
static void killed_inside(wb_kit *kit)
{
    wb_tracer whole = { .prepare = begin, .call = commit };
    int there = 0;
    if (kit->options->business && wb_business_lacks(kit))
        return;
    wb_client *look = wb_client_open(kit, 0);
    choose(kit, 0);
    if (!look || !wb_tracer_run(kit, &whole) ||
        !wb_kit_check(kit, is_there(look) == 1, "what was committed is not there"))
        return;
    const unsigned step = whole.made / PLACES_MAX + 1;
    for (unsigned place = 1; place <= whole.made; place += step)
        if (!kill_at(look, place, &there))
            return;
}

/* ---- on the disk ------------------------------------------------------------------------------ */

static void check_flushed(wb_kit *kit, const char *name, void (*prepare)(wb_client *), int (*call)(wb_client *))
{
    wb_tracer whole = { .prepare = prepare, .call = call };
    if (!wb_client_open(kit, 0) || !wb_tracer_run(kit, &whole))
        return;
    if (whole.is_connected)
        wb_kit_skip(kit, "%s has a server, which writes", kit->plugin->name);
    else
        wb_kit_check(kit, whole.is_flushed,
                     "%s and nothing had been brought to the disk: no fsync(), fdatasync(), msync() or O_DSYNC", name);
}

static void commit_is_flushed(wb_kit *kit)
{
    if (kit->options->business && wb_business_lacks(kit))
        return;
    choose(kit, 0);
    check_flushed(kit, "commit() returned", begin_second, commit);
}

/* Two ids, of which one is given back: nothing is to be sent, and nobody may handle the other one again. */
static void begin_two(wb_client *victim)
{
    wb_claim claims[] = { WB_CLAIM("order-1"), WB_CLAIM("order-2") };
    if (wb_client_stores(victim, WB_BATCH(PLACES_MAX), "first", "operations"))
        (void)wb_client_takes(victim, WB_BATCH(1), claims, 2);
}

static int commit_giving_back(wb_client *victim)
{
    const wb_claim released = WB_CLAIM("order-2");
    return wb_client_commit_releasing(victim, WB_BATCH(1), NULL, 0, &released, 1);
}

static void commit_of_nothing_is_flushed(wb_kit *kit)
{
    check_flushed(kit, "commit() without operations returned", begin_two, commit_giving_back);
}

static int store_second(wb_client *victim)
{
    const wb_delayed message = wb_waiting("b", 2);
    return wb_delayed_store(victim, &message, 1);
}

static void store_first(wb_client *victim)
{
    (void)wb_client_delay(victim, "a", 1);
}

static void store_is_flushed(wb_kit *kit)
{
    check_flushed(kit, "store() returned", store_first, store_second);
}

static void store_and_fetch(wb_client *victim)
{
    if (wb_client_delay(victim, "a", 1) && wb_client_takes_due(victim, wb_owner_a, 0, "a "))
        (void)wb_client_delay(victim, "b", 2);
}

/* What is brought to the disk behind the visit is too late. */
static int end_call(void *argument)
{
    (void)argument;
    wb_tracer_next_stage();
    return WB_OK;
}

static int fetch_second(wb_client *victim)
{
    const wb_delayed_fetch what = wb_fetch_of(wb_owner_b, 0);
    wb_seen seen = { .kit = victim->kit, .meanwhile = end_call };
    int r = wb_delayed_fetch_into(victim, &what, &seen);
    wb_kit_check(victim->kit, seen.count == 1, "%zu messages were fetched instead of 1", seen.count);
    return r;
}

static void fetch_is_flushed(wb_kit *kit)
{
    check_flushed(kit, "fetch() visited what it had taken", store_and_fetch, fetch_second);
}

/* ---- of a delayed message that is there ------------------------------------------------------- */

/* What it is and what it is called the process is told over the board. */
static wb_change *change_of(wb_kit *kit)
{
    return (wb_change *)(void *)wb_board_of(kit)->told;
}

static const char *owner_for(wb_change change)
{
    return change == WB_CANCEL || change == WB_RESCHEDULE ? NULL : wb_owner_a;
}

static void store_for_change(wb_client *victim)
{
    if (wb_client_delay(victim, "a", 1) && owner_for(*change_of(victim->kit)))
        (void)wb_client_takes_due(victim, wb_owner_a, 0, "a ");
}

static int change(wb_client *victim)
{
    const wb_change which = *change_of(victim->kit);
    const wb_delayed message = wb_waiting("a", 1);
    wb_delayed_key key = wb_waiting_key(&message);
    int r = wb_delayed_change(victim, which, owner_for(which), &key, 1, WB_SECOND);
    wb_kit_check(victim->kit, key.was_there == 1, "what was to be changed was not there");
    return r;
}

static void changes_are_flushed(wb_kit *kit)
{
    static const char *const names[] = { "remove() returned", "increment_failure_count() returned", "release() returned",
                                         "cancel() returned", "reschedule() returned" };
    wb_client *a = wb_client_open(kit, 0);
    for (int which = WB_REMOVE; a && which <= WB_RESCHEDULE && !kit->skip_reason[0]; which++) {
        *change_of(kit) = (wb_change)which;
        check_flushed(kit, names[which], store_for_change, change);
        if (!wb_client_forgets(a))
            return;
    }
}

/* ---- of ids that are remembered --------------------------------------------------------------- */

static int remember(wb_client *victim, const char *id)
{
    const wb_claim claim = { id, strlen(id), WB_BATCH(1) };
    wb_error_clear(&victim->error);
    return victim->ops->remember(victim->session, &claim, 1, &victim->error);
}

static void remember_first(wb_client *victim)
{
    wb_client_check(victim, remember(victim, "order-1"), WB_OK, "remember");
}

static int remember_second(wb_client *victim)
{
    return remember(victim, "order-2");
}

static void remember_is_flushed(wb_kit *kit)
{
    check_flushed(kit, "remember() returned", remember_first, remember_second);
}

#define OUTBOX WB_CAP_OUTBOX
static const wb_kit_case cases[] = {
    { "a process killed inside of commit(), wherever it is, leaves all of the batch or nothing", OUTBOX, killed_inside },
    { "what was committed is on the disk when commit() returns", OUTBOX, commit_is_flushed },
    { "a commit without operations is on the disk when commit() returns", OUTBOX, commit_of_nothing_is_flushed },
    { "delayed: what was stored is on the disk when store() returns", WB_CAP_DELAY_STORE, store_is_flushed },
    { "delayed: what was taken is so on the disk when fetch() visits it", WB_CAP_DELAY_STORE, fetch_is_flushed },
    { "delayed: what was changed is so on the disk when the call returns", WB_CAP_DELAY_STORE, changes_are_flushed },
    { "remember: what was remembered is on the disk when remember() returns", WB_CAP_REMEMBER, remember_is_flushed },
};
const wb_kit_group wb_cases_inside = WB_KIT_GROUP(cases);
