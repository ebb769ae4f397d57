/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence kit: records that are forgotten once their operations are dispatched and another persistence
 * remembers their ids.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "conformance/persistence/apart.h"
#include "conformance/persistence/lost.h"
#include "core/base/arena.h"

/* ---- calls ------------------------------------------------------------------------------ */

static int try_forget(wb_client *client, const wb_claim *claims, size_t count)
{
    wb_error_clear(&client->error);
    return client->ops->forget(client->session, claims, count, &client->error);
}

static int forget_all(wb_client *client, const wb_claim *claims, size_t count)
{
    return wb_client_check(client, try_forget(client, claims, count), WB_OK, "forget");
}

static int begin_forgetting(wb_client *client, const wb_begin *like)
{
    wb_begin begin = *like;
    begin.struct_size = sizeof begin;
    wb_error_clear(&client->error);
    return wb_client_check(client, client->ops->begin(client->session, &begin, &client->error), WB_OK, "begin");
}

/* ---- forgotten --------------------------------------------------------------------------- */

static void forgotten_is_new(wb_kit *kit)
{
    const wb_claim claim = OF("order-1", WB_BATCH(1));
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 0);
    if (!a || !b || !wb_client_stores(a, WB_BATCH(1), "order-1", NULL) || !forget_all(a, &claim, 1))
        return;
    wb_client_finds_owner(b, "order-1", 7, 0);
    if (wb_client_stores(b, WB_BATCH(2), "order-1", NULL))
        wb_client_finds_owner(a, "order-1", 7, WB_BATCH(2));
}

/* Whoever claims an id behind one that was forgotten keeps it, though that is forgotten again. */
static void only_of_that_batch(wb_kit *kit)
{
    const wb_claim claims[] = { OF("order-1", WB_BATCH(2)), OF("order-2", WB_BATCH(2)) };
    wb_client *a = wb_client_open(kit, 0), *other = wb_client_open(kit, 1);
    if (!a || !other || !wb_client_stores(a, WB_BATCH(1), "order-1", PENDING) ||
        !wb_client_stores(a, WB_BATCH(2), "order-2", PENDING) ||
        !wb_client_stores(other, WB_BATCH(2), "order-2", NULL) || !forget_all(a, claims, 2))
        return;
    wb_client_finds_owner(a, "order-1", 7, WB_BATCH(1));
    wb_client_finds_owner(a, "order-2", 7, 0);
    wb_client_finds_owner(other, "order-2", 7, WB_BATCH(2));
    wb_client_finds_pending(a, WB_BATCH(2), PENDING, PENDING_SIZE);
}

/* What was forgotten and claimed again is as old as its new number. */
static void cleaned_up_by_its_new_number(wb_kit *kit)
{
    const wb_claim claim = OF("order-1", WB_BATCH(1));
    size_t deleted;
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !wb_client_stores(a, WB_BATCH(1), "order-1", NULL) || !forget_all(a, &claim, 1) ||
        !wb_client_stores(a, WB_BATCH(9), "order-1", NULL) ||
        !wb_client_check(a, wb_client_clean_up(a, WB_BATCH(9), 100, &deleted), WB_OK, "clean up"))
        return;
    wb_kit_check(kit, deleted == 0, "%zu records are said to be deleted instead of 0", deleted);
    wb_client_finds_owner(a, "order-1", 7, WB_BATCH(9));
}

static void absent_is_no_error(wb_kit *kit)
{
    const wb_claim claims[] = { OF("order-1", WB_BATCH(1)), OF("order-2", WB_BATCH(1)), OF("order-3", WB_BATCH(7)) };
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !wb_client_stores(a, WB_BATCH(1), "order-2", NULL) || !forget_all(a, NULL, 0) || !forget_all(a, claims, 3) ||
        !forget_all(a, claims, 3))
        return;
    wb_client_finds_owner(a, "order-2", 7, 0);
}

/* Each second one, under two batches: its neighbours are there still. */
static void odd_ids_are_forgotten(wb_kit *kit)
{
    wb_claim all[ODD], half[ODD / 2];
    wb_client *a = wb_client_open(kit, 0);
    wb_ids_make_odd(all);
    if (!a || !wb_client_takes(a, WB_BATCH(1), all, ODD) ||
        !wb_client_check(a, wb_client_commit(a, WB_BATCH(1), NULL, 0), WB_OK, "commit"))
        return;
    for (size_t i = 0; i < ODD / 2; i++) {
        half[i] = all[2 * i];
        half[i].duplicate_of = WB_BATCH(1);
    }
    if (!forget_all(a, half, ODD / 2))
        return;
    for (size_t i = 0; i < ODD; i++)
        wb_client_finds_owner(a, all[i].id, all[i].id_size, i % 2 ? WB_BATCH(1) : 0);
}

static int store_many(wb_client *client, wb_claim *claims, uint64_t first, size_t batches)
{
    const size_t each = MANY / batches;
    for (size_t i = 0; i < batches; i++)
        if (!wb_client_takes(client, first + i, claims + i * each, each) ||
            !wb_client_check(client, wb_client_commit(client, first + i, NULL, 0), WB_OK, "commit"))
            return 0;
    for (size_t i = 0; i < MANY; i++)
        claims[i].duplicate_of = first + i / each;
    return 1;
}

static size_t count_new(const wb_claim *claims, size_t count)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        found += claims[i].duplicate_of == 0;
    return found;
}

static void many_are_forgotten(wb_kit *kit)
{
    wb_claim *claims = wb_ids_make_many(kit);
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !store_many(a, claims, WB_BATCH(1), 3) || !forget_all(a, claims, MANY - 1) ||
        !wb_client_check(a, wb_client_begin(a, WB_BATCH(9), claims, MANY), WB_OK, "begin"))
        return;
    wb_kit_check(kit, count_new(claims, MANY) == MANY - 1 && claims[MANY - 1].duplicate_of == WB_BATCH(3),
                 "%zu of %d ids were forgotten, and one was not to be", count_new(claims, MANY), MANY);
    wb_client_check(a, wb_client_rollback(a), WB_OK, "roll back");
}

/* Beside a mark and a claim, as it is from batch to batch. */
static wb_client *begin_third(wb_kit *kit, wb_client **ret_look)
{
    const wb_mark mark = { WB_BATCH(1), NULL, 0 };
    const wb_claim gone[] = { OF("order-1", WB_BATCH(1)), OF("order-2", WB_BATCH(2)) };
    wb_claim claim = WB_CLAIM("order-3");
    wb_client *a = wb_client_open(kit, 0);
    *ret_look = wb_client_open(kit, 0);
    if (!a || !*ret_look || !wb_client_stores(a, WB_BATCH(1), "order-1", PENDING) ||
        !wb_client_stores(a, WB_BATCH(2), "order-2", NULL) ||
        !begin_forgetting(a, &(wb_begin){ .marks = &mark, .mark_count = 1, .batch = WB_BATCH(3), .claims = &claim,
                                          .claim_count = 1, .forgotten = gone, .forgotten_count = 2 }))
        return NULL;
    return wb_kit_check(kit, claim.duplicate_of == 0, "an id that nobody had is said to be a duplicate") ? a : NULL;
}

static void check_third(wb_client *look, uint64_t owner)
{
    wb_client_finds_owner_soon(look, "order-1", 7, 0);
    wb_client_finds_owner_soon(look, "order-2", 7, 0);
    wb_client_finds_owner_soon(look, "order-3", 7, owner);
    wb_client_finds_pending(look, WB_BATCH(1), NULL, 0);
}

static void with_a_commit(wb_kit *kit)
{
    wb_client *look, *a = begin_third(kit, &look);
    if (a && wb_client_check(a, wb_client_commit(a, WB_BATCH(3), NULL, 0), WB_OK, "commit"))
        check_third(look, WB_BATCH(3));
}

static void with_a_rollback(wb_kit *kit)
{
    wb_client *look, *a = begin_third(kit, &look);
    if (a && wb_client_check(a, wb_client_rollback(a), WB_OK, "roll back"))
        check_third(look, 0);
}

static void with_a_close(wb_kit *kit)
{
    wb_client *look, *a = begin_third(kit, &look);
    if (!a)
        return;
    wb_client_close(a);
    check_third(look, 0);
}

static void alone_in_begin(wb_kit *kit)
{
    const wb_claim gone = OF("order-1", WB_BATCH(1));
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !wb_client_stores(a, WB_BATCH(1), "order-1", PENDING) ||
        !begin_forgetting(a, &(wb_begin){ .forgotten = &gone, .forgotten_count = 1 }) ||
        !wb_client_check(a, wb_client_rollback(a), WB_OK, "roll back"))
        return;
    wb_client_finds_owner(a, "order-1", 7, 0);
    wb_client_finds_pending(a, WB_BATCH(1), PENDING, PENDING_SIZE);
}

/* What was forgotten comes again at once. */
static void claimed_in_the_same_begin(wb_kit *kit)
{
    const wb_claim gone = OF("order-1", WB_BATCH(1));
    wb_claim claims[] = { WB_CLAIM("order-1"), WB_CLAIM("order-2") };
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !wb_client_stores(a, WB_BATCH(1), "order-1", NULL) || !wb_client_stores(a, WB_BATCH(2), "order-2", NULL) ||
        !begin_forgetting(a, &(wb_begin){ .batch = WB_BATCH(3), .claims = claims, .claim_count = 2, .forgotten = &gone,
                                          .forgotten_count = 1 }))
        return;
    wb_kit_check(kit, claims[0].duplicate_of == 0, "what is forgotten is still a duplicate");
    wb_kit_check(kit, claims[1].duplicate_of == WB_BATCH(2), "what is not forgotten is no duplicate");
    if (wb_client_check(a, wb_client_commit(a, WB_BATCH(3), NULL, 0), WB_OK, "commit"))
        wb_client_finds_owner(a, "order-1", 7, WB_BATCH(3));
}

/* ---- forgotten, and the connection is lost ------------------------------------------------ */

static int store_two(wb_client *client)
{
    return wb_client_stores(client, WB_BATCH(1), "order-1", NULL) &&
           wb_client_stores(client, WB_BATCH(2), "order-2", NULL);
}

static int call_forget(wb_client *client)
{
    const wb_claim claim = OF("order-1", WB_BATCH(1));
    return try_forget(client, &claim, 1);
}

static void check_forget(wb_client *look, int result, int is_sent)
{
    if (!is_sent)
        wb_client_finds_owner_soon(look, "order-1", 7, WB_BATCH(1));
    if (result == WB_OK)
        wb_client_finds_owner_soon(look, "order-1", 7, 0);
    wb_client_check(look, call_forget(look), WB_OK, "forget again");
    wb_client_finds_owner_soon(look, "order-1", 7, 0);
    wb_client_finds_owner_soon(look, "order-2", 7, WB_BATCH(2));
}

static const wb_lost_call of_forget = { store_two, call_forget, WB_GONE_OR_UNKNOWN | WB_ONE_OF(WB_OK), check_forget };

static void cut_forget(wb_kit *kit)
{
    wb_lost_cut(kit, &of_forget);
}

static void forget_request(wb_kit *kit)
{
    wb_lost_lose(kit, &of_forget, WB_LOSE_REQUEST);
}

static void forget_reply(wb_kit *kit)
{
    wb_lost_lose(kit, &of_forget, WB_LOSE_REPLY);
}

#define FORGET (WB_CAP_OUTBOX | WB_CAP_FORGET)
static const wb_kit_case cases[] = {
    { "forget: what is forgotten is new when it is claimed again", FORGET, forgotten_is_new },
    { "forget: only the record of that batch goes, and nothing else of it", FORGET, only_of_that_batch },
    { "forget: a clean-up keeps what was claimed again", FORGET, cleaned_up_by_its_new_number },
    { "forget: what is not there is no error", FORGET, absent_is_no_error },
    { "forget: ids of all kinds", FORGET, odd_ids_are_forgotten },
    { "forget: many in one call, of several batches", FORGET, many_are_forgotten },
    { "forget: in begin(), with marks and claims, and a commit", FORGET, with_a_commit },
    { "forget: in begin(), it stands after a rollback", FORGET, with_a_rollback },
    { "forget: in begin(), it stands when the session is closed", FORGET, with_a_close },
    { "forget: in begin(), without a batch and without marks", FORGET, alone_in_begin },
    { "forget: in begin(), what is claimed there again is new", FORGET, claimed_in_the_same_begin },
    { "forget: the connection is cut before", FORGET, cut_forget },
    { "forget: the request is lost", FORGET, forget_request },
    { "forget: the reply is lost", FORGET, forget_reply },
};
const wb_kit_group wb_cases_forget = WB_KIT_GROUP(cases);
