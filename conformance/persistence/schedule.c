/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a spec in every interleaving of its two lists. Each session has a thread of its own. A
 * step that has not returned within a moment is waiting, and the schedule goes on with the
 * other session; its own steps come when it is back. A slow machine so takes a slow step for
 * a waiting one, which changes the order and breaks nothing: the ledger knows when each step
 * began and ended.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "conformance/persistence/actor.h"
#include "conformance/persistence/specs.h"

#define A_MOMENT (40 * WB_MILLISECOND)

typedef struct {
    wb_kit *kit;
    const wb_spec *spec;
    wb_client *look; /* prepares and checks */
    wb_client *clients[2];
    wb_actor actors[2];
    const wb_event *open[3]; /* the begin of the transaction that is open; by session */
    size_t next[2];          /* of the steps of a session */
    wb_ledger ledger;
    _Atomic uint64_t sequence;
} schedule;

/* ---- one step -------------------------------------------------------------------------- */

typedef struct {
    schedule *all;
    wb_client *client;
    wb_event *event;
} turn;

static void begin(schedule *all, wb_client *client, wb_event *event)
{
    const wb_step *step = event->step;
    for (const char *id = step->ids; *id; id++)
        event->claims[event->claim_count++] = (wb_claim){ id, 1, 0 };
    event->result = wb_client_begin(client, WB_BATCH(step->batch), event->claims, event->claim_count);
    all->open[event->session] = event->result == WB_OK ? event : NULL;
}

/* Only what was ours can be given back. */
static void commit(schedule *all, wb_client *client, wb_event *event)
{
    const wb_event *begun = all->open[event->session];
    for (size_t i = 0; i < begun->claim_count; i++)
        if (!begun->claims[i].duplicate_of && strchr(event->step->ids, *(const char *)begun->claims[i].id))
            event->claims[event->claim_count++] = begun->claims[i];
    event->result = wb_client_commit_releasing(client, WB_BATCH(event->step->batch), "operations", 10,
                                               event->claims, event->claim_count);
    all->open[event->session] = NULL;
}

static void sweep(wb_client *client, wb_event *event)
{
    wb_found found;
    event->result = wb_client_sweep(client, WB_BATCH_END, WB_STEP_BATCHES, &found);
    event->visited_count = found.count;
    memcpy(event->visited, found.batches, found.count * sizeof *found.batches);
    free(found.operations);
}

/* A transaction that did not begin has no end. */
static int has_happened(const schedule *all, const wb_event *event)
{
    int is_end = event->step->kind == WB_STEP_COMMIT || event->step->kind == WB_STEP_ROLLBACK;
    return !is_end || all->open[event->session];
}

static void take_turn(void *argument)
{
    turn *my = argument;
    wb_event *event = my->event;
    size_t deleted;
    if (!has_happened(my->all, event))
        event->result = WB_RETRY;
    else
        switch (event->step->kind) {
        case WB_STEP_BEGIN: begin(my->all, my->client, event); break;
        case WB_STEP_COMMIT: commit(my->all, my->client, event); break;
        case WB_STEP_ROLLBACK:
            event->result = wb_client_rollback(my->client);
            my->all->open[event->session] = NULL;
            break;
        case WB_STEP_MARK:
            event->result = wb_client_mark(my->client, WB_BATCH(event->step->batch), NULL, 0);
            break;
        case WB_STEP_SWEEP: sweep(my->client, event); break;
        default:
            event->result = wb_client_clean_up(my->client, WB_BATCH_END, WB_STEP_BATCHES, &deleted);
        }
    event->ended = ++my->all->sequence;
}

static wb_event *note(schedule *all, const wb_step *step, unsigned session)
{
    wb_event *event = &all->ledger.events[all->ledger.count++];
    *event = (wb_event){ .step = step, .session = session, .started = ++all->sequence };
    return event;
}

/* ---- one interleaving ------------------------------------------------------------------ */

static void prepare(schedule *all)
{
    all->ledger.count = 0;
    all->next[0] = all->next[1] = 0;
    memset(all->open, 0, sizeof all->open);
    if (!wb_client_empties(all->look))
        return;
    for (const wb_step *step = all->spec->before; step->kind; step++)
        take_turn(&(turn){ all, all->look, note(all, step, 2) });
}

/* The first turn in order whose session is not waiting. @return its place, or `count`. */
static size_t find_turn(schedule *all, const unsigned char *order, size_t count)
{
    int is_idle[2] = { wb_actor_is_idle(&all->actors[0], 0), wb_actor_is_idle(&all->actors[1], 0) };
    size_t at = 0;
    while (at < count && !is_idle[order[at]])
        at++;
    return at;
}

static void run_order(schedule *all, const unsigned char *wanted, size_t count)
{
    unsigned char order[2 * WB_STEPS_MAX];
    turn turns[2];
    memcpy(order, wanted, count);
    while (count) {
        size_t at = find_turn(all, order, count);
        if (at == count) { /* those whose turn it could be are waiting */
            wb_actor_await(all->kit, &all->actors[order[0]]);
            continue;
        }
        unsigned session = order[at];
        memmove(order + at, order + at + 1, --count - at);
        const wb_step *step = &all->spec->steps[session][all->next[session]++];
        turns[session] = (turn){ all, all->clients[session], note(all, step, session) };
        wb_actor_do(&all->actors[session], take_turn, &turns[session]);
        (void)wb_actor_is_idle(&all->actors[session], A_MOMENT);
    }
    for (int i = 0; i < 2; i++)
        wb_actor_await(all->kit, &all->actors[i]);
}

/* What is left open is rolled back, as if its process had died. */
static void end_open(schedule *all)
{
    for (unsigned i = 0; i < 2; i++)
        if (all->open[i])
            wb_client_check(all->clients[i], wb_client_rollback(all->clients[i]), WB_OK, "roll back");
}

static void describe(schedule *all)
{
    char text[40];
    wb_kit_check(all->kit, 0, "in the order:");
    for (size_t i = 0; i < all->ledger.count; i++) {
        const wb_event *event = &all->ledger.events[i];
        wb_step_describe(event->step, text, sizeof text);
        wb_kit_check(all->kit, 0, "  session %u: %s: %s (from %u to %u)", event->session, text,
                     wb_result_name(event->result), (unsigned)event->started, (unsigned)event->ended);
    }
}

static void run_interleaving(schedule *all, const unsigned char *order, size_t count)
{
    prepare(all);
    run_order(all, order, count);
    end_open(all);
    if (!wb_ledger_check(&all->ledger, all->look) || all->kit->is_failed)
        describe(all);
}

/* ---- all of them ----------------------------------------------------------------------- */

/* Each way to write `zeros` zeros and `ones` ones in a row, after the first `count`. */
static void interleave(schedule *all, unsigned char *order, size_t count, size_t zeros, size_t ones)
{
    if (all->kit->is_failed)
        return;
    if (!zeros && !ones) {
        run_interleaving(all, order, count);
        return;
    }
    if (zeros) {
        order[count] = 0;
        interleave(all, order, count + 1, zeros - 1, ones);
    }
    if (ones) {
        order[count] = 1;
        interleave(all, order, count + 1, zeros, ones - 1);
    }
}

void wb_spec_run(wb_kit *kit, const wb_spec *spec)
{
    unsigned char order[2 * WB_STEPS_MAX];
    schedule all = { .kit = kit, .spec = spec, .look = wb_client_open(kit, 0) };
    for (int i = 0; i < 2; i++)
        all.clients[i] = wb_client_open(kit, 0);
    if (!all.look || !all.clients[0] || !all.clients[1])
        return;
    for (int i = 0; i < 2; i++)
        wb_actor_start(&all.actors[i]);
    interleave(&all, order, 0, wb_steps_count(spec->steps[0]), wb_steps_count(spec->steps[1]));
    for (int i = 0; i < 2; i++)
        wb_actor_stop(&all.actors[i]);
}
