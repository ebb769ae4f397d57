/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/pipeline/scout.h"

#include "core/base/clock.h"
#include "core/base/crash.h"

/* So long the scout is alone at most. */
#define LONGEST (10 * WB_SECOND)
/* In the place of a time: long ago. */
#define OVER 1

/* Nothing is written down, and the broker may have a limit that nobody sees. With transports that
 * keep the order of a key each worker has messages of its own, and those of one say nothing of others'. */
static int is_in_the_dark(const wb_pipeline *p)
{
    return !p->outbox && !p->ordered && WB_HAS(p->transport_ops, wb_transport_ops, limits);
}

static int is_wanted(const wb_pipeline *p)
{
    return (p->recoverability.delivery_limit || is_in_the_dark(p)) && p->mode != WB_MODE_NONE &&
           !wb_bug("no_scout");
}

int wb_scout_lets_receive(const wb_worker *w)
{
    if (w->number == 0 || !is_wanted(w->pipeline))
        return 1;
    int64_t until = atomic_load(&w->pipeline->scouting_until);
    return until && wb_clock_monotonic() >= until;
}

void wb_scout_look(wb_worker *w, const wb_incoming *const *messages, size_t count)
{
    _Atomic int64_t *until = &w->pipeline->scouting_until;
    if (w->number != 0 || atomic_load(until) == OVER)
        return;
    if (!atomic_load(until))
        atomic_store(until, wb_clock_monotonic() + LONGEST);
    for (size_t i = 0; i < count; i++)
        if (!messages[i]->delivery_count)
            atomic_store(until, OVER);
}

void wb_scout_end(wb_worker *w)
{
    if (w->number == 0)
        atomic_store(&w->pipeline->scouting_until, OVER);
}
