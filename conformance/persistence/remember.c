/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence kit: ids that are remembered for the outbox of another persistence.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/persistence/actor.h"
#include "conformance/persistence/apart.h"
#include "conformance/persistence/lost.h"
#include "core/base/arena.h"

/* ---- calls ------------------------------------------------------------------------------ */

static int try_remember(wb_client *client, const wb_claim *claims, size_t count)
{
    wb_error_clear(&client->error);
    return client->ops->remember(client->session, claims, count, &client->error);
}

static int remember_all(wb_client *client, const wb_claim *claims, size_t count)
{
    return wb_client_check(client, try_remember(client, claims, count), WB_OK, "remember");
}

static int remembers(wb_client *client, const char *id, uint64_t batch)
{
    const wb_claim claim = { id, strlen(id), batch };
    return remember_all(client, &claim, 1);
}

/* ---- remembered -------------------------------------------------------------------------- */

/* Also by who has just looked, and found nothing. */
static void found_at_once(wb_kit *kit)
{
    const wb_claim claims[] = { OF("order-1", WB_BATCH(1)), OF("order-2", WB_BATCH(2)) };
    const wb_claim all[] = { claims[0], claims[1], OF("order-3", 0) };
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 0);
    if (!a || !b || !wb_client_finds(a, "order-1", 0) || !wb_client_finds(b, "order-1", 0) || !remember_all(a, claims, 2))
        return;
    wb_client_find_all(b, all, 3);
    wb_client_find_all(a, all, 3);
}

static void first_is_kept(wb_kit *kit)
{
    const wb_claim again[] = { OF("order-0", WB_BATCH(2)), OF("order-1", WB_BATCH(2)), OF("order-2", WB_BATCH(2)) };
    const wb_claim expected[] = { again[0], OF("order-1", WB_BATCH(1)), again[2] };
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 0);
    if (!a || !b || !remembers(a, "order-1", WB_BATCH(1)) || !remember_all(b, again, 3) ||
        !remember_all(b, again, 3) || !remember_all(a, NULL, 0))
        return;
    wb_client_find_all(a, expected, 3);
}

static void found_by_another_instance(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !remembers(a, "order-1", WB_BATCH(1)))
        return;
    wb_client_close(a);
    wb_store *again = wb_store_again(kit, 0);
    wb_client *b = again ? wb_client_open_on(kit, again) : NULL;
    if (b)
        wb_client_finds(b, "order-1", WB_BATCH(1));
}

static void live_past_remember(wb_client *victim)
{
    (void)remembers(victim, "order-1", WB_BATCH(1));
}

static void killed_after_it(wb_kit *kit)
{
    wb_client *look = wb_client_open(kit, 0);
    if (look && wb_victim_run(kit, live_past_remember))
        wb_client_finds(look, "order-1", WB_BATCH(1));
}

/* Each second one, each of its own batch; and in another store the others. */
static void odd_ids_are_remembered(wb_kit *kit)
{
    for (size_t which = 0; which < WB_STORES; which++) {
        wb_claim all[ODD], half[ODD / 2];
        wb_client *a = wb_client_open(kit, which);
        wb_ids_make_odd(all);
        for (size_t i = 0; i < ODD / 2; i++) {
            all[2 * i + which].duplicate_of = WB_BATCH(i + 1);
            half[i] = all[2 * i + which];
        }
        if (a && remember_all(a, half, ODD / 2))
            wb_client_find_all(a, all, ODD);
    }
}

static void many_are_remembered(wb_kit *kit)
{
    wb_claim *claims = wb_ids_make_many(kit);
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 0);
    for (size_t i = 0; i < MANY; i++)
        claims[i].duplicate_of = WB_BATCH(i / 7 + 1);
    if (a && b && remember_all(a, claims, MANY))
        wb_client_find_all(b, claims, MANY);
}

static void endpoints_are_apart(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 1);
    if (!a || !b || !remembers(a, "order-1", WB_BATCH(1)) || !wb_client_finds(b, "order-1", 0) ||
        !remembers(b, "order-1", WB_BATCH(2)))
        return;
    wb_client_finds(a, "order-1", WB_BATCH(1));
    wb_client_finds(b, "order-1", WB_BATCH(2));
}

static void cleaned_up_by_age(wb_kit *kit)
{
    const wb_claim claims[] = { OF("order-1", WB_BATCH(1)), OF("order-2", WB_BATCH(3)), OF("order-3", WB_BATCH(2)),
                                OF("order-4", WB_BATCH(4)) };
    const wb_claim left[] = { OF("order-1", 0), claims[1], OF("order-3", 0), claims[3] };
    size_t deleted = 0;
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 0);
    if (!a || !b || !remember_all(a, claims, 4) ||
        !wb_client_check(b, wb_client_clean_up(b, WB_BATCH(3), 100, &deleted), WB_OK, "clean up"))
        return;
    wb_kit_check(kit, deleted == 2, "a clean-up of two says that it deleted %zu", deleted);
    wb_client_find_all(a, left, 4);
}

/* The longest there is; the tables of it stay, as those of the others do. */
static void under_the_longest_name(wb_kit *kit)
{
    char name[256];
    wb_error error = { 0 };
    wb_store *store = wb_alloc_zero(1, sizeof *store);
    wb_kit_defer(kit, free, store);
    wb_store_name(kit, 0, name, sizeof name);
    const size_t size = strlen(name);
    memset(name + size, 'n', WB_ENDPOINT_NAME_MAX - size);
    (void)snprintf(name + WB_ENDPOINT_NAME_MAX, sizeof name - WB_ENDPOINT_NAME_MAX, " dedup");
    int r = wb_store_try(kit, store, name, WB_DELAYS_BY_NOBODY, &error);
    if (r == WB_OK)
        r = store->ops->install(store->instance, &error);
    const int is_refused = wb_store_refuses(kit, name, r, &error);
    if (r == WB_OK)
        r = store->ops->verify(store->instance, &error);
    wb_client *a = NULL;
    if (wb_kit_check(kit, r == WB_OK || is_refused, "could not install and verify: %s", error.text) && !is_refused)
        a = wb_client_open_on(kit, store);
    if (a && remembers(a, "order-1", WB_BATCH(1)) && wb_client_finds(a, "order-1", WB_BATCH(1))) {
        size_t deleted;
        wb_client_check(a, wb_client_clean_up(a, WB_BATCH_END, 100, &deleted), WB_OK, "clean up");
    }
    if (a)
        wb_client_close(a);
    if (store->instance)
        store->ops->destroy(store->instance);
}

/* ---- at the same time -------------------------------------------------------------------- */

#define WORKERS 4
#define ROUNDS 12
#define IDS 64

typedef struct {
    wb_client *client;
    wb_claim claims[IDS];
    size_t count;
    int result;
} worker;

static void call_worker(void *argument)
{
    worker *w = argument;
    w->result = try_remember(w->client, w->claims, w->count);
}

/* All share most ids; of those that one leaves out the others have some. */
static void prepare(worker *w, char (*ids)[16], uint64_t batch, size_t left_out)
{
    w->count = 0;
    for (size_t i = 0; i < IDS; i++)
        if (i % 7 != left_out)
            w->claims[w->count++] = (wb_claim){ ids[i], strlen(ids[i]), batch };
}

static int has_remembered(const worker *w, const char *id, uint64_t batch)
{
    for (size_t i = 0; i < w->count; i++)
        if (w->claims[i].id == id)
            return w->claims[i].duplicate_of == batch;
    return 0;
}

static int check_round(wb_client *look, const worker *workers, char (*ids)[16])
{
    wb_claim found[IDS];
    for (size_t i = 0; i < IDS; i++)
        found[i] = (wb_claim){ ids[i], strlen(ids[i]), WB_NOT_ANSWERED };
    int good = wb_client_check(look, look->ops->find(look->session, found, IDS, &look->error), WB_OK, "find");
    for (size_t i = 0; good && i < IDS; i++) {
        int owners = 0;
        for (size_t n = 0; n < WORKERS; n++)
            owners += has_remembered(&workers[n], ids[i], found[i].duplicate_of);
        good = wb_kit_check(look->kit, owners == 1, "id \"%s\" has a record of %" PRIu64 ", which nobody gave it", ids[i],
                            found[i].duplicate_of);
    }
    return good;
}

static int run_round(wb_kit *kit, worker *workers, wb_actor *actors, size_t round)
{
    char ids[IDS][16];
    int good = 1;
    for (size_t i = 0; i < IDS; i++)
        (void)snprintf(ids[i], sizeof ids[i], "%03zu-%02zu", round, i);
    for (size_t n = 0; n < WORKERS; n++)
        prepare(&workers[n], ids, WB_BATCH(round * WORKERS + n + 1), n);
    for (size_t n = 0; n < WORKERS; n++)
        wb_actor_do(&actors[n], call_worker, &workers[n]);
    for (size_t n = 0; n < WORKERS; n++)
        wb_actor_await(kit, &actors[n]);
    for (size_t n = 0; n < WORKERS; n++)
        good = wb_client_check(workers[n].client, workers[n].result, WB_OK, "remember what others do, too") && good;
    return good && check_round(workers[0].client, workers, ids);
}

static void at_once(wb_kit *kit)
{
    static worker workers[WORKERS];
    wb_actor actors[WORKERS];
    for (size_t n = 0; n < WORKERS; n++)
        WB_KIT_REQUIRE(kit, (workers[n].client = wb_client_open(kit, 0)) != NULL, "there is no session");
    for (size_t n = 0; n < WORKERS; n++)
        wb_actor_start(&actors[n]);
    for (size_t round = 0; round < ROUNDS; round++)
        if (!run_round(kit, workers, actors, round))
            break;
    for (size_t n = 0; n < WORKERS; n++)
        wb_actor_stop(&actors[n]);
}

/* Nothing is left that others would wait for, or that would keep it from seeing them. */
static void leaves_nothing_open(wb_kit *kit)
{
    size_t deleted;
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 0);
    if (!a || !b)
        return;
    for (uint64_t n = 1; n <= 3; n++) {
        if (!remembers(a, "order-1", WB_BATCH(n)) || !remembers(b, "order-1", WB_BATCH(9)) ||
            !remembers(b, "order-2", WB_BATCH(n)) || !wb_client_finds(a, "order-2", WB_BATCH(n)) ||
            !wb_client_finds(b, "order-1", WB_BATCH(n)) ||
            !wb_client_check(b, wb_client_clean_up(b, WB_BATCH_END, 100, &deleted), WB_OK, "clean up"))
            return;
        wb_kit_check(kit, deleted == 2, "%zu of two records are cleaned up", deleted);
    }
}

/* ---- beside an outbox -------------------------------------------------------------------- */

static void claims_meet_it(wb_kit *kit)
{
    const wb_claim both[] = { OF("order-1", WB_BATCH(1)), OF("order-2", WB_BATCH(1)) };
    const wb_claim expected[] = { both[0], OF("order-2", WB_BATCH(2)) };
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !wb_client_stores(a, WB_BATCH(2), "order-2", PENDING) || !remember_all(a, both, 2))
        return;
    wb_client_find_all(a, expected, 2);
    wb_client_finds_owner(a, "order-1", 7, WB_BATCH(1));
    wb_client_finds_owner(a, "order-2", 7, WB_BATCH(2));
    wb_client_finds_pending(a, WB_BATCH(2), PENDING, PENDING_SIZE);
}

#define A_WHILE (300 * WB_MILLISECOND)

/* What its claim will be is not known yet. */
static void wait_for(wb_kit *kit, int is_committed)
{
    wb_claim claim = WB_CLAIM("order-1");
    wb_actor actor;
    wb_client *a = wb_client_open(kit, 0);
    worker call = { .client = wb_client_open(kit, 0), .claims = { OF("order-1", WB_BATCH(2)) }, .count = 1 };
    if (!a || !call.client || !wb_client_takes(a, WB_BATCH(1), &claim, 1))
        return;
    wb_actor_start(&actor);
    wb_actor_do(&actor, call_worker, &call);
    wb_kit_check(kit, !wb_actor_is_idle(&actor, A_WHILE), "to remember does not wait for who has claimed the id");
    int r = is_committed ? wb_client_commit(a, WB_BATCH(1), NULL, 0) : wb_client_rollback(a);
    wb_client_check(a, r, WB_OK, "end the first");
    wb_actor_await(kit, &actor);
    wb_actor_stop(&actor);
    if (wb_client_check(call.client, call.result, WB_OK, "remember"))
        wb_client_finds(a, "order-1", is_committed ? WB_BATCH(1) : WB_BATCH(2));
}

static void waits_for_commit(wb_kit *kit)
{
    wait_for(kit, 1);
}

static void waits_for_rollback(wb_kit *kit)
{
    wait_for(kit, 0);
}

/* ---- remembered, and the connection is lost ------------------------------------------------ */

static int remember_first(wb_client *client)
{
    return remembers(client, "order-1", WB_BATCH(1));
}

static int call_remember(wb_client *client)
{
    const wb_claim claims[] = { OF("order-1", WB_BATCH(2)), OF("order-2", WB_BATCH(2)), OF("order-3", WB_BATCH(3)) };
    return try_remember(client, claims, 3);
}

/* On its way it may still happen; made again it has happened in any case. */
static void check_remember(wb_client *look, int result, int is_sent)
{
    const wb_claim before[] = { OF("order-1", WB_BATCH(1)), OF("order-2", 0), OF("order-3", 0) };
    const wb_claim after[] = { before[0], OF("order-2", WB_BATCH(2)), OF("order-3", WB_BATCH(3)) };
    wb_client_find_all(look, before, 1);
    if (result == WB_OK)
        wb_client_find_all(look, after, 3);
    if (!is_sent)
        wb_client_find_all(look, before, 3);
    wb_client_check(look, call_remember(look), WB_OK, "remember again");
    wb_client_find_all(look, after, 3);
}

static const wb_lost_call of_remember = { remember_first, call_remember, WB_GONE_OR_UNKNOWN | WB_ONE_OF(WB_OK),
                                          check_remember };

static void cut_remember(wb_kit *kit)
{
    wb_lost_cut(kit, &of_remember);
}

static void remember_request(wb_kit *kit)
{
    wb_lost_lose(kit, &of_remember, WB_LOSE_REQUEST);
}

static void remember_reply(wb_kit *kit)
{
    wb_lost_lose(kit, &of_remember, WB_LOSE_REPLY);
}

static void remember_in_crash(wb_kit *kit)
{
    wb_lost_in_crash(kit, &of_remember, WB_CRASH_AT_REPLY);
}

#define REMEMBER WB_CAP_REMEMBER
#define BOTH (WB_CAP_OUTBOX | WB_CAP_REMEMBER)
static const wb_kit_case cases[] = {
    { "remember: an id is found by every session at once", REMEMBER, found_at_once },
    { "remember: an id that has a record keeps that", REMEMBER, first_is_kept },
    { "remember: an id is found by another instance, and later", REMEMBER, found_by_another_instance },
    { "remember: a process killed after it has remembered", REMEMBER, killed_after_it },
    { "remember: ids of all kinds, each of its batch", REMEMBER, odd_ids_are_remembered },
    { "remember: many in one call, of many batches", REMEMBER, many_are_remembered },
    { "remember: the same id is two ids for two endpoints", REMEMBER, endpoints_are_apart },
    { "remember: a clean-up deletes by age", REMEMBER, cleaned_up_by_age },
    { "remember: under the longest name of a store", REMEMBER, under_the_longest_name },
    { "remember: four sessions, the same ids at once", REMEMBER, at_once },
    { "remember: nothing is left open", REMEMBER, leaves_nothing_open },
    { "remember: claims meet it, and it keeps their records", BOTH, claims_meet_it },
    { "remember: it waits for the transaction that holds its id, which has it after its commit", BOTH,
      waits_for_commit },
    { "remember: it waits for the transaction that holds its id, and has it after its rollback", BOTH,
      waits_for_rollback },
    { "remember: the connection is cut before", REMEMBER, cut_remember },
    { "remember: the request is lost", REMEMBER, remember_request },
    { "remember: the reply is lost", REMEMBER, remember_reply },
    { "remember: crash: what was reported survives", REMEMBER, remember_in_crash },
};
const wb_kit_group wb_cases_remember = WB_KIT_GROUP(cases);
