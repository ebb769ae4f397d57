/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence kit: processes that are killed. A stranger makes an instance and a session of
 * its own, goes as far as it is told, and is gone without closing anything.
 */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance/persistence/persistence.h"

#define FAILED 3

typedef struct {
    void (*live)(wb_client *victim);
    int is_killed; /* filled */
} victim_to_be;

_Noreturn static void be_victim(wb_kit *kit, pid_t nursery, const victim_to_be *one)
{
    wb_kit_end_with(nursery);
    wb_store *store = wb_store_again(kit, 0);
    wb_client *victim = store ? wb_client_open_on(kit, store) : NULL;
    if (victim)
        one->live(victim);
    if (victim && !kit->is_failed)
        (void)raise(SIGKILL);
    _exit(FAILED);
}

static void make_victim(wb_kit *kit, void *argument)
{
    victim_to_be *one = argument;
    int status = 0;
    const pid_t self = getpid();
    pid_t child = fork();
    if (child == 0)
        be_victim(kit, self, one);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    one->is_killed = child > 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

int wb_victim_run(wb_kit *kit, void (*live)(wb_client *victim))
{
    victim_to_be one = { live, 0 };
    return wb_nursery_do(kit, make_victim, &one, sizeof one) &&
           wb_kit_check(kit, one.is_killed, "the process that was to be killed has failed before");
}

static void live_in_transaction(wb_client *victim)
{
    wb_claim claim = WB_CLAIM("order-2");
    (void)wb_client_takes(victim, WB_BATCH(2), &claim, 1);
}

static void live_past_commit(wb_client *victim)
{
    (void)wb_client_stores(victim, WB_BATCH(2), "order-2", "operations");
}

/* One of two is its own afterwards; there is nothing to send. */
static void live_past_release(wb_client *victim)
{
    wb_claim claims[] = { WB_CLAIM("order-2"), WB_CLAIM("order-3") };
    if (wb_client_takes(victim, WB_BATCH(2), claims, 2))
        wb_client_check(victim, wb_client_commit_releasing(victim, WB_BATCH(2), NULL, 0, claims, 1), WB_OK, "commit");
}

static void live_past_mark(wb_client *victim)
{
    wb_client_check(victim, wb_client_mark(victim, WB_BATCH(1), NULL, 0), WB_OK, "mark");
}

static int die(void *argument, const wb_pending *row)
{
    (void)argument, (void)row;
    return raise(SIGKILL);
}

static void live_until_visited(wb_client *victim)
{
    (void)victim->ops->sweep(victim->session, WB_BATCH_END, 10, die, NULL, &victim->error);
    wb_kit_check(victim->kit, 0, "the sweep found nothing");
}

static void live_until_walked(wb_client *victim)
{
    (void)victim->ops->next_pending(victim->session, 0, WB_BATCH_END, die, NULL, &victim->error);
    wb_kit_check(victim->kit, 0, "the walk found nothing");
}

static wb_client *prepare(wb_kit *kit)
{
    wb_client *look = wb_client_open(kit, 0);
    return look && wb_client_stores(look, WB_BATCH(1), "order-1", "operations") ? look : NULL;
}

static void in_transaction(wb_kit *kit)
{
    wb_client *look = prepare(kit);
    if (!look || !wb_victim_run(kit, live_in_transaction))
        return;
    wb_client_finds_owner_soon(look, "order-2", 7, 0);
    wb_client_finds_pending(look, WB_BATCH(2), NULL, 0);
}

static void past_commit(wb_kit *kit)
{
    wb_client *look = prepare(kit);
    if (!look || !wb_victim_run(kit, live_past_commit))
        return;
    wb_client_finds_owner_soon(look, "order-2", 7, WB_BATCH(2));
    wb_client_finds_pending(look, WB_BATCH(2), "operations", 10);
}

static void past_release(wb_kit *kit)
{
    wb_client *look = prepare(kit);
    if (!look || !wb_victim_run(kit, live_past_release))
        return;
    wb_client_finds_owner_soon(look, "order-2", 7, 0);
    wb_client_finds_owner_soon(look, "order-3", 7, WB_BATCH(2));
}

static void past_mark(wb_kit *kit)
{
    wb_client *look = prepare(kit);
    if (!look || !wb_victim_run(kit, live_past_mark))
        return;
    wb_client_finds_pending(look, WB_BATCH(1), NULL, 0);
    wb_client_finds_owner_soon(look, "order-1", 7, WB_BATCH(1));
}

/* A server needs a moment to see that a client is gone. */
static void in_sweep(wb_kit *kit)
{
    int64_t deadline = wb_clock_monotonic() + WB_CALL_DEADLINE;
    wb_found found = { .count = 0 };
    wb_client *look = prepare(kit);
    if (!look || !wb_victim_run(kit, live_until_visited))
        return;
    while (!found.count && wb_clock_monotonic() < deadline) {
        if (!wb_client_check(look, wb_client_sweep(look, WB_BATCH_END, 10, &found), WB_OK, "sweep"))
            return;
        free(found.operations);
    }
    wb_kit_check(kit, found.count == 1, "nobody sweeps after a process that was killed sweeping");
}

static void in_walk(wb_kit *kit)
{
    int64_t deadline = wb_clock_monotonic() + WB_CALL_DEADLINE;
    wb_found found = { .count = 0 };
    if (WB_LACKS(kit, next_pending))
        return;
    wb_client *look = prepare(kit);
    if (!look || !wb_victim_run(kit, live_until_walked))
        return;
    while (!found.count && wb_clock_monotonic() < deadline) {
        int r = wb_client_next(look, 0, WB_BATCH_END, &found);
        if (!wb_client_check(look, r, WB_OK, "visit the next row"))
            return;
        free(found.operations);
    }
    wb_kit_check(kit, found.count == 1, "nobody visits after a process that was killed visiting");
}

#define OUTBOX WB_CAP_OUTBOX
static const wb_kit_case cases[] = {
    { "a process killed in a transaction leaves nothing of it", OUTBOX, in_transaction },
    { "a process killed after a commit leaves all of it", OUTBOX, past_commit },
    { "a process killed after a commit has given back what it gave back", OUTBOX, past_release },
    { "a process killed after a mark has marked", OUTBOX, past_mark },
    { "a process killed in a sweep keeps nobody from sweeping", OUTBOX, in_sweep },
    { "a process killed while it visits a row keeps nobody from visiting", OUTBOX, in_walk },
};
const wb_kit_group wb_cases_victim = WB_KIT_GROUP(cases);
