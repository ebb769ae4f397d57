/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence kit: begin, check, commit, roll back, close, one session at a time.
 */
#include "config.h"

#include <string.h>

#include "conformance/persistence/actor.h"
#include "conformance/persistence/persistence.h"

#define ID "order-1"
#define ID_SIZE (sizeof ID - 1)

/* Begins on `a`, and leaves the transaction open. */
static int begins(wb_client *a)
{
    wb_claim claim = WB_CLAIM(ID);
    return wb_client_takes(a, WB_BATCH(1), &claim, 1);
}

static void nothing_is_there(wb_client *b)
{
    wb_client_finds_owner(b, ID, ID_SIZE, 0);
    wb_client_finds_pending(b, WB_BATCH(1), NULL, 0);
}

static void commit_stores(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 0);
    if (!a || !b || !wb_client_stores(a, WB_BATCH(1), ID, "operations"))
        return;
    wb_client_finds_owner(b, ID, ID_SIZE, WB_BATCH(1));
    wb_client_finds_pending(b, WB_BATCH(1), "operations", 10);
    wb_client_finds_owner(a, ID, ID_SIZE, WB_BATCH(1));
    wb_client_finds_pending(a, WB_BATCH(1), "operations", 10);
}

static void commit_without_operations(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !wb_client_stores(a, WB_BATCH(1), ID, NULL))
        return;
    wb_client_finds_owner(a, ID, ID_SIZE, WB_BATCH(1));
    wb_client_finds_pending(a, WB_BATCH(1), NULL, 0);
}

static void rollback_undoes(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 0);
    if (!a || !b || !begins(a))
        return;
    wb_client_check(a, wb_client_rollback(a), WB_OK, "roll back");
    nothing_is_there(b);
    nothing_is_there(a);
    wb_client_stores(a, WB_BATCH(2), ID, "operations");
}

static void close_rolls_back(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 0);
    if (!a || !b || !begins(a))
        return;
    wb_client_close(a);
    nothing_is_there(b);
}

/* What dies in the middle leaves the same behind. */
static void without_outbox(wb_kit *kit)
{
    if (WB_LACKS(kit, begin))
        return;
    wb_client *a = wb_client_open(kit, 0);
    WB_KIT_REQUIRE(kit, a != NULL, "there is no session");
    for (int i = 0; i < 2; i++) {
        wb_client_check(a, wb_client_begin(a, 0, NULL, 0), WB_OK, "begin without an outbox");
        wb_client_check(a, wb_client_commit(a, 0, NULL, 0), WB_OK, "commit without an outbox");
        wb_client_check(a, wb_client_begin(a, 0, NULL, 0), WB_OK, "begin without an outbox");
        wb_client_check(a, wb_client_rollback(a), WB_OK, "roll back without an outbox");
    }
}

static void check_is_ok(wb_kit *kit)
{
    static const size_t items[] = { 0, 1, 99, SIZE_MAX };
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !begins(a))
        return;
    for (size_t i = 0; i < sizeof items / sizeof *items; i++)
        wb_client_check(a, a->ops->check(a->session, items[i], &a->error), WB_OK, "check");
    wb_client_check(a, wb_client_commit(a, WB_BATCH(1), NULL, 0), WB_OK, "commit after checks");
    wb_client_finds_owner(a, ID, ID_SIZE, WB_BATCH(1));
}

/* A batch whose messages are all duplicates ends with a commit of nothing. */
static void many_batches_on_one_session(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0);
    WB_KIT_REQUIRE(kit, a != NULL, "there is no session");
    for (uint64_t n = 1; n <= 30; n++) {
        char id[24];
        wb_claim claim = { id, (size_t)snprintf(id, sizeof id, "order-%u", (unsigned)n), 0 };
        if (!wb_client_takes(a, WB_BATCH(n), &claim, 1) ||
            !wb_client_check(a, wb_client_rollback(a), WB_OK, "roll back") ||
            !wb_client_stores(a, WB_BATCH(n), id, "operations") ||
            !wb_client_check(a, wb_client_begin(a, WB_BATCH(n + 100), &claim, 1), WB_OK, "begin") ||
            !wb_client_check(a, wb_client_commit(a, WB_BATCH(n + 100), NULL, 0), WB_OK, "commit") ||
            !wb_client_finds_owner(a, id, claim.id_size, WB_BATCH(n)))
            return;
    }
}

/* ---- a number twice -------------------------------------------------------------------- */

/* After a commit in doubt the batch runs again, perhaps under the same number. */
static void same_number_is_a_duplicate(wb_kit *kit)
{
    wb_claim claims[] = { WB_CLAIM("order-1"), WB_CLAIM("order-2") };
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 0);
    if (!a || !b || !begins(a) ||
        !wb_client_check(a, wb_client_commit(a, WB_BATCH(1), "operations", 10), WB_OK, "commit"))
        return;
    int r = wb_client_begin(b, WB_BATCH(1), claims, 2);
    wb_client_check(b, r, WB_OK, "begin again");
    wb_kit_check(kit, claims[0].duplicate_of == WB_BATCH(1), "the id is claimed a second time");
    wb_kit_check(kit, claims[1].duplicate_of == 0, "an id that nobody had is a duplicate");
    wb_client_check(b, wb_client_rollback(b), WB_OK, "roll back");
    wb_client_finds_pending(b, WB_BATCH(1), "operations", 10);
}

/* The core does so when a handler has committed claims of messages that did not run: it begins under a number of then,
 * and finds the batch's own in what it claims. */
static void gives_back_what_was_committed(wb_kit *kit)
{
    wb_claim claims[] = { WB_CLAIM("order-1"), WB_CLAIM("order-2"), WB_CLAIM("order-3") };
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 0);
    if (!a || !b || !wb_client_stores(a, WB_BATCH(2), "order-3", NULL) ||
        !wb_client_takes(a, WB_BATCH(1), claims, 2) ||
        !wb_client_check(a, wb_client_commit(a, WB_BATCH(1), NULL, 0), WB_OK, "commit") ||
        !wb_client_check(b, wb_client_begin(b, WB_BATCH(3), claims, 2), WB_OK, "begin again"))
        return;
    /* the third is another batch's and must not be given back with this one's number */
    int r = wb_client_commit_releasing(b, WB_BATCH(1), "operations", 10, claims + 1, 2);
    wb_client_check(b, r, WB_OK, "give claims back");
    wb_client_finds_owner(b, "order-1", 7, WB_BATCH(1));
    wb_client_finds_owner(b, "order-2", 7, 0);
    wb_client_finds_owner(b, "order-3", 7, WB_BATCH(2));
    wb_client_finds_pending(b, WB_BATCH(1), "operations", 10);
    wb_client_finds_pending(b, WB_BATCH(3), NULL, 0);
}

/* Two batches may draw the same number: the later one runs again under another. */
static void number_with_pending_row_is_refused(wb_kit *kit)
{
    wb_claim other = WB_CLAIM("order-2");
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 0);
    if (!a || !b || !wb_client_stores(a, WB_BATCH(1), ID, "first") ||
        !wb_client_takes(b, WB_BATCH(1), &other, 1))
        return;
    int r = wb_client_commit(b, WB_BATCH(1), "second", 6);
    wb_kit_check(kit, r == WB_RETRY || r == WB_ABORT,
                 "to store a second pending row under a number is %s", wb_result_name(r));
    wb_client_finds_pending(b, WB_BATCH(1), "first", 5);
    wb_client_finds_owner(b, "order-2", 7, 0);
    wb_client_stores(b, WB_BATCH(2), "order-2", "second");
}

/* ---- threads --------------------------------------------------------------------------- */

static void begin_elsewhere(void *argument)
{
    (void)begins(argument);
}

static void commit_elsewhere(void *argument)
{
    wb_client *client = argument;
    wb_client_check(client, wb_client_commit(client, WB_BATCH(1), "operations", 10), WB_OK, "commit");
}

/* A program may hand its session on, with the transaction that is open. */
static void session_changes_threads(wb_kit *kit)
{
    wb_actor actors[2];
    wb_client *a = wb_client_open(kit, 0);
    WB_KIT_REQUIRE(kit, a != NULL, "there is no session");
    for (int i = 0; i < 2; i++) {
        wb_actor_start(&actors[i]);
        wb_actor_do(&actors[i], i ? commit_elsewhere : begin_elsewhere, a);
        wb_actor_await(kit, &actors[i]);
        wb_actor_stop(&actors[i]);
    }
    wb_client_finds_owner(a, ID, ID_SIZE, WB_BATCH(1));
}

static void instances_share_records(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0);
    wb_store *again = wb_store_again(kit, 0);
    wb_client *b = again ? wb_client_open_on(kit, again) : NULL;
    if (!a || !b || !wb_client_stores(a, WB_BATCH(1), ID, "operations"))
        return;
    wb_client_finds_owner(b, ID, ID_SIZE, WB_BATCH(1));
    wb_client_check(b, wb_client_mark(b, WB_BATCH(1), NULL, 0), WB_OK, "mark");
    wb_client_finds_pending(a, WB_BATCH(1), NULL, 0);
}

#define OUTBOX WB_CAP_OUTBOX
static const wb_kit_case cases[] = {
    { "a commit stores claims and operations, for all sessions", OUTBOX, commit_stores },
    { "a commit without operations leaves no pending row", OUTBOX, commit_without_operations },
    { "a rollback leaves nothing", OUTBOX, rollback_undoes },
    { "closing a session leaves nothing of its open transaction", OUTBOX, close_rolls_back },
    { "batch number 0 is a transaction without an outbox", 0, without_outbox },
    { "check() is ok in a transaction nobody touched, and changes nothing", OUTBOX, check_is_ok },
    { "a session serves batch after batch, whatever becomes of them", OUTBOX,
      many_batches_on_one_session },
    { "the same batch number again, after its commit, is a duplicate", OUTBOX,
      same_number_is_a_duplicate },
    { "claims that were committed are given back under their number, and only those", OUTBOX,
      gives_back_what_was_committed },
    { "a second pending row under one number is refused, as retry or abort, and rolled back", OUTBOX,
      number_with_pending_row_is_refused },
    { "another thread may end a transaction than began it", OUTBOX | WB_CAP_CLAIM_WITH_COMMIT,
      session_changes_threads },
    { "two instances of one endpoint share records", OUTBOX, instances_share_records },
};
const wb_kit_group wb_cases_transactions = WB_KIT_GROUP(cases);
