/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence kit: rows without a message of their own. A host parks operations that cannot
 * be sent now under a number in the future, which says when they are due, and notes attempts
 * under small numbers. Both are stored by a transaction that claims nothing, or, when two hosts may
 * park the same, the row that is parked.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/persistence/persistence.h"

static void without_claims(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 0);
    if (!a || !b || !wb_client_parks(a, WB_PARKED(1), "parked") ||
        !wb_client_parks(a, 4711, "attempts") || !wb_client_takes(a, WB_PARKED(2), NULL, 0) ||
        !wb_client_check(a, wb_client_rollback(a), WB_OK, "roll back") ||
        !wb_client_takes(a, WB_PARKED(3), NULL, 0) ||
        !wb_client_check(a, wb_client_commit(a, WB_PARKED(3), NULL, 0), WB_OK, "commit nothing"))
        return;
    wb_client_finds_pending(b, WB_PARKED(1), "parked", 6);
    wb_client_finds_pending(b, 4711, "attempts", 8);
    wb_client_finds_pending(b, WB_PARKED(2), NULL, 0);
    wb_client_finds_pending(b, WB_PARKED(3), NULL, 0);
}

/* Whoever parks looks for another number then. */
static void number_that_is_taken(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !wb_client_parks(a, WB_PARKED(1), "first") ||
        !wb_client_takes(a, WB_PARKED(1), NULL, 0))
        return;
    int r = wb_client_commit(a, WB_PARKED(1), "second", 6);
    wb_kit_check(kit, r == WB_RETRY || r == WB_ABORT, "to park under a number that is taken is %s",
                 wb_result_name(r));
    wb_client_finds_pending(a, WB_PARKED(1), "first", 5);
    wb_client_parks(a, WB_PARKED(2), "second");
    wb_client_finds_pending(a, WB_PARKED(2), "second", 6);
}

static void sweep_and_check(wb_client *a, uint64_t before, size_t wanted, uint64_t last)
{
    wb_found found;
    int r = wb_client_sweep(a, before, 100, &found);
    free(found.operations);
    if (wb_client_check(a, r, WB_OK, "sweep") &&
        wb_kit_check(a->kit, found.count == wanted, "%zu rows were swept instead of %zu",
                     found.count, wanted))
        wb_kit_check(a->kit, !wanted || found.batches[wanted - 1] == last,
                     "the last row swept is not the one in turn");
}

/* Two batches of the past, two parked rows, stored between them. */
static int store_four(wb_client *a)
{
    return wb_client_parks(a, WB_PARKED(2), "later") &&
           wb_client_stores(a, WB_BATCH(1), "order-1", "one") &&
           wb_client_parks(a, WB_PARKED(1), "sooner") &&
           wb_client_stores(a, WB_BATCH(2), "order-2", "two");
}

static void not_before_they_are_due(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !store_four(a))
        return;
    sweep_and_check(a, WB_BATCH_OF_LOOKS, 2, WB_BATCH(2));
    sweep_and_check(a, WB_PARKED(1), 2, WB_BATCH(2));
    sweep_and_check(a, WB_PARKED(2), 3, WB_PARKED(1));
    sweep_and_check(a, WB_BATCH_END, 4, WB_PARKED(2));
    wb_client_finds_pending(a, WB_PARKED(1), "sooner", 6);
    wb_client_finds_pending(a, WB_PARKED(2), "later", 5);
}

static int expect_next(wb_client *a, uint64_t after, uint64_t before, uint64_t wanted)
{
    wb_found found;
    int r = wb_client_next(a, after, before, &found);
    free(found.operations);
    return wb_client_check(a, r, WB_OK, "visit the next row") &&
           wb_kit_check(a->kit, wanted ? found.count == 1 && found.batches[0] == wanted
                                       : found.count == 0,
                        "a row that is not in turn was visited, or none");
}

static void walked_when_they_are_due(wb_kit *kit)
{
    if (WB_LACKS(kit, next_pending))
        return;
    wb_client *a = wb_client_open(kit, 0);
    if (a && store_four(a) && expect_next(a, 0, WB_BATCH_OF_LOOKS, WB_BATCH(1)) &&
        expect_next(a, WB_BATCH(1), WB_BATCH_OF_LOOKS, WB_BATCH(2)) &&
        expect_next(a, WB_BATCH(2), WB_BATCH_OF_LOOKS, 0) &&
        expect_next(a, WB_BATCH(2), WB_PARKED(2), WB_PARKED(1)) &&
        expect_next(a, WB_PARKED(1), WB_PARKED(2), 0))
        expect_next(a, WB_PARKED(1), WB_BATCH_END, WB_PARKED(2));
}

/* Records that are old and dispatched go, whatever is parked, and nothing that is parked goes. */
static void clean_up_goes_on(wb_kit *kit)
{
    size_t deleted;
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !store_four(a) ||
        !wb_client_check(a, wb_client_mark(a, WB_BATCH(1), NULL, 0), WB_OK, "mark"))
        return;
    for (int i = 0; i < 2; i++) {
        int r = wb_client_clean_up(a, i ? WB_BATCH_END : WB_BATCH_OF_LOOKS, 100, &deleted);
        wb_client_check(a, r, WB_OK, "clean up");
        wb_kit_check(kit, deleted == (i ? 0 : 1), "%zu records are said to be deleted", deleted);
    }
    wb_client_finds_owner(a, "order-1", 7, 0);
    wb_client_finds_owner(a, "order-2", 7, WB_BATCH(2));
    wb_client_finds_pending(a, WB_BATCH(2), "two", 3);
    wb_client_finds_pending(a, WB_PARKED(1), "sooner", 6);
    wb_client_finds_pending(a, WB_PARKED(2), "later", 5);
}

/* A message may be parked and its own record be of the past: they share no number. */
static void marked_like_others(wb_kit *kit)
{
    const wb_mark marks[] = { { WB_PARKED(1), "so", 2 }, { WB_PARKED(2), NULL, 0 } };
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !store_four(a))
        return;
    wb_client_check(a, a->ops->mark(a->session, marks, 2, &a->error), WB_OK, "mark parked rows");
    wb_client_finds_pending(a, WB_PARKED(1), "so", 2);
    wb_client_finds_pending(a, WB_PARKED(2), NULL, 0);
    wb_client_check(a, wb_client_mark(a, WB_PARKED(1), NULL, 0), WB_OK, "mark the rest");
    wb_client_finds_pending(a, WB_PARKED(1), NULL, 0);
    wb_client_finds_pending(a, WB_BATCH(1), "one", 3);
    wb_client_finds_owner(a, "order-1", 7, WB_BATCH(1));
}

/* Tried in vain: stored under a later number, and then the earlier one is marked. */
static void parked_again(wb_kit *kit)
{
    const wb_mark mark = { WB_PARKED(1), NULL, 0 };
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 0);
    if (!a || !b || !wb_client_parks(a, WB_PARKED(1), "once") ||
        !wb_client_parks(a, WB_PARKED(2), "twice"))
        return;
    wb_client_finds_pending(b, WB_PARKED(1), "once", 4);
    wb_client_check(a, wb_client_begin_marking(a, WB_PARKED(3), NULL, 0, &mark, 1), WB_OK,
                    "mark and begin");
    wb_client_check(a, wb_client_commit(a, WB_PARKED(3), "thrice", 6), WB_OK, "commit");
    wb_client_finds_pending(b, WB_PARKED(1), NULL, 0);
    wb_client_finds_pending(b, WB_PARKED(2), "twice", 5);
    wb_client_finds_pending(b, WB_PARKED(3), "thrice", 6);
}

static int begins_parking(wb_client *client, uint64_t batch, uint64_t owner)
{
    wb_claim claim = { "\0the row", 8, 0 };
    return wb_client_check(client, wb_client_begin(client, batch, &claim, 1), WB_OK, "claim a row") &&
           wb_kit_check(client->kit, claim.duplicate_of == owner,
                        "a row that is parked is said to be parked by %" PRIu64 " instead of %" PRIu64,
                        claim.duplicate_of, owner);
}

/* Two hosts tried the same row in vain. Who parks it claims it, with a record of today, in the
 * transaction that stores the new row; the other finds that it was done. */
static void parked_by_one_of_two(wb_kit *kit)
{
    size_t deleted = 0;
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 0);
    if (!a || !b || !begins_parking(a, WB_BATCH(1), 0) ||
        !wb_client_check(a, wb_client_commit(a, WB_PARKED(1), "parked", 6), WB_OK,
                         "store a row under a number that is not the one that begin() was given") ||
        !begins_parking(b, WB_BATCH(2), WB_BATCH(1)) ||
        !wb_client_check(b, wb_client_rollback(b), WB_OK, "roll back"))
        return;
    wb_client_finds_pending(b, WB_PARKED(1), "parked", 6);
    wb_client_finds_pending(b, WB_BATCH(1), NULL, 0);
    sweep_and_check(b, WB_BATCH_END, 1, WB_PARKED(1));
    wb_client_check(b, wb_client_clean_up(b, WB_BATCH_OF_LOOKS, 100, &deleted), WB_OK, "clean up");
    wb_kit_check(kit, deleted == 1, "%zu records are said to be deleted instead of 1", deleted);
    wb_client_finds_pending(a, WB_PARKED(1), "parked", 6);
}

#define OUTBOX WB_CAP_OUTBOX
static const wb_kit_case cases[] = {
    { "a transaction that claims nothing stores a row", OUTBOX, without_claims },
    { "a parked row does not take the place of another", OUTBOX, number_that_is_taken },
    { "rows with numbers in the future are not swept before", OUTBOX, not_before_they_are_due },
    { "next_pending() visits parked rows when they are due", OUTBOX, walked_when_they_are_due },
    { "parked rows and the clean-up leave each other alone", OUTBOX, clean_up_goes_on },
    { "parked rows are marked like others", OUTBOX, marked_like_others },
    { "a row is parked again under a later number", OUTBOX, parked_again },
    { "of two that park one row one does", OUTBOX, parked_by_one_of_two },
};
const wb_kit_group wb_cases_parked = WB_KIT_GROUP(cases);
