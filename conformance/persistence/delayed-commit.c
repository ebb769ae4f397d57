/* SPDX-License-Identifier: Apache-2.0
 *
 * Delayed messages that are stored with the commit of a batch: with it or not at all.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/persistence/delayed.h"
#include "conformance/persistence/lost.h"

#define PAST(n) ((int64_t)(n) * WB_SECOND)
#define BATCH 4711
#define PENDING "pending"

static int commit_delaying(wb_client *client, const void *operations, const wb_delayed *messages, size_t count)
{
    wb_commit commit = { .struct_size = sizeof commit,
                         .batch = BATCH,
                         .operations = operations,
                         .operations_size = operations ? strlen(operations) : 0,
                         .delayed = messages,
                         .delayed_count = count };
    wb_error_clear(&client->error);
    return client->ops->commit(client->session, &commit, &client->error);
}

static int begins(wb_client *client)
{
    wb_claim claim = WB_CLAIM("order-1");
    return wb_client_takes(client, BATCH, &claim, 1);
}

static void there_with_the_commit(wb_kit *kit)
{
    const wb_delayed two[] = { wb_waiting("a", PAST(1)), wb_waiting("b", PAST(2)) };
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 0);
    if (!b || !begins(a) || !wb_client_has_waiting(b, "") ||
        !wb_client_check(a, commit_delaying(a, PENDING, two, 2), WB_OK, "commit with delayed messages") ||
        !wb_client_has_waiting(b, "a b ") || !wb_client_takes_due(b, wb_owner_b, 0, "a b ") ||
        !wb_client_changes(b, WB_REMOVE, wb_owner_b, "a", 0, 1) ||
        !wb_client_finds_owner(b, "order-1", 7, BATCH) || !wb_client_finds_pending(b, BATCH, PENDING, strlen(PENDING)))
        return;
    wb_client_takes_due(a, wb_owner_a, 0, "");
}

static void gone_with_the_rollback(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !begins(a) || !wb_client_check(a, wb_client_rollback(a), WB_OK, "roll back") || !begins(a) ||
        !wb_client_check(a, commit_delaying(a, NULL, NULL, 0), WB_OK, "commit without any"))
        return;
    wb_client_has_waiting(a, "");
}

/* A batch that runs again, or was stored behind its commit by an earlier version. */
static void known_keys_stay(wb_kit *kit)
{
    const wb_delayed two[] = { wb_waiting("a", PAST(9)), wb_waiting("b", PAST(2)) };
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !wb_client_delay(a, "a", PAST(1)) || !begins(a) ||
        !wb_client_check(a, commit_delaying(a, NULL, two, 2), WB_OK, "commit with one that is there") ||
        !wb_client_has_waiting(a, "a b "))
        return;
    wb_client_is_next(a, PAST(1));
}

/* More than one statement may hold, and nothing else to commit. */
static void many_with_a_commit(wb_kit *kit)
{
    enum { COUNT = 1500 };
    static char ids[COUNT][8];
    static wb_delayed messages[COUNT];
    const wb_delayed_fetch what = { .struct_size = sizeof what, .limit = COUNT + 1, .owner = wb_owner_a,
                                    .lease = WB_LONG_LEASE };
    wb_client *a = wb_client_open(kit, 0);
    wb_seen seen = { .count = 0 };
    for (size_t i = 0; i < COUNT; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "n%zu", i);
        messages[i] = wb_waiting(ids[i], PAST(1));
    }
    if (!a || !wb_client_check(a, wb_client_begin(a, 0, NULL, 0), WB_OK, "begin without an outbox") ||
        !wb_client_check(a, commit_delaying(a, NULL, messages, COUNT), WB_OK, "commit many") ||
        !wb_client_check(a, wb_delayed_fetch_into(a, &what, &seen), WB_OK, "fetch"))
        return;
    wb_kit_check(kit, seen.count == COUNT, "%zu of %d were stored", seen.count, COUNT);
}

/* ---- the connection is lost -------------------------------------------------------------- */

static int call_commit(wb_client *client)
{
    const wb_delayed two[] = { wb_waiting("a", PAST(1)), wb_waiting("b", PAST(2)) };
    return commit_delaying(client, PENDING, two, 2);
}

/* All of it, or nothing. */
static void check_commit(wb_client *look, int result, int is_sent)
{
    const uint64_t batch = BATCH;
    const wb_delayed_filter all = { .struct_size = sizeof all };
    wb_found found = { .count = 0 };
    wb_seen seen = { .count = 0 };
    wb_client_check(look, wb_client_pending(look, &batch, 1, &found), WB_OK, "look for the row");
    wb_client_check(look, wb_delayed_list_into(look, &all, &seen), WB_OK, "list what waits");
    free(found.operations);
    wb_kit_check(look->kit, seen.count == 2 * found.count, "%zu delayed messages and %zu rows: a part was committed",
                 seen.count, found.count);
    wb_kit_check(look->kit, found.count || result != WB_OK, "what was said to be done is not");
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

#define NEEDS (WB_CAP_DELAY_STORE | WB_CAP_DELAY_WITH_COMMIT | WB_CAP_OUTBOX)
static const wb_kit_case cases[] = {
    { "delayed: what goes with a commit is there when that is", NEEDS, there_with_the_commit },
    { "delayed: nothing is there of what was rolled back", NEEDS, gone_with_the_rollback },
    { "delayed: a commit leaves keys that are there as they are", NEEDS, known_keys_stay },
    { "delayed: many with a commit that has nothing else", NEEDS, many_with_a_commit },
    { "delayed: the request of a commit with delayed messages is lost", NEEDS, commit_request },
    { "delayed: the reply of a commit with delayed messages is lost", NEEDS, commit_reply },
};
const wb_kit_group wb_cases_delayed_commit = WB_KIT_GROUP(cases);
