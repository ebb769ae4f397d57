/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/pipeline/scout.h"

#include "core/base/clock.h"
#include "core/base/crash.h"

/* So long the scout is alone at most. */
#define LONGEST (10 * WB_SECOND)
/* And so long after it began, and after what came back last: so late a busy broker may notice that a
 * process is no more, and what that had in hand comes back behind messages that were never delivered
 * (of one that says so, none does). */
#define SHORTEST (500 * WB_MILLISECOND)
/* In the place of a time: long ago. */
#define OVER 1

/* Nothing is written down: deliveries alone tell who ends the process, and each death counts one for all that was
 * in hand; and the broker may have a limit that nobody sees. With transports that
 * keep the order of a key each worker has messages of its own, and those of one say nothing of others'. */
static int is_in_the_dark(const wb_pipeline *p)
{
    return !p->outbox && !p->ordered;
}

static int is_wanted(const wb_pipeline *p)
{
    return (p->recoverability.delivery_limit || is_in_the_dark(p)) && p->mode != WB_MODE_NONE &&
           !wb_bug("no_scout");
}

/* Once anybody has seen that it is over it stays so: nobody who began stands still again. */
static int is_over(wb_pipeline *p)
{
    int64_t until = atomic_load(&p->scouting_until);
    if (until == OVER)
        return 1;
    return until && wb_clock_monotonic() >= until &&
           atomic_compare_exchange_strong(&p->scouting_until, &until, OVER);
}

/* Whether the worker is the scout, from now on or still. */
static int is_scout(const wb_worker *w)
{
    return w->number == 0 && is_wanted(w->pipeline) && !is_over(w->pipeline);
}

int wb_scout_lets_receive(const wb_worker *w)
{
    return w->number == 0 || !is_wanted(w->pipeline) || is_over(w->pipeline);
}

int wb_scout_lets_grow(const wb_worker *w)
{
    return !is_scout(w);
}

static void note(wb_pipeline *p, const wb_incoming *const *messages, size_t count, int64_t now)
{
    for (size_t i = 0; i < count; i++)
        if (messages[i]->delivery_count)
            p->scouting_returns = now;
        else
            p->scouting_has_fresh = 1;
}

static void extend(wb_pipeline *p)
{
    int64_t quiet = p->scouting_returns + (p->returns_first || wb_bug("short_scout") ? 0 : SHORTEST);
    int64_t until = atomic_load(&p->scouting_until);
    if (until != OVER)
        (void)atomic_compare_exchange_strong(&p->scouting_until, &until,
                                             quiet < p->scouting_ends ? quiet : p->scouting_ends);
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
    note(p, messages, count, now);
    if (p->scouting_has_fresh)
        extend(p);
}

void wb_scout_end(wb_worker *w)
{
    if (w->number == 0)
        atomic_store(&w->pipeline->scouting_until, OVER);
}
