/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence kit: one at a time, between processes. What visits, takes and cleans up keeps others from
 * it, also those that share no memory with it: a lock of threads excludes nobody there.
 */
#include "config.h"

#include <stdlib.h>

#include "conformance/persistence/persistence.h"

#define ROWS 4

/* What strangers note on the board. */
#define VISITED 0
#define TAKEN 0
#define DELETED 0
#define WRITTEN 1

static int store_rows(wb_client *a)
{
    static const char *const ids[ROWS] = { "order-1", "order-2", "order-3", "order-4" };
    for (size_t i = 0; i < ROWS; i++)
        if (!wb_client_stores(a, WB_BATCH(i + 1), ids[i], "operations"))
            return 0;
    return 1;
}

/* ---- visitors ---------------------------------------------------------------------------- */

typedef struct {
    wb_kit *kit;
    size_t visits;
} meeting;

static void look(wb_client *client, wb_board *board, int (*visit)(wb_client *client, wb_found *found))
{
    wb_found found;
    int r = visit(client, &found);
    free(found.operations);
    if (wb_client_check(client, r, WB_OK, "visit while another process does"))
        (void)atomic_fetch_add(&board->counts[VISITED], (unsigned)found.count);
}

static int sweep(wb_client *client, wb_found *found)
{
    return wb_client_sweep(client, WB_BATCH_END, 100, found);
}

static int next(wb_client *client, wb_found *found)
{
    return wb_client_next(client, 0, WB_BATCH_END, found);
}

/* However it looks. */
static void live_and_look(wb_client *client, unsigned which, wb_board *board)
{
    (void)which;
    look(client, board, sweep);
    if (WB_HAS(client->ops, wb_persistence_ops, next_pending))
        look(client, board, next);
}

static int meet(void *argument, const wb_pending *row)
{
    meeting *with = argument;
    (void)row;
    if (with->visits++ == 0)
        (void)wb_strangers_run(with->kit, 1, live_and_look);
    return WB_OK;
}

/* Afterwards it visits: it was kept from nothing else. */
static void check_visited(wb_kit *kit, size_t visits, size_t wanted)
{
    atomic_uint *visited = &wb_board_of(kit)->counts[VISITED];
    wb_kit_check(kit, visits == wanted, "%zu of %zu rows were visited", visits, wanted);
    wb_kit_check(kit, atomic_load(visited) == 0, "%u rows were visited by two processes at once", atomic_load(visited));
    atomic_store(visited, 0);
    if (wb_strangers_run(kit, 1, live_and_look))
        wb_kit_check(kit, atomic_load(visited) >= ROWS, "another process visits %u rows of %d afterwards", atomic_load(visited),
                     ROWS);
}

static void one_sweeps(wb_kit *kit)
{
    meeting with = { .kit = kit };
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !store_rows(a))
        return;
    atomic_store(&wb_board_of(kit)->counts[VISITED], 0);
    int r = a->ops->sweep(a->session, WB_BATCH_END, 100, meet, &with, &a->error);
    if (wb_client_check(a, r, WB_OK, "sweep"))
        check_visited(kit, with.visits, ROWS);
}

static void one_walks(wb_kit *kit)
{
    meeting with = { .kit = kit };
    if (WB_LACKS(kit, next_pending))
        return;
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !store_rows(a))
        return;
    atomic_store(&wb_board_of(kit)->counts[VISITED], 0);
    int r = a->ops->next_pending(a->session, 0, WB_BATCH_END, meet, &with, &a->error);
    if (wb_client_check(a, r, WB_OK, "visit the next row"))
        check_visited(kit, with.visits, 1);
}

/* ---- a visitor that stops ------------------------------------------------------------------ */

static int stop(void *argument, const wb_pending *row)
{
    (void)argument, (void)row;
    return WB_REJECT;
}

static int stop_sweep(wb_client *client)
{
    return client->ops->sweep(client->session, WB_BATCH_END, 100, stop, NULL, &client->error);
}

static int stop_walk(wb_client *client)
{
    return client->ops->next_pending(client->session, 0, WB_BATCH_END, stop, NULL, &client->error);
}

static int stop_look(wb_client *client)
{
    static const uint64_t batches[] = { WB_BATCH(1), WB_BATCH(2) };
    return client->ops->pending(client->session, batches, 2, stop, NULL, &client->error);
}

static int stop_list(wb_client *client)
{
    const wb_pending_filter all = { .struct_size = sizeof all, .before = UINT64_MAX };
    return client->ops->list_pending(client->session, &all, stop, NULL, &client->error);
}

/* However it looks, and it writes as well; another number each time. */
static void live_and_work(wb_client *client, unsigned which, wb_board *board)
{
    char id[24];
    const uint64_t batch = WB_BATCH(10 + atomic_load(&board->counts[WRITTEN]));
    size_t deleted;
    (void)snprintf(id, sizeof id, "order-%u", 10 + atomic_fetch_add(&board->counts[WRITTEN], 1));
    live_and_look(client, which, board);
    if (wb_client_stores(client, batch, id, "operations") &&
        wb_client_check(client, wb_client_mark(client, batch, NULL, 0), WB_OK, "mark"))
        wb_client_check(client, wb_client_clean_up(client, WB_BATCH(1), 10, &deleted), WB_OK, "clean up");
}

static void expect_work(wb_client *a, int result, const char *what)
{
    atomic_uint *visited = &wb_board_of(a->kit)->counts[VISITED];
    atomic_store(visited, 0);
    wb_kit_check(a->kit, result == WB_REJECT, "%s: the visitor's result became %s", what, wb_result_name(result));
    if (!wb_strangers_run(a->kit, 1, live_and_work))
        wb_kit_note(a->kit, "behind a visitor that stopped %s", what);
    else
        wb_kit_check(a->kit, atomic_load(visited) >= ROWS, "another process visits %u rows of %d behind a visitor that stopped %s",
                     atomic_load(visited), ROWS, what);
}

/* Whoever stopped it has nothing open, before the session is used again, and the session is whole. */
static void stopped_is_over(wb_kit *kit)
{
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !store_rows(a))
        return;
    atomic_store(&wb_board_of(kit)->counts[WRITTEN], 0);
    expect_work(a, stop_sweep(a), "a sweep");
    expect_work(a, stop_look(a), "a look at pending rows");
    if (WB_HAS(a->ops, wb_persistence_ops, next_pending))
        expect_work(a, stop_walk(a), "a visit of the next row");
    if (WB_HAS(a->ops, wb_persistence_ops, list_pending))
        expect_work(a, stop_list(a), "a list of pending rows");
    wb_client_stores(a, WB_BATCH(9), "order-9", NULL);
}

/* ---- a row that somebody has --------------------------------------------------------------- */

static int take(wb_client *client)
{
    int taken = -1;
    wb_error_clear(&client->error);
    int r = client->ops->take_pending(client->session, WB_BATCH(1), &taken, &client->error);
    return wb_client_check(client, r, WB_OK, "take a pending row") ? taken : -1;
}

static void live_and_take(wb_client *client, unsigned which, wb_board *board)
{
    (void)which;
    atomic_store(&board->counts[TAKEN], (unsigned)take(client));
}

/* A server hears later than he who closed it that a connection has ended. */
#define ENDED_WITHIN (10 * WB_SECOND)

/* @return whether it was asked. */
static int take_in_another(wb_kit *kit, int *ret_taken)
{
    int is_asked = wb_strangers_run(kit, 1, live_and_take);
    *ret_taken = (int)atomic_load(&wb_board_of(kit)->counts[TAKEN]);
    return is_asked;
}

static void expect_of_another(wb_kit *kit, int wanted, int64_t within)
{
    const int64_t until = wb_clock_monotonic() + within;
    int taken, is_asked;
    while ((is_asked = take_in_another(kit, &taken)) && taken != wanted && wb_clock_monotonic() < until)
        wb_clock_pause(100 * WB_MILLISECOND, NULL);
    if (is_asked)
        wb_kit_check(kit, taken == wanted, "another process takes a row as %d instead of %d (WB_TAKEN_x)", taken, wanted);
}

static void one_takes(wb_kit *kit)
{
    if (WB_LACKS(kit, take_pending))
        return;
    wb_client *a = wb_client_open(kit, 0);
    if (!a || !store_rows(a))
        return;
    const int taken = take(a);
    if (taken == WB_TAKEN_UNGUARDED) {
        wb_kit_skip(kit, "its sessions cannot keep a lock here");
        return;
    }
    wb_kit_check(kit, taken == WB_TAKEN, "a row is taken as %d (WB_TAKEN_x)", taken);
    expect_of_another(kit, WB_TAKEN_BY_OTHERS, 0);
    wb_client_close(a);
    expect_of_another(kit, WB_TAKEN, ENDED_WITHIN);
}

/* ---- clean-ups ------------------------------------------------------------------------------- */

#define PROCESSES 2
#define RECORDS 60
#define STEPS_MAX 2000
#define ARRIVED 1
/* A process that is not there by then is not waited for: the other goes on alone. */
#define MEET_WITHIN (10 * WB_SECOND)

static void live_and_clean(wb_client *client, unsigned which, wb_board *board)
{
    const int64_t deadline = wb_clock_monotonic() + MEET_WITHIN;
    size_t deleted = 1;
    int r = WB_OK;
    (void)which;
    (void)atomic_fetch_add(&board->counts[ARRIVED], 1);
    while (atomic_load(&board->counts[ARRIVED]) < PROCESSES && wb_clock_monotonic() < deadline)
        wb_clock_pause(WB_MILLISECOND / 5, NULL);
    for (int i = 0; r == WB_OK && deleted && i < STEPS_MAX; i++) {
        r = wb_client_clean_up(client, WB_BATCH_END, 3, &deleted);
        if (r == WB_OK)
            (void)atomic_fetch_add(&board->counts[DELETED], (unsigned)deleted);
    }
    wb_client_check(client, r, WB_OK, "clean up while another process does");
}

/* One that is kept out counts nothing; both together count each record once. */
static void two_clean_up(wb_kit *kit)
{
    wb_board *board = wb_board_of(kit);
    wb_claim claims[RECORDS];
    char ids[RECORDS][16];
    size_t deleted = 1;
    wb_client *a = wb_client_open(kit, 0);
    for (unsigned i = 0; i < RECORDS; i++)
        claims[i] = (wb_claim){ ids[i], (size_t)snprintf(ids[i], sizeof ids[i], "order-%02u", i), 0 };
    if (!a || !wb_client_takes(a, WB_BATCH(1), claims, RECORDS) ||
        !wb_client_check(a, wb_client_commit(a, WB_BATCH(1), NULL, 0), WB_OK, "commit"))
        return;
    atomic_store(&board->counts[DELETED], 0);
    atomic_store(&board->counts[ARRIVED], 0);
    if (!wb_strangers_run(kit, PROCESSES, live_and_clean))
        return;
    /* both may have been kept out by the other one's last step */
    while (deleted && wb_client_check(a, wb_client_clean_up(a, WB_BATCH_END, 3, &deleted), WB_OK, "clean up"))
        (void)atomic_fetch_add(&board->counts[DELETED], (unsigned)deleted);
    wb_kit_check(kit, atomic_load(&board->counts[DELETED]) == RECORDS, "processes that clean up count %u of %d records",
                 atomic_load(&board->counts[DELETED]), RECORDS);
}

#define OUTBOX WB_CAP_OUTBOX
static const wb_kit_case cases[] = {
    { "while one process sweeps another visits nothing", OUTBOX, one_sweeps },
    { "while one process visits a row another visits none", OUTBOX, one_walks },
    { "behind a visitor that stopped another process visits and writes", OUTBOX, stopped_is_over },
    { "take_pending(): of two processes one has a row", OUTBOX, one_takes },
    { "two processes that clean up at once delete each record once", OUTBOX, two_clean_up },
};
const wb_kit_group wb_cases_between = WB_KIT_GROUP(cases);
