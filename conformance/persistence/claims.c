/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence kit: claims. Who gets an id, who is told that it is a duplicate and of what,
 * and who waits.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/persistence/actor.h"
#include "conformance/persistence/persistence.h"
#include "core/base/arena.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void check_owners(wb_kit *kit, const wb_claim *claims, const uint64_t *owners, size_t count)
{
    for (size_t i = 0; i < count; i++)
        wb_kit_check(kit, claims[i].duplicate_of == owners[i],
                     "id \"%.*s\" is said to belong to batch %" PRIu64 " instead of %" PRIu64
                     " (0: ours)",
                     (int)claims[i].id_size, (const char *)claims[i].id, claims[i].duplicate_of,
                     owners[i]);
}

static void partly_duplicates(wb_kit *kit)
{
    wb_claim first[] = { WB_CLAIM("b"), WB_CLAIM("d") };
    wb_claim all[] = { WB_CLAIM("a"), WB_CLAIM("b"), WB_CLAIM("c"), WB_CLAIM("d"), WB_CLAIM("e") };
    const uint64_t owners[] = { 0, WB_BATCH(1), 0, WB_BATCH(1), WB_BATCH(2) };
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 0);
    if (!a || !b || !wb_client_takes(a, WB_BATCH(1), first, 2) ||
        !wb_client_check(a, wb_client_commit(a, WB_BATCH(1), NULL, 0), WB_OK, "commit") ||
        !wb_client_stores(a, WB_BATCH(2), "e", NULL) ||
        !wb_client_check(b, wb_client_begin(b, WB_BATCH(3), all, COUNT(all)), WB_OK, "begin"))
        return;
    check_owners(kit, all, owners, COUNT(all));
    wb_client_check(b, wb_client_commit(b, WB_BATCH(3), NULL, 0), WB_OK, "commit");
    wb_client_finds_owner(a, "a", 1, WB_BATCH(3));
    wb_client_finds_owner(a, "b", 1, WB_BATCH(1));
    wb_client_finds_owner(a, "e", 1, WB_BATCH(2));
}

/* ---- a thousand ------------------------------------------------------------------------ */

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
        (void)snprintf(all->ids[i], sizeof all->ids[i], "order-%05zu", i);
        all->claims[i] = (wb_claim){ all->ids[i], strlen(all->ids[i]), 0 };
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
    if (!a || !wb_client_takes(a, WB_BATCH(1), all->even, MANY / 2) ||
        !wb_client_check(a, wb_client_commit(a, WB_BATCH(1), NULL, 0), WB_OK, "commit") ||
        !wb_client_check(a, wb_client_begin(a, WB_BATCH(2), all->claims, MANY), WB_OK, "begin"))
        return;
    for (size_t i = 0; i < MANY; i++)
        wrong += all->claims[i].duplicate_of != (i % 2 ? 0 : WB_BATCH(1));
    wb_kit_check(kit, wrong == 0, "%zu of %d claims have the wrong answer", wrong, MANY);
    wb_client_check(a, wb_client_commit(a, WB_BATCH(2), NULL, 0), WB_OK, "commit");
    wb_client_check(a, wb_client_begin(a, WB_BATCH(3), all->claims, MANY), WB_OK, "begin");
    for (size_t i = 0; i < MANY; i++)
        wrong += all->claims[i].duplicate_of != WB_BATCH(1 + i % 2);
    wb_kit_check(kit, wrong == 0, "%zu of %d duplicates name the wrong batch", wrong, MANY);
    wb_client_check(a, wb_client_rollback(a), WB_OK, "roll back");
}

/* ---- giving back ----------------------------------------------------------------------- */

static void released_are_free(wb_kit *kit)
{
    wb_claim claims[] = { WB_CLAIM("a"), WB_CLAIM("b"), WB_CLAIM("c") };
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 0);
    if (!a || !b || !wb_client_takes(a, WB_BATCH(1), claims, 3))
        return;
    int r = wb_client_commit_releasing(a, WB_BATCH(1), "operations", 10, claims + 1, 2);
    wb_client_check(a, r, WB_OK, "commit and give claims back");
    wb_client_finds_owner(b, "a", 1, WB_BATCH(1));
    wb_client_finds_owner(b, "b", 1, 0);
    wb_client_finds_owner(b, "c", 1, 0);
    wb_client_finds_pending(b, WB_BATCH(1), "operations", 10);
    wb_client_stores(b, WB_BATCH(2), "b", NULL);
    wb_client_finds_owner(a, "b", 1, WB_BATCH(2));
}

static void all_are_released(wb_kit *kit)
{
    many *all = make_many(kit);
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !wb_client_takes(a, WB_BATCH(1), all->claims, MANY))
        return;
    int r = wb_client_commit_releasing(a, WB_BATCH(1), NULL, 0, all->claims, MANY);
    wb_client_check(a, r, WB_OK, "commit and give all claims back");
    if (wb_client_takes(a, WB_BATCH(2), all->claims, MANY))
        wb_client_check(a, wb_client_rollback(a), WB_OK, "roll back");
}

/* ---- batch numbers --------------------------------------------------------------------- */

static void numbers_are_exact(wb_kit *kit)
{
    static const uint64_t numbers[] = { 1, 4194304, INT32_MAX, UINT32_MAX, UINT64_C(1) << 53,
                                        (UINT64_C(1) << 53) + 1, INT64_MAX - 1 };
    wb_client *a = wb_client_open(kit, 0);
    WB_KIT_REQUIRE(kit, a != NULL, "there is no session");
    for (size_t i = 0; i < COUNT(numbers); i++) {
        char id[24];
        int size = snprintf(id, sizeof id, "%zu", i);
        if (!wb_client_stores(a, numbers[i], id, "operations"))
            return;
        wb_client_finds_owner(a, id, (size_t)size, numbers[i]);
        wb_client_finds_pending(a, numbers[i], "operations", 10);
    }
}

/* Nothing can be below its bound: its claim is given back, so that the store can be emptied. */
static void largest_number(wb_kit *kit)
{
    wb_claim claim = WB_CLAIM("last");
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !wb_client_stores(a, INT64_MAX, "last", "operations"))
        return;
    wb_client_finds_owner(a, "last", 4, INT64_MAX);
    wb_client_finds_pending(a, INT64_MAX, "operations", 10);
    wb_client_check(a, wb_client_mark(a, INT64_MAX, NULL, 0), WB_OK, "mark");
    wb_client_finds_pending(a, INT64_MAX, NULL, 0);
    wb_client_check(a, wb_client_begin(a, INT64_MAX, &claim, 1), WB_OK, "begin");
    int r = wb_client_commit_releasing(a, INT64_MAX, NULL, 0, &claim, 1);
    wb_client_check(a, r, WB_OK, "give the claim back");
    wb_client_finds_owner(a, "last", 4, 0);
}

/* ---- two endpoints --------------------------------------------------------------------- */

static void endpoints_are_apart(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 1);
    if (!a || !b || !wb_client_stores(a, WB_BATCH(1), "order-1", "of the first"))
        return;
    wb_client_finds_owner(b, "order-1", 7, 0);
    wb_client_finds_pending(b, WB_BATCH(1), NULL, 0);
    wb_client_stores(b, WB_BATCH(1), "order-1", "of the second");
    wb_client_check(b, wb_client_mark(b, WB_BATCH(1), NULL, 0), WB_OK, "mark");
    wb_client_finds_pending(a, WB_BATCH(1), "of the first", 12);
    wb_client_empties(b);
    wb_client_finds_owner(a, "order-1", 7, WB_BATCH(1));
}

/* ---- waiting --------------------------------------------------------------------------- */

/* Long enough for a claim that does not wait to return. It is counted in looks of a third
 * session, one after the other: what holds up the server or the machine holds up both. */
#define LOOKS 10
#define BETWEEN_LOOKS (20 * WB_MILLISECOND)

typedef struct {
    wb_client *client;
    wb_claim claim;
    int result;
} waiting;

static void claim_one(void *argument)
{
    waiting *one = argument;
    one->result = wb_client_begin(one->client, WB_BATCH(2), &one->claim, 1);
}

/* Where it was begun: a store may want a transaction to stay with its thread. */
static void roll_back_one(void *argument)
{
    waiting *one = argument;
    if (one->result == WB_OK)
        (void)wb_client_check(one->client, wb_client_rollback(one->client), WB_OK, "roll back");
}

static int commit_first(wb_client *a)
{
    return wb_client_commit(a, WB_BATCH(1), "operations", 10);
}

static int release_first(wb_client *a)
{
    const wb_claim claim = WB_CLAIM("order-1");
    return wb_client_commit_releasing(a, WB_BATCH(1), NULL, 0, &claim, 1);
}

static int close_first(wb_client *a)
{
    wb_client_close(a);
    return WB_OK;
}

static int comes_back_early(wb_actor *actor, wb_client *neighbour)
{
    const uint64_t batch = WB_BATCH(3);
    wb_found found;
    int is_early = 0;
    for (int i = 0; i < LOOKS && !is_early; i++) {
        if (wb_client_check(neighbour, wb_client_pending(neighbour, &batch, 1, &found), WB_OK, "look"))
            free(found.operations);
        is_early = wb_actor_is_idle(actor, BETWEEN_LOOKS);
    }
    return is_early;
}

/* A second client claims what a first one holds; then the first one ends its transaction. */
static void wait_for(wb_kit *kit, int (*end)(wb_client *), uint64_t owner)
{
    wb_claim held = WB_CLAIM("order-1");
    wb_actor actor;
    wb_client *a = wb_client_open(kit, 0), *neighbour = wb_client_open(kit, 0);
    waiting second = { wb_client_open(kit, 0), WB_CLAIM("order-1"), WB_OK };
    if (!a || !neighbour || !second.client || !wb_client_takes(a, WB_BATCH(1), &held, 1))
        return;
    wb_actor_start(&actor);
    wb_actor_do(&actor, claim_one, &second);
    int is_early = comes_back_early(&actor, neighbour);
    int r = end(a);
    wb_actor_await(kit, &actor);
    wb_actor_do(&actor, roll_back_one, &second);
    wb_actor_await(kit, &actor);
    wb_actor_stop(&actor);
    wb_kit_check(kit, !is_early, "a claim that another open transaction holds did not wait: %s",
                 wb_result_name(second.result));
    wb_client_check(a, r, WB_OK, "end the first transaction");
    if (wb_client_check(second.client, second.result, WB_OK, "begin"))
        check_owners(kit, &second.claim, &owner, 1);
}

static void waits_for_commit(wb_kit *kit)
{
    wait_for(kit, commit_first, WB_BATCH(1));
}

static void waits_for_rollback(wb_kit *kit)
{
    wait_for(kit, wb_client_rollback, 0);
}

static void waits_for_release(wb_kit *kit)
{
    wait_for(kit, release_first, 0);
}

static void waits_for_close(wb_kit *kit)
{
    wait_for(kit, close_first, 0);
}

#define OUTBOX WB_CAP_OUTBOX
static const wb_kit_case cases[] = {
    { "a batch may be partly duplicates, each of its own batch", OUTBOX, partly_duplicates },
    { "a batch claims a thousand ids", OUTBOX, a_thousand },
    { "claims given back can be claimed again, the others cannot", OUTBOX, released_are_free },
    { "a batch may give back all its thousand claims", OUTBOX, all_are_released },
    { "batch numbers come back as they are", OUTBOX, numbers_are_exact },
    { "the largest positive batch number works", OUTBOX, largest_number },
    { "the same id is two ids for two endpoints", OUTBOX, endpoints_are_apart },
    { "a claim waits for the transaction that holds it, a duplicate after its commit", OUTBOX,
      waits_for_commit },
    { "a claim waits for the transaction that holds it, ours after its rollback", OUTBOX,
      waits_for_rollback },
    { "a claim waits for the transaction that holds it, ours when it was given back", OUTBOX,
      waits_for_release },
    { "a claim waits for the transaction that holds it, ours when its session is closed", OUTBOX,
      waits_for_close },
};
const wb_kit_group wb_cases_claims = WB_KIT_GROUP(cases);
