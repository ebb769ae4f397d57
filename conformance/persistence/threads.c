/* SPDX-License-Identifier: Apache-2.0
 *
 * The persistence kit: workers that compete for the same messages.
 */
#include "config.h"

#include <string.h>

#include "conformance/persistence/actor.h"
#include "conformance/persistence/persistence.h"

#define WORKERS 4
#define ROUNDS 12
#define IDS 16
#define TRIES_MAX 200

typedef struct {
    wb_client *client;
    unsigned number;
    unsigned round;
    char ids[IDS][8];
    unsigned committed[IDS]; /* how often this worker made the id its own in this round */
} worker;

static uint64_t batch_of(const worker *w, int attempt)
{
    return WB_BATCH(((uint64_t)w->round * TRIES_MAX + (unsigned)attempt) * WORKERS + w->number + 1);
}

static int gives_back(const worker *w, size_t id, int attempt)
{
    return attempt < 3 && id % 3 == w->number % 3;
}

/* At first every third id goes back, for whoever comes next. */
static int commit(worker *w, const wb_claim *claims, uint64_t batch, int attempt)
{
    wb_claim released[IDS];
    size_t count = 0;
    for (size_t i = 0; i < IDS; i++)
        if (!claims[i].duplicate_of && gives_back(w, i, attempt))
            released[count++] = claims[i];
    int r = wb_client_commit_releasing(w->client, batch, "operations", 10, released, count);
    for (size_t i = 0; r == WB_OK && i < IDS; i++)
        w->committed[i] += !claims[i].duplicate_of && !gives_back(w, i, attempt);
    return r == WB_OK && count ? WB_RETRY : r;
}

/* Claims all ids, as a redelivered batch does. Workers roll back in turns once, so that those
 * who wait get some of the ids, too. */
static int try_batch(worker *w, int attempt)
{
    wb_claim claims[IDS];
    uint64_t batch = batch_of(w, attempt);
    for (size_t i = 0; i < IDS; i++)
        claims[i] = (wb_claim){ w->ids[i], strlen(w->ids[i]), 0 };
    int r = wb_client_begin(w->client, batch, claims, IDS);
    if (r != WB_OK)
        return r;
    if (attempt == 0 && (w->round + w->number) % 2 == 0) {
        r = wb_client_rollback(w->client);
        return r == WB_OK ? WB_RETRY : r;
    }
    return commit(w, claims, batch, attempt);
}

static void work(void *argument)
{
    worker *w = argument;
    int r = WB_RETRY;
    for (int i = 0; i < TRIES_MAX && (r == WB_RETRY || r == WB_ABORT); i++)
        r = try_batch(w, i);
    wb_client_check(w->client, r, WB_OK, "claim what others claim, too");
}

static void prepare(worker *w, unsigned round)
{
    w->round = round;
    memset(w->committed, 0, sizeof w->committed);
    for (unsigned i = 0; i < IDS; i++) /* ascending */
        (void)snprintf(w->ids[i], sizeof w->ids[i], "%03u-%02u", round, i);
}

static int run_round(wb_kit *kit, worker *workers, wb_actor *actors, unsigned round)
{
    for (unsigned i = 0; i < WORKERS; i++)
        prepare(&workers[i], round);
    for (unsigned i = 0; i < WORKERS; i++)
        wb_actor_do(&actors[i], work, &workers[i]);
    for (unsigned i = 0; i < WORKERS; i++)
        wb_actor_await(kit, &actors[i]);
    for (size_t id = 0; id < IDS; id++) {
        unsigned times = 0;
        for (unsigned i = 0; i < WORKERS; i++)
            times += workers[i].committed[id];
        if (!wb_kit_check(kit, times == 1, "id \"%s\" took effect %u times", workers[0].ids[id], times))
            return 0;
    }
    return 1;
}

static void each_id_once(wb_kit *kit)
{
    worker workers[WORKERS] = { 0 };
    wb_actor actors[WORKERS];
    for (unsigned i = 0; i < WORKERS; i++) {
        workers[i].number = i;
        WB_KIT_REQUIRE(kit, (workers[i].client = wb_client_open(kit, 0)) != NULL, "there is no session");
    }
    for (unsigned i = 0; i < WORKERS; i++)
        wb_actor_start(&actors[i]);
    for (unsigned round = 0; round < ROUNDS; round++)
        if (!run_round(kit, workers, actors, round))
            break;
    for (unsigned i = 0; i < WORKERS; i++)
        wb_actor_stop(&actors[i]);
}

static const wb_kit_case cases[] = {
    { "four workers claim the same ids, each takes effect once", WB_CAP_OUTBOX,
      each_id_once },
};
const wb_kit_group wb_cases_threads = WB_KIT_GROUP(cases);
