/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence kit: the clean-up deletes what is older than the retention and dispatched,
 * and nothing else.
 */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "conformance/persistence/actor.h"
#include "conformance/persistence/persistence.h"

/* Records of batches 1 to count, one id each; with pending rows unless operations is NULL. */
static int store_records(wb_client *a, uint64_t count, const char *operations)
{
    for (uint64_t n = 1; n <= count; n++) {
        char id[24];
        (void)snprintf(id, sizeof id, "order-%02" PRIu64, n);
        if (!wb_client_stores(a, WB_BATCH(n), id, operations))
            return 0;
    }
    return 1;
}

static void clean_up_and_check(wb_client *a, uint64_t before, size_t limit, size_t wanted)
{
    size_t deleted;
    int r = wb_client_clean_up(a, before, limit, &deleted);
    if (wb_client_check(a, r, WB_OK, "clean up"))
        wb_kit_check(a->kit, deleted == wanted, "%zu records are said to be deleted instead of %zu",
                     deleted, wanted);
}

/* Whether of batches 1 to count those from first on are still remembered. */
static void check_left(wb_client *a, uint64_t first, uint64_t count)
{
    for (uint64_t n = 1; n <= count; n++) {
        char id[24];
        int size = snprintf(id, sizeof id, "order-%02" PRIu64, n);
        wb_client_finds_owner(a, id, (size_t)size, n < first ? 0 : WB_BATCH(n));
    }
}

static void only_older_ones(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !store_records(a, 6, NULL))
        return;
    clean_up_and_check(a, WB_BATCH(1), 100, 0);
    clean_up_and_check(a, WB_BATCH(4), 100, 3); /* below, not at */
    check_left(a, 4, 6);
    clean_up_and_check(a, WB_BATCH(4), 100, 0);
    clean_up_and_check(a, WB_BATCH_END, 100, 3);
    check_left(a, 7, 6);
}

static void only_dispatched_ones(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !store_records(a, 4, "operations"))
        return;
    wb_client_check(a, wb_client_mark(a, WB_BATCH(2), NULL, 0), WB_OK, "mark");
    wb_client_check(a, wb_client_mark(a, WB_BATCH(3), "rest", 4), WB_OK, "mark");
    clean_up_and_check(a, WB_BATCH_END, 100, 1);
    wb_client_finds_owner(a, "order-01", 8, WB_BATCH(1));
    wb_client_finds_owner(a, "order-02", 8, 0);
    wb_client_finds_owner(a, "order-03", 8, WB_BATCH(3));
    wb_client_finds_owner(a, "order-04", 8, WB_BATCH(4));
    wb_client_finds_pending(a, WB_BATCH(1), "operations", 10);
    wb_client_finds_pending(a, WB_BATCH(3), "rest", 4);
}

/* A row of no bytes is a row: what is to be sent is its host's to know. */
static void empty_rows_are_rows(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !store_records(a, 2, "operations") || !wb_client_stores(a, WB_BATCH(3), "order-03", ""))
        return;
    wb_client_check(a, wb_client_mark(a, WB_BATCH(1), NULL, 0), WB_OK, "mark");
    wb_client_check(a, wb_client_mark(a, WB_BATCH(2), "", 0), WB_OK, "mark with a rest of no bytes");
    clean_up_and_check(a, WB_BATCH_END, 100, 1);
    wb_client_finds_owner(a, "order-01", 8, 0);
    for (uint64_t n = 2; n <= 3; n++) {
        wb_client_finds_pending(a, WB_BATCH(n), "", 0);
        wb_client_finds_owner(a, n == 2 ? "order-02" : "order-03", 8, WB_BATCH(n));
    }
}

/* As the housekeeper does: steps until one deletes less than it may. */
static void in_steps(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !store_records(a, 10, NULL))
        return;
    clean_up_and_check(a, WB_BATCH(10), 4, 4);
    clean_up_and_check(a, WB_BATCH(10), 4, 4);
    clean_up_and_check(a, WB_BATCH(10), 4, 1);
    clean_up_and_check(a, WB_BATCH(10), 4, 0);
    check_left(a, 10, 10);
}

/* Old records that must stay do not keep those behind them. */
static void undispatched_ones_do_not_block(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !store_records(a, 6, "operations"))
        return;
    for (uint64_t n = 4; n <= 6; n++)
        wb_client_check(a, wb_client_mark(a, WB_BATCH(n), NULL, 0), WB_OK, "mark");
    clean_up_and_check(a, WB_BATCH_END, 2, 2);
    clean_up_and_check(a, WB_BATCH_END, 2, 1);
    wb_client_finds_owner(a, "order-01", 8, WB_BATCH(1));
    wb_client_finds_owner(a, "order-06", 8, 0);
}

/* An id that was given back under an old number, and is claimed under a new one, is as old as that. */
static void claimed_again_is_new(wb_kit *kit)
{
    wb_claim claims[] = { WB_CLAIM("order-01"), WB_CLAIM("order-02") };
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !wb_client_takes(a, WB_BATCH(1), claims, 2) ||
        !wb_client_check(a, wb_client_commit_releasing(a, WB_BATCH(1), NULL, 0, claims, 1), WB_OK, "commit") ||
        !wb_client_stores(a, WB_BATCH(9), "order-01", NULL))
        return;
    clean_up_and_check(a, WB_BATCH(9), 100, 1);
    wb_client_finds_owner(a, "order-01", 8, WB_BATCH(9));
    wb_client_finds_owner(a, "order-02", 8, 0);
    if (!wb_client_stores(a, WB_BATCH(10), "order-02", NULL)) /* what a clean-up has freed is new as well */
        return;
    clean_up_and_check(a, WB_BATCH(10), 100, 1);
    wb_client_finds_owner(a, "order-01", 8, 0);
    wb_client_finds_owner(a, "order-02", 8, WB_BATCH(10));
}

/* A batch of several ids is cleaned up record by record. */
static void records_are_counted(wb_kit *kit)
{
    wb_claim claims[] = { WB_CLAIM("a"), WB_CLAIM("b"), WB_CLAIM("c") };
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !wb_client_takes(a, WB_BATCH(1), claims, 3) ||
        !wb_client_check(a, wb_client_commit(a, WB_BATCH(1), NULL, 0), WB_OK, "commit"))
        return;
    clean_up_and_check(a, WB_BATCH(2), 2, 2);
    clean_up_and_check(a, WB_BATCH(2), SIZE_MAX, 1);
    if (wb_client_takes(a, WB_BATCH(2), claims, 3))
        wb_client_check(a, wb_client_rollback(a), WB_OK, "roll back");
}

static void other_endpoint(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0), *b = wb_client_open(kit, 1);
    if (!a || !b || !store_records(a, 2, NULL))
        return;
    clean_up_and_check(b, WB_BATCH_END, 100, 0);
    check_left(a, 1, 2);
}

/* ---- two at once ------------------------------------------------------------------------ */

typedef struct {
    wb_client *client;
    size_t deleted;
    int result;
} cleaning;

#define STEPS_MAX 2000

static void clean_until_empty(void *argument)
{
    cleaning *one = argument;
    size_t deleted = 1;
    for (int i = 0; one->result == WB_OK && deleted && i < STEPS_MAX; i++) {
        one->result = wb_client_clean_up(one->client, WB_BATCH_END, 3, &deleted);
        one->deleted += deleted;
    }
}

/* One that is kept out counts nothing; both together count each record once. */
static void two_at_once(wb_kit *kit)
{
    enum { RECORDS = 60 };
    wb_actor actors[2];
    cleaning each[2] = { { .client = wb_client_open(kit, 0) }, { 0 } };
    wb_store *again = wb_store_again(kit, 0);
    each[1].client = again ? wb_client_open_on(kit, again) : NULL;
    if (!each[0].client || !each[1].client || !store_records(each[0].client, RECORDS, NULL))
        return;
    for (int i = 0; i < 2; i++) {
        wb_actor_start(&actors[i]);
        wb_actor_do(&actors[i], clean_until_empty, &each[i]);
    }
    for (int i = 0; i < 2; i++) {
        wb_actor_await(kit, &actors[i]);
        wb_actor_stop(&actors[i]);
        wb_client_check(each[i].client, each[i].result, WB_OK, "clean up while another does");
    }
    /* both may have been kept out by the other one's last step */
    each[0].result = WB_OK;
    clean_until_empty(&each[0]);
    wb_kit_check(kit, each[0].deleted + each[1].deleted == RECORDS,
                 "two that clean up count %zu and %zu of %d records", each[0].deleted,
                 each[1].deleted, RECORDS);
}

#define OUTBOX WB_CAP_OUTBOX
static const wb_kit_case cases[] = {
    { "a clean-up deletes what is below its bound", OUTBOX, only_older_ones },
    { "a clean-up keeps what is not dispatched", OUTBOX, only_dispatched_ones },
    { "a clean-up keeps what has a row of no bytes, stored or left by a mark", OUTBOX, empty_rows_are_rows },
    { "a clean-up keeps what was claimed again under a later number", OUTBOX, claimed_again_is_new },
    { "a clean-up goes on in steps until nothing is left", OUTBOX, in_steps },
    { "records that are not dispatched do not keep the clean-up from others", OUTBOX,
      undispatched_ones_do_not_block },
    { "a clean-up counts records, not batches", OUTBOX, records_are_counted },
    { "a clean-up deletes nothing of another endpoint", OUTBOX, other_endpoint },
    { "two clean-ups at once delete each record once", OUTBOX, two_at_once },
};
const wb_kit_group wb_cases_clean_up = WB_KIT_GROUP(cases);
