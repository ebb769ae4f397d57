/* SPDX-License-Identifier: Apache-2.0
 *
 * Stage 1: take messages that are already there, one to `take`, and look whether each can
 * be handled at all. Nothing is acknowledged.
 */
#include "config.h"

#include <stdio.h>

#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/pipeline/admit.h"
#include "core/pipeline/batch.h"
#include "core/pipeline/pace.h"
#include "core/pipeline/scout.h"
#include "core/pipeline/stages.h"

/* A worker with nothing to do looks around this often; stopping interrupts it. */
#define IDLE_WAIT (5 * WB_SECOND)

static int has_something_to_settle(const wb_worker *w)
{
    return w->settled_count || w->mark_count || w->record;
}

static int64_t wait_until(const wb_worker *w)
{
    int64_t idle = wb_clock_monotonic() + IDLE_WAIT, next = wb_batch_next_time(w);
    if (has_something_to_settle(w) || w->pipeline->stop)
        return 0; /* only what is there: the messages before wait for their mark */
    return next < idle ? next : idle; /* in the past when one that was set aside is due */
}

/* Too many are set aside: more would be more memory. Whoever is due first runs next. */
static void wait_for_those_aside(wb_worker *w)
{
    wb_error why = { .result = WB_RETRY };
    (void)snprintf(why.text, sizeof why.text,
                   "%zu messages in hand wait for a server, or for an error queue that takes them",
                   wb_batch_count_aside(w));
    wb_pace_complain(w, "takes no more messages", &why);
    int64_t wait = wb_batch_next_time(w) - wb_clock_monotonic();
    if (!has_something_to_settle(w) && wait > 0)
        wb_clock_pause(wait < IDLE_WAIT ? wait : IDLE_WAIT, &w->pipeline->stop);
}

static size_t count_wanted(const wb_worker *w)
{
    size_t room = wb_batch_room(w);
    if (wb_batch_count_aside(w) >= WB_ASIDE_MAX)
        return 0;
    return room < w->take ? room : w->take;
}

int wb_stage_receive(wb_worker *w, wb_error *error)
{
    wb_pipeline *p = w->pipeline;
    const wb_incoming *messages[w->held_max];
    size_t count = 0, wanted = count_wanted(w);

    if (!wanted) {
        wait_for_those_aside(w);
        return WB_OK;
    }
    wb_scout_look(w, NULL, 0);
    wb_batch_note_empty(w);
    int r = p->transport_ops->receive(w->transport, wait_until(w), messages, wanted, &count, error);
    wb_pace_judge_transport(w, r);
    if (r != WB_OK) {
        atomic_store_explicit(&w->empty_since, 0, memory_order_relaxed);
        return r;
    }
    wb_scout_look(w, messages, count);
    if (count)
        atomic_store_explicit(&w->empty_since, 0, memory_order_relaxed);
    for (size_t i = 0; i < count; i++)
        wb_admit(w, wb_batch_hold(w, messages[i], NULL));
    if (count)
        wb_crash_point("after_receive");
    return WB_OK;
}
