/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/pipeline/breaker.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/pipeline/pipeline.h"

/* Longer than any pause between two tries: without a failure for so long it is over, though nobody tried. */
#define FORGOTTEN_AFTER (60 * WB_SECOND)

void wb_breaker_succeeded(wb_breaker *b, const wb_pipeline *p)
{
    char seconds[24];
    int64_t armed = atomic_load(&b->armed);
    if (!armed || !atomic_exchange(&b->armed, 0))
        return;
    if (!atomic_exchange(&b->is_open, 0))
        return;
    (void)snprintf(seconds, sizeof seconds, "%" PRId64, (wb_clock_monotonic() - armed) / WB_SECOND);
    wb_log_event(WB_LOG_INFO, "the circuit breaker is closed again", { "endpoint", p->endpoint },
                 { "what", b->what }, { "seconds", seconds });
}

static void open_circuit(wb_breaker *b, wb_pipeline *p, const wb_error *error)
{
    wb_log_event(WB_LOG_ERROR, "critical error: a circuit breaker opened", { "endpoint", p->endpoint },
                 { "what", b->what }, { "class", wb_result_name(error->result) }, { "reason", error->text });
    if (p->stops_on_critical)
        atomic_store(&p->is_critical, 1);
}

void wb_breaker_reset(wb_breaker *b)
{
    atomic_store(&b->armed, 0);
    atomic_store(&b->is_open, 0);
}

/* That a server is away has a line of its own (dependency.h). */
static void tell_armed(const wb_breaker *b, const wb_pipeline *p, const wb_error *error)
{
    int is_told = error->result == WB_NOT_CONNECTED || error->result == WB_IN_DOUBT;
    wb_log_event(is_told ? WB_LOG_DEBUG : WB_LOG_WARNING,
                 "a circuit breaker is armed: it is tried again", { "endpoint", p->endpoint }, { "what", b->what },
                 { "class", wb_result_name(error->result) }, { "reason", error->text });
}

void wb_breaker_failed(wb_breaker *b, wb_pipeline *p, const wb_error *error)
{
    int64_t now = wb_clock_monotonic(), none = 0;
    if (now - atomic_exchange(&b->failed, now) > b->after + FORGOTTEN_AFTER && !b->is_open)
        atomic_store(&b->armed, 0); /* another affair */
    if (p->stop || atomic_compare_exchange_strong(&b->armed, &none, now)) {
        if (!p->stop)
            tell_armed(b, p, error);
        return;
    }
    if (now - none >= b->after && !atomic_exchange(&b->is_open, 1))
        open_circuit(b, p, error);
}
