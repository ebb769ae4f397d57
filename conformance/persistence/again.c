/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence kit: everything is closed and opened again, by this process or another one, and
 * two processes are at work at once. What is stored is in the store, and nowhere else; what
 * excludes whom is the store, too.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "conformance/persistence/persistence.h"

/* ---- opened again ----------------------------------------------------------------------- */

/* One batch that waits, one that shrank, one that is done, one that is parked. */
static void store_four(wb_client *a)
{
    if (!wb_client_stores(a, WB_BATCH(1), "order-1", "operations") ||
        !wb_client_stores(a, WB_BATCH(2), "order-2", "all of them") ||
        !wb_client_check(a, wb_client_mark(a, WB_BATCH(2), "rest", 4), WB_OK, "mark what remains") ||
        !wb_client_stores(a, WB_BATCH(3), "order-3", "done") ||
        !wb_client_check(a, wb_client_mark(a, WB_BATCH(3), NULL, 0), WB_OK, "mark"))
        return;
    (void)wb_client_parks(a, WB_PARKED(1), "parked");
}

static void check_four(wb_client *b)
{
    wb_found found;
    wb_client_finds_pending(b, WB_BATCH(1), "operations", 10);
    wb_client_finds_pending(b, WB_BATCH(2), "rest", 4);
    wb_client_finds_pending(b, WB_BATCH(3), NULL, 0);
    wb_client_finds_pending(b, WB_PARKED(1), "parked", 6);
    wb_client_finds_owner(b, "order-1", 7, WB_BATCH(1));
    wb_client_finds_owner(b, "order-2", 7, WB_BATCH(2));
    wb_client_finds_owner(b, "order-3", 7, WB_BATCH(3));
    if (!wb_client_check(b, wb_client_sweep(b, WB_BATCH_END, 10, &found), WB_OK, "sweep"))
        return;
    free(found.operations);
    wb_kit_check(b->kit, found.count == 3, "a sweep visits %zu rows of 3", found.count);
}

/* Nothing of the first instance is left when the second one is made. */
static void closed_and_opened(wb_kit *kit)
{
    wb_client *empty = wb_client_open(kit, 0);
    wb_store *first = wb_store_again(kit, 0);
    wb_client *a = empty && first ? wb_client_open_on(kit, first) : NULL;
    if (!a)
        return;
    store_four(a);
    wb_client_close(a);
    first->ops->destroy(first->instance);
    first->instance = NULL;
    wb_client_close(empty);
    wb_stores_close((wb_stores_kit *)kit);
    wb_store *second = wb_store_again(kit, 0);
    wb_client *b = second ? wb_client_open_on(kit, second) : NULL;
    if (b)
        check_four(b);
}

static void live_and_store(wb_client *client, unsigned which, wb_board *board)
{
    (void)which, (void)board;
    store_four(client);
}

static void live_and_look(wb_client *client, unsigned which, wb_board *board)
{
    (void)which, (void)board;
    check_four(client);
}

static void by_another_process(wb_kit *kit)
{
    wb_client *look = wb_client_open(kit, 0);
    if (look && wb_strangers_run(kit, 1, live_and_store))
        check_four(look);
}

static void for_another_process(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0);
    if (!a)
        return;
    store_four(a);
    (void)wb_strangers_run(kit, 1, live_and_look);
}

/* Each in a process that ends before the next one begins. */
static void from_process_to_process(wb_kit *kit)
{
    if (wb_client_open(kit, 0) && wb_strangers_run(kit, 1, live_and_store))
        (void)wb_strangers_run(kit, 1, live_and_look);
}

/* ---- at once ---------------------------------------------------------------------------- */

#define PROCESSES 2
#define ROUNDS 12
#define IDS 16
#define TRIES_MAX 400
/* A process that is not there by then is not waited for: the other goes on alone. */
#define MEET_WITHIN (10 * WB_SECOND)

/* Behind how often each id took effect. */
#define ARRIVED(board, round) ((board)->counts[ROUNDS * IDS + (round)])

static void meet(wb_board *board, unsigned round)
{
    int64_t deadline = wb_clock_monotonic() + MEET_WITHIN;
    (void)atomic_fetch_add(&ARRIVED(board, round), 1);
    while (atomic_load(&ARRIVED(board, round)) < PROCESSES && wb_clock_monotonic() < deadline)
        wb_clock_pause(WB_MILLISECOND / 5, NULL);
}

/* Each other id of what is ours goes back at first, for whoever comes next. */
static int commit_some(wb_client *client, uint64_t batch, wb_claim *claims, int attempt, wb_board *board,
                       unsigned round)
{
    wb_claim released[IDS];
    size_t count = 0;
    for (size_t i = 0; i < IDS; i++)
        if (!claims[i].duplicate_of && attempt < 2 && i % 2)
            released[count++] = claims[i];
    int r = wb_client_commit_releasing(client, batch, "operations", 10, released, count);
    for (size_t i = 0; r == WB_OK && i < IDS; i++)
        if (!claims[i].duplicate_of && !(attempt < 2 && i % 2))
            (void)atomic_fetch_add(&board->counts[round * IDS + i], 1);
    return r == WB_OK && count ? WB_RETRY : r;
}

static int claim_all(wb_client *client, unsigned which, unsigned round, int attempt, wb_board *board)
{
    char ids[IDS][16];
    wb_claim claims[IDS];
    const uint64_t batch = WB_BATCH(((uint64_t)round * TRIES_MAX + (unsigned)attempt) * PROCESSES + which + 1);
    for (unsigned i = 0; i < IDS; i++)
        claims[i] = (wb_claim){ ids[i], (size_t)snprintf(ids[i], sizeof ids[i], "%03u-%02u", round, i), 0 };
    int r = wb_client_begin(client, batch, claims, IDS);
    return r == WB_OK ? commit_some(client, batch, claims, attempt, board, round) : r;
}

static void live_and_claim(wb_client *client, unsigned which, wb_board *board)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        int r = WB_RETRY;
        meet(board, round);
        for (int i = 0; i < TRIES_MAX && (r == WB_RETRY || r == WB_ABORT); i++)
            r = claim_all(client, which, round, i, board);
        if (!wb_client_check(client, r, WB_OK, "claim what another process claims, too"))
            return;
    }
}

static void two_at_once(wb_kit *kit)
{
    wb_board *board = wb_board_of(kit);
    wb_client *look = wb_client_open(kit, 0);
    if (!look)
        return;
    memset(board, 0, sizeof *board);
    if (!wb_strangers_run(kit, PROCESSES, live_and_claim))
        return;
    for (unsigned i = 0; i < ROUNDS * IDS; i++)
        if (!wb_kit_check(kit, board->counts[i] == 1, "id \"%03u-%02u\" took effect %u times", i / IDS, i % IDS,
                          board->counts[i]))
            return;
}

#define OUTBOX WB_CAP_OUTBOX
static const wb_kit_case cases[] = {
    { "what was stored is there when all was closed and is opened again", OUTBOX, closed_and_opened },
    { "what another process stored is there", OUTBOX, by_another_process },
    { "what was stored is there for another process", OUTBOX, for_another_process },
    { "what a process stored that has ended is there for the next one", OUTBOX, from_process_to_process },
    { "two processes claim the same ids, each takes effect once", OUTBOX, two_at_once },
};
const wb_kit_group wb_cases_again = WB_KIT_GROUP(cases);
