/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/pipeline/pace.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/log.h"

#define PAUSE_MIN (10 * WB_MILLISECOND)
#define PAUSE_MAX (5 * WB_SECOND)
#define HINDERED_MAX (5 * WB_SECOND)
#define COMPLAIN_EVERY (30 * WB_SECOND)

/* A quarter of jitter, so that workers do not move in step. */
void wb_pace_back_off(wb_worker *w)
{
    static _Thread_local unsigned seed;
    if (!seed)
        seed = (unsigned)wb_clock_wall() ^ w->number;
    if (w->pause) {
        int64_t jitter = w->pause / 4 * (int64_t)(rand_r(&seed) % 1000) / 1000;
        wb_clock_pause(w->pause - jitter, &w->pipeline->stop);
    }
    w->pause = w->pause ? w->pause * 2 : PAUSE_MIN;
    if (w->pause > PAUSE_MAX)
        w->pause = PAUSE_MAX;
}

/* One line when it starts, one each half minute, one when it is over: no flood. */
void wb_pace_complain(wb_worker *w, const char *text, const wb_error *error)
{
    int64_t now = wb_clock_monotonic();
    char number[12];
    if (w->complained && now - w->complained < COMPLAIN_EVERY)
        return;
    w->complained = now;
    (void)snprintf(number, sizeof number, "%u", w->number);
    wb_log_event(WB_LOG_ERROR, text, { "endpoint", w->pipeline->endpoint }, { "worker", number },
                 { "class", wb_result_name(error->result) }, { "reason", error->text });
}

void wb_pace_take_turn(wb_worker *w, wb_waiter *waiter)
{
    const atomic_int *stop = &w->pipeline->stop;
    int64_t wait;
    if (!waiter->waits)
        wb_pace_back_off(w);
    while (!*stop && !w->pipeline->is_critical && (wait = wb_waiter_turn(waiter, wb_clock_monotonic())) > 0) {
        atomic_store(&w->beat, wb_clock_monotonic());
        wb_clock_pause(wait, stop);
    }
}

int wb_pace_wait_for_server(wb_waiter *waiter, int result, wb_error *error)
{
    if (result == WB_OK || result == WB_FATAL) {
        wb_waiter_met(waiter);
        return result;
    }
    error->result = result;
    wb_waiter_missed(waiter, error, wb_clock_monotonic());
    return WB_NOT_CONNECTED;
}

void wb_pace_judge_transport(wb_worker *w, int result)
{
    const int64_t now = result == WB_OK ? 0 : wb_clock_monotonic();
    if (!now || !w->hindered)
        w->hindered = now;
    if (now && (result != WB_RETRY || now - w->hindered >= HINDERED_MAX))
        w->transport_broken = 1;
}

void wb_pace_go_on(wb_worker *w)
{
    if (w->complained)
        wb_log_event(WB_LOG_INFO, "at work again", { "endpoint", w->pipeline->endpoint });
    w->complained = 0;
    w->pause = 0;
}
