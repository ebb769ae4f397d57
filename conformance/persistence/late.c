/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence kit: ids that are claimed with the commit, and looked for without a claim, as
 * transactional sessions do it.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/persistence/actor.h"
#include "conformance/persistence/lost.h"
#include "conformance/persistence/persistence.h"
#include "core/base/arena.h"

#define ID "session-1"
#define ID_SIZE (sizeof ID - 1)
#define PENDING "pending"
/* How long nobody has to wait who waits for nobody. */
#define AT_ONCE (2 * WB_SECOND)
/* And how long who waits is watched. */
#define A_WHILE (300 * WB_MILLISECOND)

static int commit_claiming(wb_client *client, uint64_t batch, const char *operations,
                           const wb_claim *claims, size_t count)
{
    wb_commit commit = { .struct_size = sizeof commit,
                         .batch = batch,
                         .operations = operations,
                         .operations_size = operations ? strlen(operations) : 0,
                         .claims = claims,
                         .claim_count = count };
    wb_error_clear(&client->error);
    return client->ops->commit(client->session, &commit, &client->error);
}

/* A whole session, which began under that number. */
static int commits_later(wb_client *client, uint64_t begun, uint64_t batch, const char *operations)
{
    const wb_claim claim = WB_CLAIM(ID);
    int r = wb_client_begin(client, begun, NULL, 0);
    return wb_client_check(client, r, WB_OK, "begin without a claim")
               ? commit_claiming(client, batch, operations, &claim, 1)
               : r;
}

static int commits_late(wb_client *client, uint64_t batch, const char *operations)
{
    return commits_later(client, batch, batch, operations);
}

static int is_refused(wb_client *client, int result)
{
    return wb_kit_check(client->kit, result == WB_ABORT || result == WB_RETRY || result == WB_REJECT,
                        "to commit with an id that has a record is %s", wb_result_name(result));
}

static int finds(wb_client *client, uint64_t owner)
{
    wb_claim claim = { ID, ID_SIZE, WB_NOT_ANSWERED };
    wb_error_clear(&client->error);
    int r = client->ops->find(client->session, &claim, 1, &client->error);
    return wb_client_check(client, r, WB_OK, "find") &&
           wb_kit_check(client->kit, claim.duplicate_of == owner,
                        "the record is said to be of batch %" PRIu64 ", not %" PRIu64 " (0: there is none)",
                        claim.duplicate_of, owner);
}

/* ---- one after the other ----------------------------------------------------------------- */

/* However long it was open: the number is of its commit. */
static void committed_with_all(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 0);
    if (!a || !b || !finds(a, 0) ||
        !wb_client_check(a, commits_later(a, WB_BATCH(0), WB_BATCH(1), PENDING), WB_OK, "commit with a claim"))
        return;
    finds(a, WB_BATCH(1));
    finds(b, WB_BATCH(1));
    wb_client_finds_owner(b, ID, ID_SIZE, WB_BATCH(1));
    wb_client_finds_pending(b, WB_BATCH(1), PENDING, sizeof PENDING - 1);
}

/* Whoever has the record: a batch, or another session. */
static void recorded_commits_nothing(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 0);
    if (!a || !b || !wb_client_stores(a, WB_BATCH(1), ID, NULL))
        return;
    is_refused(b, commits_late(b, WB_BATCH(2), PENDING));
    wb_client_finds_pending(a, WB_BATCH(2), NULL, 0);
    finds(a, WB_BATCH(1));
    finds(b, WB_BATCH(1));
    is_refused(b, commits_late(b, WB_BATCH(3), NULL));
    wb_client_stores(b, WB_BATCH(4), "another", PENDING); /* the session serves on */
}

/* A number that is used again after a commit in doubt: the record is still somebody's. */
static void own_number_is_refused(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !wb_client_check(a, commits_late(a, WB_BATCH(1), NULL), WB_OK, "commit with a claim"))
        return;
    is_refused(a, commits_late(a, WB_BATCH(1), PENDING));
    finds(a, WB_BATCH(1));
    wb_client_finds_pending(a, WB_BATCH(1), NULL, 0);
}

static int replace(wb_client *client, uint64_t batch, uint64_t replaced)
{
    const wb_claim claim = { ID, ID_SIZE, replaced };
    int r = wb_client_begin(client, batch, NULL, 0);
    return wb_client_check(client, r, WB_OK, "begin") ? commit_claiming(client, batch, PENDING, &claim, 1) : r;
}

/* What it is told to replace, and no other record. */
static void replaces_one(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 0);
    if (!a || !b || !wb_client_stores(a, WB_BATCH(1), ID, NULL) || !wb_client_stores(a, WB_BATCH(5), "another", NULL))
        return;
    is_refused(b, replace(b, WB_BATCH(2), WB_BATCH(5)));
    finds(a, WB_BATCH(1));
    wb_client_finds_owner(a, "another", 7, WB_BATCH(5));
    wb_client_check(b, replace(b, WB_BATCH(3), WB_BATCH(1)), WB_OK, "commit with a claim that replaces a record");
    finds(a, WB_BATCH(3));
    is_refused(b, replace(b, WB_BATCH(4), WB_BATCH(1)));
    finds(a, WB_BATCH(3));
    wb_client_finds_pending(a, WB_BATCH(3), PENDING, sizeof PENDING - 1);
    wb_client_finds_pending(a, WB_BATCH(4), NULL, 0);
}

/* The record that took the place of another one is as old as its own number. */
static void replaced_is_new(wb_kit *kit)
{
    size_t deleted;
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !wb_client_stores(a, WB_BATCH(1), ID, NULL) ||
        !wb_client_check(a, replace(a, WB_BATCH(9), WB_BATCH(1)), WB_OK, "commit with a claim that replaces a record") ||
        !wb_client_check(a, wb_client_mark(a, WB_BATCH(9), NULL, 0), WB_OK, "mark") ||
        !wb_client_check(a, wb_client_clean_up(a, WB_BATCH(9), 100, &deleted), WB_OK, "clean up"))
        return;
    wb_kit_check(kit, deleted == 0, "%zu records are said to be deleted instead of 0", deleted);
    finds(a, WB_BATCH(9));
}

/* What it would replace is not there: the id is claimed as any. */
static void replaces_nothing(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0);
    if (a && wb_client_check(a, replace(a, WB_BATCH(2), WB_BATCH(1)), WB_OK, "commit with a claim that replaces nothing"))
        finds(a, WB_BATCH(2));
}

/* A number of its own: a rollback keeps what was to be replaced. */
static void refused_replaces_nothing(wb_kit *kit)
{
    const wb_claim claims[] = { { "another", 7, 0 }, { ID, ID_SIZE, WB_BATCH(1) } };
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !wb_client_stores(a, WB_BATCH(1), ID, NULL) || !wb_client_stores(a, WB_BATCH(5), "another", NULL) ||
        !wb_client_check(a, wb_client_begin(a, WB_BATCH(2), NULL, 0), WB_OK, "begin"))
        return;
    is_refused(a, commit_claiming(a, WB_BATCH(2), PENDING, claims, 2));
    finds(a, WB_BATCH(1));
}

static void rolled_back_leaves_none(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !wb_client_check(a, wb_client_begin(a, WB_BATCH(1), NULL, 0), WB_OK, "begin") ||
        !wb_client_check(a, wb_client_rollback(a), WB_OK, "roll back"))
        return;
    finds(a, 0);
    wb_client_check(a, commits_late(a, WB_BATCH(2), PENDING), WB_OK, "commit with a claim");
}

/* ---- a thousand -------------------------------------------------------------------------- */

#define MANY 1000

typedef struct {
    char ids[MANY][16];
    wb_claim claims[MANY];
    wb_claim even[MANY / 2];
} many;

static many *make_many(wb_kit *kit)
{
    many *all = wb_alloc_zero(1, sizeof *all);
    wb_kit_defer(kit, free, all);
    for (size_t i = 0; i < MANY; i++) {
        int size = snprintf(all->ids[i], sizeof all->ids[i], "s-%05zu", i);
        all->ids[i][1] = '\0'; /* an id is any bytes */
        all->claims[i] = (wb_claim){ all->ids[i], (size_t)size, WB_NOT_ANSWERED };
        if (i % 2 == 0)
            all->even[i / 2] = all->claims[i];
    }
    return all;
}

static void a_thousand(wb_kit *kit)
{
    many *all = make_many(kit);
    wb_client *a = wb_client_open(kit, 0);
    size_t wrong = 0;
    if (!a || !wb_client_check(a, wb_client_begin(a, WB_BATCH(1), NULL, 0), WB_OK, "begin") ||
        !wb_client_check(a, commit_claiming(a, WB_BATCH(1), NULL, all->even, MANY / 2), WB_OK,
                         "commit with many claims") ||
        !wb_client_check(a, a->ops->find(a->session, all->claims, MANY, &a->error), WB_OK, "find many"))
        return;
    for (size_t i = 0; i < MANY; i++)
        wrong += all->claims[i].duplicate_of != (i % 2 ? 0 : WB_BATCH(1));
    wb_kit_check(kit, wrong == 0, "%zu of %d ids have the wrong answer", wrong, MANY);
    for (size_t i = 0; i < MANY; i++)
        all->claims[i].duplicate_of = 0;
    int r = wb_client_begin(a, WB_BATCH(2), NULL, 0);
    if (wb_client_check(a, r, WB_OK, "begin"))
        is_refused(a, commit_claiming(a, WB_BATCH(2), PENDING, all->claims, MANY));
    r = a->ops->find(a->session, all->claims, MANY, &a->error);
    wb_client_check(a, r, WB_OK, "find many");
    for (size_t i = 1; i < MANY; i += 2)
        wrong += all->claims[i].duplicate_of != 0;
    wb_kit_check(kit, wrong == 0, "%zu ids of a refused commit have records", wrong);
}

static void endpoints_are_apart(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 1);
    if (!a || !b || !wb_client_check(a, commits_late(a, WB_BATCH(1), NULL), WB_OK, "commit with a claim"))
        return;
    finds(b, 0);
    wb_client_check(b, commits_late(b, WB_BATCH(2), NULL), WB_OK, "commit the other endpoint's");
    finds(a, WB_BATCH(1));
    finds(b, WB_BATCH(2));
}

/* ---- at the same time -------------------------------------------------------------------- */

/* A worker's claim is open as long as its handlers run. */
static void find_waits_for_nobody(wb_kit *kit)
{
    wb_claim claim = WB_CLAIM(ID);
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 0);
    if (!a || !b || !wb_client_takes(a, WB_BATCH(1), &claim, 1))
        return;
    int64_t began = wb_clock_monotonic();
    finds(b, 0);
    int64_t took = wb_clock_monotonic() - began;
    wb_kit_check(kit, took < AT_ONCE, "find() took %" PRId64 " ms beside a transaction that holds the id",
                 took / WB_MILLISECOND);
    wb_client_check(a, wb_client_commit(a, WB_BATCH(1), NULL, 0), WB_OK, "commit");
    finds(b, WB_BATCH(1));
}

typedef struct {
    wb_client *client;
    int result;
} late_call;

static void commit_late(void *argument)
{
    late_call *call = argument;
    call->result = commits_late(call->client, WB_BATCH(2), PENDING);
}

/* While a batch holds the id, a session's commit waits; its begin may wait already. */
static void wait_for(wb_kit *kit, int is_committed)
{
    wb_claim claim = WB_CLAIM(ID);
    wb_actor actor;
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 0);
    late_call call = { b, WB_OK };
    if (!a || !b || !wb_client_takes(a, WB_BATCH(1), &claim, 1))
        return;
    wb_actor_start(&actor);
    wb_actor_do(&actor, commit_late, &call);
    wb_kit_check(kit, !wb_actor_is_idle(&actor, A_WHILE), "a commit does not wait for who holds its id");
    int r = is_committed ? wb_client_commit(a, WB_BATCH(1), NULL, 0) : wb_client_rollback(a);
    wb_client_check(a, r, WB_OK, "end the first");
    wb_actor_await(kit, &actor);
    wb_actor_stop(&actor);
    if (is_committed)
        is_refused(b, call.result);
    else
        wb_client_check(b, call.result, WB_OK, "commit with a claim");
    finds(a, is_committed ? WB_BATCH(1) : WB_BATCH(2));
    wb_client_finds_pending(a, WB_BATCH(2), is_committed ? NULL : PENDING, is_committed ? 0 : sizeof PENDING - 1);
}

static void waits_for_commit(wb_kit *kit)
{
    wait_for(kit, 1);
}

static void waits_for_rollback(wb_kit *kit)
{
    wait_for(kit, 0);
}

/* ---- the connection is lost -------------------------------------------------------------- */

static int begins(wb_client *client)
{
    return wb_client_check(client, wb_client_begin(client, WB_BATCH(1), NULL, 0), WB_OK, "begin");
}

static int call_commit(wb_client *client)
{
    const wb_claim claim = WB_CLAIM(ID);
    return commit_claiming(client, WB_BATCH(1), PENDING, &claim, 1);
}

/* The claim tells what became of it, and keeps what is on its way from happening later. */
static void check_commit(wb_client *look, int result, int is_sent)
{
    const uint64_t batch = WB_BATCH(1);
    wb_claim claim = WB_CLAIM(ID);
    wb_found found = { .count = 0 };
    if (!wb_client_check(look, wb_client_begin(look, WB_BATCH_OF_LOOKS, &claim, 1), WB_OK, "claim the id") ||
        !wb_client_check(look, wb_client_rollback(look), WB_OK, "roll back") || !finds(look, claim.duplicate_of))
        return;
    wb_client_check(look, wb_client_pending(look, &batch, 1, &found), WB_OK, "look for the row");
    free(found.operations);
    wb_kit_check(look->kit, (claim.duplicate_of == batch) == (found.count == 1), "a part was committed");
    wb_kit_check(look->kit, found.count || result != WB_OK, "what was said to be done is not");
    wb_kit_check(look->kit, !found.count || result != WB_NOT_CONNECTED, "what was said not to be done is");
    wb_kit_check(look->kit, !found.count || is_sent, "a call that was never sent has happened");
}

static const wb_lost_call of_commit = { begins, call_commit, WB_GONE_OR_UNKNOWN | WB_ONE_OF(WB_OK), check_commit };

static void commit_request(wb_kit *kit)
{
    wb_lost_lose(kit, &of_commit, WB_LOSE_REQUEST);
}

static void commit_reply(wb_kit *kit)
{
    wb_lost_lose(kit, &of_commit, WB_LOSE_REPLY);
}

/* What begin() put off is still to be sent. */
static void cut_before_commit(wb_kit *kit)
{
    wb_lost_cut(kit, &of_commit);
}

/* What is cut while it waits goes on at the server by itself: it has a first id as well, so that whoever claims
 * that waits for its end. */
#define FIRST "session-0"
#define CUT_CLAIMS { WB_CLAIM(FIRST), WB_CLAIM(ID) }

static void commit_to_be_cut(void *argument)
{
    const wb_claim claims[] = CUT_CLAIMS;
    late_call *call = argument;
    call->result = wb_client_begin(call->client, WB_BATCH(2), NULL, 0);
    if (wb_client_check(call->client, call->result, WB_OK, "begin without a claim"))
        call->result = commit_claiming(call->client, WB_BATCH(2), PENDING, claims, 2);
}

/* Nobody has the ids any more, or what was cut: which of the two, and it stays so. @return whose the second is. */
static uint64_t settle_owner(wb_client *look)
{
    wb_claim claims[] = CUT_CLAIMS;
    int r = wb_client_begin_patiently(look, WB_BATCH(3), claims, 2);
    if (!wb_client_check(look, r, WB_OK, "claim the ids"))
        return 0;
    const uint64_t first = claims[0].duplicate_of, owner = claims[1].duplicate_of;
    wb_kit_check(look->kit, first == (owner == WB_BATCH(2) ? WB_BATCH(2) : 0), "a part of the claims was committed");
    r = first || owner ? wb_client_rollback(look) : wb_client_commit(look, WB_BATCH(3), NULL, 0);
    return wb_client_check(look, r, WB_OK, "end that") ? (owner ? owner : WB_BATCH(3)) : 0;
}

static void check_cut(wb_client *look, int result, int is_committed)
{
    const uint64_t owner = settle_owner(look);
    const int is_there = owner == WB_BATCH(2);
    finds(look, owner);
    wb_client_finds_pending(look, WB_BATCH(2), is_there ? PENDING : NULL, is_there ? sizeof PENDING - 1 : 0);
    wb_kit_check(look->kit, (WB_GONE_OR_UNKNOWN & WB_ONE_OF(result)) != 0, "a commit that was cut is %s", wb_result_name(result));
    wb_kit_check(look->kit, !is_there || result == WB_IN_DOUBT, "a commit that was said to be %s has happened", wb_result_name(result));
    wb_kit_check(look->kit, !is_committed || owner == WB_BATCH(1), "the id that was committed is of batch %" PRIu64, owner);
}

/* The server may not notice, and commit when it has the id. */
static void cut_waiting(wb_kit *kit, int is_committed)
{
    wb_claim claim = WB_CLAIM(ID);
    wb_wires before;
    wb_actor actor;
    wb_client *a = wb_client_open(kit, 0);
    late_call call = { a ? wb_client_open_wired(kit, &before) : NULL, WB_OK };
    if (!call.client || !wb_client_takes(a, WB_BATCH(1), &claim, 1))
        return;
    wb_actor_start(&actor);
    wb_actor_do(&actor, commit_to_be_cut, &call);
    wb_kit_check(kit, !wb_actor_is_idle(&actor, A_WHILE), "a commit does not wait for who holds its id");
    wb_wires_cut(&before);
    wb_actor_await(kit, &actor);
    wb_actor_stop(&actor);
    int r = is_committed ? wb_client_commit(a, WB_BATCH(1), NULL, 0) : wb_client_rollback(a);
    if (wb_client_check(a, r, WB_OK, "end the first"))
        check_cut(a, call.result, is_committed);
}

static void cut_waiting_for_commit(wb_kit *kit)
{
    cut_waiting(kit, 1);
}

static void cut_waiting_for_rollback(wb_kit *kit)
{
    cut_waiting(kit, 0);
}

#define LATE (WB_CAP_OUTBOX | WB_CAP_CLAIM_WITH_COMMIT)
static const wb_kit_case cases[] = {
    { "late: an id that is claimed with the commit is there with it", LATE, committed_with_all },
    { "late: with an id that has a record nothing is committed", LATE, recorded_commits_nothing },
    { "late: nor with one's own number, twice", LATE, own_number_is_refused },
    { "late: a claim replaces the record it is told to, and no other", LATE, replaces_one },
    { "late: and is made where that is not there", LATE, replaces_nothing },
    { "late: a commit that is refused replaces nothing", LATE, refused_replaces_nothing },
    { "late: a clean-up keeps what has replaced an older one", LATE, replaced_is_new },
    { "late: a rollback leaves no record", LATE, rolled_back_leaves_none },
    { "late: many with one commit, all or none of them", LATE, a_thousand },
    { "late: the same id is two ids for two endpoints", LATE, endpoints_are_apart },
    { "late: to find an id waits for nobody, and sees what is committed", LATE, find_waits_for_nobody },
    { "late: a commit waits for the transaction that holds its id, refused after its commit", LATE,
      waits_for_commit },
    { "late: a commit waits for the transaction that holds its id, and is made after its rollback", LATE,
      waits_for_rollback },
    { "late: the request of a commit with a claim is lost", LATE, commit_request },
    { "late: the reply of a commit with a claim is lost", LATE, commit_reply },
    { "late: cut before a commit with a claim: nothing happened", LATE, cut_before_commit },
    { "late: cut while a commit waits for who has its id, who commits", LATE, cut_waiting_for_commit },
    { "late: cut while a commit waits for who has its id, who rolls back: unknown, until somebody claims it", LATE,
      cut_waiting_for_rollback },
};
const wb_kit_group wb_cases_late = WB_KIT_GROUP(cases);
