/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence kit: how far partitions are done with.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/persistence/actor.h"
#include "conformance/persistence/lost.h"
#include "conformance/persistence/persistence.h"
#include "core/base/arena.h"

#define PENDING "pending"
/* How long who waits is watched. */
#define A_WHILE (300 * WB_MILLISECOND)

#define PARTITION(text, to) ((wb_position){ (text), sizeof(text) - 1, (to), WB_NOT_ANSWERED, WB_NOT_ANSWERED })

static int begin_with(wb_client *client, uint64_t batch, wb_position *positions, size_t count, wb_claim *claims,
                      size_t claim_count)
{
    wb_begin begin = { .struct_size = sizeof begin,
                       .batch = batch,
                       .claims = claims,
                       .claim_count = claim_count,
                       .positions = positions,
                       .position_count = count };
    wb_error_clear(&client->error);
    return client->ops->begin(client->session, &begin, &client->error);
}

static int begins(wb_client *client, uint64_t batch, wb_position *positions, size_t count)
{
    return wb_client_check(client, begin_with(client, batch, positions, count, NULL, 0), WB_OK, "begin");
}

static int commit_back(wb_client *client, uint64_t batch, const wb_position *back, size_t count)
{
    wb_commit commit = { .struct_size = sizeof commit, .batch = batch, .positions = back, .position_count = count };
    wb_error_clear(&client->error);
    return client->ops->commit(client->session, &commit, &client->error);
}

static int commits(wb_client *client, uint64_t batch)
{
    return wb_client_check(client, wb_client_commit(client, batch, NULL, 0), WB_OK, "commit");
}

static int is_at(wb_client *client, const wb_position *position, uint64_t found, uint64_t batch)
{
    return wb_kit_check(client->kit, position->found == found && position->batch == batch,
                        "\"%.*s\" is said to be at %" PRIu64 " by batch %" PRIu64 ", not at %" PRIu64 " by %" PRIu64,
                        (int)position->partition_size, (const char *)position->partition, position->found,
                        position->batch, found, batch);
}

/* By a transaction that moves nothing and is rolled back. */
static int finds_named(wb_client *client, const void *partition, size_t size, uint64_t found, uint64_t batch)
{
    wb_position look = { partition, size, 0, WB_NOT_ANSWERED, WB_NOT_ANSWERED };
    return begins(client, WB_BATCH_OF_LOOKS, &look, 1) &&
           wb_client_check(client, wb_client_rollback(client), WB_OK, "roll back") && is_at(client, &look, found, batch);
}

#define FINDS(client, text, found, batch) finds_named((client), (text), sizeof(text) - 1, (found), (batch))

static int moves(wb_client *client, uint64_t batch, uint64_t to)
{
    wb_position position = PARTITION("orders/0", to);
    return begins(client, batch, &position, 1) && commits(client, batch);
}

/* Rows stay over the cases: each begins without. */
static wb_client *open_empty(wb_kit *kit, size_t which)
{
    size_t count;
    wb_client *client = wb_client_open(kit, which);
    if (!client)
        return NULL;
    int r = client->ops->forget_positions(client->session, &count, &client->error);
    return wb_client_check(client, r, WB_OK, "forget positions") ? client : NULL;
}

/* ---- one after the other ----------------------------------------------------------------- */

static void moved_with_all(wb_kit *kit)
{
    wb_client *a = open_empty(kit, 0), *b = wb_client_open(kit, 0);
    wb_position first = PARTITION("orders/0", 10), next = PARTITION("orders/0", 12);
    if (!a || !b || !begins(a, WB_BATCH(1), &first, 1) || !is_at(a, &first, 0, 0) || !commits(a, WB_BATCH(1)) ||
        !FINDS(b, "orders/0", 10, WB_BATCH(1)) || !begins(b, WB_BATCH(2), &next, 1) ||
        !is_at(b, &next, 10, WB_BATCH(1)) || !commits(b, WB_BATCH(2)))
        return;
    FINDS(a, "orders/0", 12, WB_BATCH(2));
}

static void rolled_back_stays(wb_kit *kit)
{
    wb_client *a = open_empty(kit, 0);
    wb_position first = PARTITION("orders/0", 10), next = PARTITION("orders/0", 20);
    if (!a || !begins(a, WB_BATCH(1), &first, 1) ||
        !wb_client_check(a, wb_client_rollback(a), WB_OK, "roll back") || !FINDS(a, "orders/0", 0, 0) ||
        !moves(a, WB_BATCH(2), 10) || !begins(a, WB_BATCH(3), &next, 1) ||
        !wb_client_check(a, wb_client_rollback(a), WB_OK, "roll back"))
        return;
    FINDS(a, "orders/0", 10, WB_BATCH(2));
}

/* All of the batch came before: the row stays that of who has moved it. */
static void lower_moves_nothing(wb_kit *kit)
{
    wb_client *a = open_empty(kit, 0);
    wb_position lower = PARTITION("orders/0", 7), same = PARTITION("orders/0", 10);
    if (!a || !moves(a, WB_BATCH(1), 10) || !begins(a, WB_BATCH(2), &lower, 1) ||
        !is_at(a, &lower, 10, WB_BATCH(1)) || !commits(a, WB_BATCH(2)) || !begins(a, WB_BATCH(3), &same, 1) ||
        !commits(a, WB_BATCH(3)))
        return;
    FINDS(a, "orders/0", 10, WB_BATCH(1));
}

/* With the commit; or later, when a handler had committed it: by a transaction that began under another number. */
static void set_back_in_part(wb_kit *kit)
{
    wb_client *a = open_empty(kit, 0);
    wb_position to = PARTITION("orders/0", 20);
    const wb_position part = { "orders/0", 8, 14, 0, WB_BATCH(2) }, less = { "orders/0", 8, 12, 0, WB_BATCH(2) };
    if (!a || !moves(a, WB_BATCH(1), 10) || !begins(a, WB_BATCH(2), &to, 1) ||
        !wb_client_check(a, commit_back(a, WB_BATCH(2), &part, 1), WB_OK, "commit and set back") ||
        !FINDS(a, "orders/0", 14, WB_BATCH(2)) || !begins(a, WB_BATCH(3), NULL, 0) ||
        !wb_client_check(a, commit_back(a, WB_BATCH(2), &less, 1), WB_OK, "set back later"))
        return;
    FINDS(a, "orders/0", 12, WB_BATCH(2));
}

static void set_back_whole(wb_kit *kit)
{
    wb_client *a = open_empty(kit, 0);
    wb_position to = PARTITION("orders/0", 20), fresh = PARTITION("orders/1", 5);
    const wb_position whole = { "orders/0", 8, 10, 0, WB_BATCH(1) }, none = { "orders/1", 8, 0, 0, 0 };
    if (!a || !moves(a, WB_BATCH(1), 10) || !begins(a, WB_BATCH(2), &to, 1) ||
        !wb_client_check(a, commit_back(a, WB_BATCH(2), &whole, 1), WB_OK, "commit and set back") ||
        !FINDS(a, "orders/0", 10, WB_BATCH(1)) || !begins(a, WB_BATCH(3), &fresh, 1) ||
        !wb_client_check(a, commit_back(a, WB_BATCH(3), &none, 1), WB_OK, "commit and set back"))
        return;
    FINDS(a, "orders/1", 0, 0);
}

/* Somebody else has moved it meanwhile: it is not the batch's any more. */
static void set_back_others_stay(wb_kit *kit)
{
    wb_client *a = open_empty(kit, 0);
    const wb_position back = { "orders/0", 8, 3, 0, WB_BATCH(1) };
    if (!a || !moves(a, WB_BATCH(1), 10) || !moves(a, WB_BATCH(2), 20) || !begins(a, WB_BATCH(3), NULL, 0) ||
        !wb_client_check(a, commit_back(a, WB_BATCH(1), &back, 1), WB_OK, "commit and set back"))
        return;
    FINDS(a, "orders/0", 20, WB_BATCH(2));
}

static void several_are_apart(wb_kit *kit)
{
    wb_client *a = open_empty(kit, 0), *b = open_empty(kit, 1);
    wb_position both[] = { PARTITION("orders/0", 10), PARTITION("orders/1", 30) };
    wb_position again[] = { PARTITION("orders/0", 9), PARTITION("orders/1", 31), PARTITION("orders/10", 1) };
    if (!a || !b || !begins(a, WB_BATCH(1), both, 2) || !commits(a, WB_BATCH(1)) ||
        !FINDS(b, "orders/0", 0, 0) || !begins(a, WB_BATCH(2), again, 3) ||
        !is_at(a, &again[0], 10, WB_BATCH(1)) || !is_at(a, &again[1], 30, WB_BATCH(1)) || !is_at(a, &again[2], 0, 0) ||
        !commits(a, WB_BATCH(2)))
        return;
    FINDS(a, "orders/0", 10, WB_BATCH(1));
    FINDS(a, "orders/1", 31, WB_BATCH(2));
    FINDS(a, "orders/10", 1, WB_BATCH(2));
}

/* Any bytes are a name, long ones too; and the largest position. */
static void names_and_numbers(wb_kit *kit)
{
    char name[300];
    wb_client *a = open_empty(kit, 0);
    memset(name, 'T', sizeof name);
    name[3] = '\0';
    name[4] = '\'';
    name[5] = '\\';
    name[299] = (char)0xff;
    wb_position long_one = { name, sizeof name, INT64_MAX, 0, 0 };
    if (!a || !begins(a, WB_BATCH(1), &long_one, 1) || !commits(a, WB_BATCH(1)) ||
        !finds_named(a, name, sizeof name, INT64_MAX, WB_BATCH(1)))
        return;
    name[299] = (char)0xfe;
    finds_named(a, name, sizeof name, 0, 0);
    FINDS(a, "t", 0, 0);
}

/* A number that is used again after a commit in doubt makes a persistence begin anew. */
static void beside_ids(wb_kit *kit)
{
    wb_client *a = open_empty(kit, 0);
    wb_claim old = WB_CLAIM("a"), both[] = { WB_CLAIM("a"), WB_CLAIM("b") };
    wb_position first = PARTITION("orders/0", 10), next = PARTITION("orders/0", 12);
    if (!a || !wb_client_check(a, begin_with(a, WB_BATCH(1), &first, 1, &old, 1), WB_OK, "begin") ||
        !commits(a, WB_BATCH(1)) ||
        !wb_client_check(a, begin_with(a, WB_BATCH(1), &next, 1, both, 2), WB_OK, "begin") ||
        !is_at(a, &next, 10, WB_BATCH(1)))
        return;
    wb_kit_check(kit, both[0].duplicate_of == WB_BATCH(1) && both[1].duplicate_of == 0, "ids have wrong answers");
    if (!commits(a, WB_BATCH(1)))
        return;
    FINDS(a, "orders/0", 12, WB_BATCH(1));
    wb_client_finds_owner(a, "b", 1, WB_BATCH(1));
}

/* ---- all of them ------------------------------------------------------------------------- */

typedef struct {
    size_t count;
    uint64_t sum;
} seen;

static int see(void *argument, const wb_position *position)
{
    seen *all = argument;
    all->count += position->partition_size == 8 && memcmp(position->partition, "orders/", 7) == 0 && position->batch;
    all->sum += position->found;
    return WB_OK;
}

static void listed_and_forgotten(wb_kit *kit)
{
    seen all = { 0 };
    size_t count = 0;
    wb_client *a = open_empty(kit, 0);
    wb_position both[] = { PARTITION("orders/0", 10), PARTITION("orders/1", 30) };
    if (!a || !begins(a, WB_BATCH(1), both, 2) || !commits(a, WB_BATCH(1)))
        return;
    wb_client_check(a, a->ops->positions(a->session, see, &all, &a->error), WB_OK, "visit positions");
    wb_kit_check(kit, all.count == 2 && all.sum == 40, "%zu partitions are visited, and their sum is %" PRIu64,
                 all.count, all.sum);
    wb_client_check(a, a->ops->forget_positions(a->session, &count, &a->error), WB_OK, "forget positions");
    wb_kit_check(kit, count == 2, "%zu rows are said to be forgotten, not 2", count);
    FINDS(a, "orders/0", 0, 0);
}

/* ---- at the same time -------------------------------------------------------------------- */

typedef struct {
    wb_client *client;
    wb_position position;
    int result;
    int is_committed;
} late_call;

static void begin_late(void *argument)
{
    late_call *call = argument;
    call->result = begin_with(call->client, WB_BATCH(3), &call->position, 1, NULL, 0);
    if (call->result == WB_ABORT) /* of two who make a row one may have to try again */
        call->result = begin_with(call->client, WB_BATCH(3), &call->position, 1, NULL, 0);
}

static void commit_late(void *argument)
{
    late_call *call = argument;
    call->is_committed = call->result == WB_OK && commits(call->client, WB_BATCH(3));
}

/* Both have messages 10 and 11 of the partition in hand: the one who comes second waits, and sees whether
 * they are done with. */
static void wait_for(wb_kit *kit, int has_row, int is_committed)
{
    wb_actor actor;
    wb_client *a = open_empty(kit, 0), *b = wb_client_open(kit, 0);
    wb_position first = PARTITION("orders/0", 12);
    late_call call = { b, PARTITION("orders/0", 13), WB_OK, 0 };
    if (!a || !b || (has_row && !moves(a, WB_BATCH(1), 10)) || !begins(a, WB_BATCH(2), &first, 1))
        return;
    wb_actor_start(&actor);
    wb_actor_do(&actor, begin_late, &call);
    wb_kit_check(kit, !wb_actor_is_idle(&actor, A_WHILE), "a begin does not wait for who has moved its partition");
    int r = is_committed ? wb_client_commit(a, WB_BATCH(2), NULL, 0) : wb_client_rollback(a);
    wb_client_check(a, r, WB_OK, "end the first");
    wb_actor_await(kit, &actor);
    wb_actor_do(&actor, commit_late, &call); /* on the thread that began */
    wb_actor_await(kit, &actor);
    wb_actor_stop(&actor);
    if (!wb_client_check(b, call.result, WB_OK, "begin the second"))
        return;
    is_at(b, &call.position, is_committed ? 12 : has_row ? 10 : 0,
          is_committed ? WB_BATCH(2) : has_row ? WB_BATCH(1) : 0);
    if (call.is_committed)
        FINDS(a, "orders/0", 13, WB_BATCH(3));
}

static void waits_for_commit(wb_kit *kit)
{
    wait_for(kit, 1, 1);
}

static void waits_for_rollback(wb_kit *kit)
{
    wait_for(kit, 1, 0);
}

static void waits_for_first_commit(wb_kit *kit)
{
    wait_for(kit, 0, 1);
}

static void waits_for_first_rollback(wb_kit *kit)
{
    wait_for(kit, 0, 0);
}

/* ---- the connection is lost -------------------------------------------------------------- */

static int begins_to_lose(wb_client *client)
{
    size_t count;
    wb_position position = PARTITION("orders/0", 10);
    return wb_client_check(client, client->ops->forget_positions(client->session, &count, &client->error), WB_OK,
                           "forget positions") &&
           begins(client, WB_BATCH(1), &position, 1);
}

static int call_commit(wb_client *client)
{
    return wb_client_commit(client, WB_BATCH(1), PENDING, sizeof PENDING - 1);
}

/* The row tells what became of it, and keeps what is on its way from happening later. */
static void check_commit(wb_client *look, int result, int is_sent)
{
    const uint64_t batch = WB_BATCH(1);
    wb_position position = PARTITION("orders/0", 10);
    wb_found found = { .count = 0 };
    if (!begins(look, WB_BATCH(2), &position, 1) || !wb_client_check(look, wb_client_rollback(look), WB_OK, "roll back"))
        return;
    wb_client_check(look, wb_client_pending(look, &batch, 1, &found), WB_OK, "look for the row");
    free(found.operations);
    wb_kit_check(look->kit, (position.found == 10 && position.batch == batch) == (found.count == 1),
                 "a part was committed");
    wb_kit_check(look->kit, found.count || result != WB_OK, "what was said to be done is not");
    wb_kit_check(look->kit, !found.count || result != WB_NOT_CONNECTED, "what was said not to be done is");
    wb_kit_check(look->kit, !found.count || is_sent, "a call that was never sent has happened");
}

static const wb_lost_call of_commit = { begins_to_lose, call_commit, WB_GONE_OR_UNKNOWN | WB_ONE_OF(WB_OK),
                                        check_commit };

static void commit_request(wb_kit *kit)
{
    wb_lost_lose(kit, &of_commit, WB_LOSE_REQUEST);
}

static void commit_reply(wb_kit *kit)
{
    wb_lost_lose(kit, &of_commit, WB_LOSE_REPLY);
}

#define POSITIONS (WB_CAP_OUTBOX | WB_CAP_POSITIONS)
static const wb_kit_case cases[] = {
    { "positions: a partition is moved on with the commit", POSITIONS, moved_with_all },
    { "positions: a rollback leaves it where it was", POSITIONS, rolled_back_stays },
    { "positions: it never goes back by a begin, and stays whose it was", POSITIONS, lower_moves_nothing },
    { "positions: a commit sets it back to what was not handled", POSITIONS, set_back_in_part },
    { "positions: or to where it was, if nothing was", POSITIONS, set_back_whole },
    { "positions: what another batch has moved is not set back", POSITIONS, set_back_others_stay },
    { "positions: partitions, and endpoints, are apart", POSITIONS, several_are_apart },
    { "positions: any bytes are a name, and large numbers are exact", POSITIONS, names_and_numbers },
    { "positions: beside ids, also when the number was used before", POSITIONS, beside_ids },
    { "positions: all are visited, and forgotten", POSITIONS, listed_and_forgotten },
    { "positions: of two with one partition the second waits, and sees it moved", POSITIONS, waits_for_commit },
    { "positions: of two with one partition the second waits, and sees it where it was", POSITIONS,
      waits_for_rollback },
    { "positions: the same where there was no row, committed", POSITIONS, waits_for_first_commit },
    { "positions: the same where there was no row, rolled back", POSITIONS, waits_for_first_rollback },
    { "positions: the request of a commit is lost", POSITIONS, commit_request },
    { "positions: the reply of a commit is lost", POSITIONS, commit_reply },
};
const wb_kit_group wb_cases_positions = WB_KIT_GROUP(cases);
