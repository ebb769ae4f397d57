/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/pipeline/scout.h"

#include "core/base/clock.h"
#include "core/base/crash.h"

/* So long the scout is alone at most. */
#define LONGEST (10 * WB_SECOND)
/* And at least: so late a busy broker may notice that a process is no more, and what that had in hand
 * comes back behind messages that were never delivered. */
#define SHORTEST (500 * WB_MILLISECOND)
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

/* Whether the worker is the scout, from now on or still. */
static int is_scout(const wb_worker *w)
{
    wb_pipeline *p = w->pipeline;
    int64_t until = atomic_load(&p->scouting_until);
    if (w->number != 0 || until == OVER || !is_wanted(p))
        return 0;
    if (!until || wb_clock_monotonic() < until)
        return 1;
    atomic_store(&p->scouting_until, OVER);
    return 0;
}

int wb_scout_lets_receive(const wb_worker *w)
{
    if (w->number == 0 || !is_wanted(w->pipeline))
        return 1;
    int64_t until = atomic_load(&w->pipeline->scouting_until);
    return until && wb_clock_monotonic() >= until;
}

int wb_scout_lets_grow(const wb_worker *w)
{
    return !is_scout(w);
}

/* @return whether one of them was never delivered before. */
static int note_returns(wb_pipeline *p, const wb_incoming *const *messages, size_t count, int64_t now)
{
    int has_first = 0;
    for (size_t i = 0; i < count; i++)
        if (messages[i]->delivery_count)
            p->scouting_returns = now;
        else
            has_first = 1;
    return has_first;
}

void wb_scout_look(wb_worker *w, const wb_incoming *const *messages, size_t count)
{
    wb_pipeline *p = w->pipeline;
    if (!is_scout(w))
        return;
    int64_t now = wb_clock_monotonic();
    if (!atomic_load(&p->scouting_until)) {
        p->scouting_returns = now;
        p->scouting_ends = now + LONGEST;
        atomic_store(&p->scouting_until, p->scouting_ends);
    }
    if (note_returns(p, messages, count, now)) {
        int64_t quiet = p->scouting_returns + (wb_bug("short_scout") ? 0 : SHORTEST);
        atomic_store(&p->scouting_until, quiet < p->scouting_ends ? quiet : p->scouting_ends);
    }
}

void wb_scout_end(wb_worker *w)
{
    if (w->number == 0)
        atomic_store(&w->pipeline->scouting_until, OVER);
}
