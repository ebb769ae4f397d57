/* SPDX-License-Identifier: Apache-2.0
 *
 * Probation. A message whose handler ends the process comes back with a higher delivery
 * count each time, and takes with it the count of everything that was prefetched beside it.
 * So an endpoint starts with one worker that takes one message at a time, until it sees one
 * that is not suspected, or none. Only the suspect itself is then in hand when the process
 * ends again, and only its count rises, until recoverability gives it up.
 */
#include "config.h"

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/pipeline/stages.h"

static void end_probation(wb_pipeline *p)
{
    pthread_mutex_lock(&p->probation_lock);
    p->on_probation = 0;
    pthread_cond_broadcast(&p->probation_over);
    pthread_mutex_unlock(&p->probation_lock);
}

void wb_probation_check(wb_worker *w, size_t received)
{
    wb_pipeline *p = w->pipeline;
    if (!p->on_probation || w->number != 0)
        return;
    if (!received || w->held[0].incoming->delivery_count < WB_SUSPECT_DELIVERIES) {
        end_probation(p);
        return;
    }
    wb_log_event(WB_LOG_WARNING, "message handled by itself: it may have ended the process before",
                 { "endpoint", p->endpoint }, { "message_id", w->held[0].incoming->id });
}

int wb_probation_wait(wb_worker *w)
{
    wb_pipeline *p = w->pipeline;
    if (w->number == 0)
        return !p->stop;
    pthread_mutex_lock(&p->probation_lock);
    while (p->on_probation && !p->stop)
        pthread_cond_wait(&p->probation_over, &p->probation_lock);
    pthread_mutex_unlock(&p->probation_lock);
    return !p->stop;
}
