/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/pipeline/distrust.h"

#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/base/log.h"

static int waits(const wb_pipeline *p, _Atomic int64_t *missing_since, int result, const wb_error *error)
{
    int64_t since = 0, now;
    if (result != WB_FATAL || error->cause != WB_CAUSE_MISSING || !p->missing_patience)
        return 0;
    now = wb_clock_monotonic();
    return atomic_compare_exchange_strong(missing_since, &since, now) || now - since < p->missing_patience;
}

static void found(_Atomic int64_t *missing_since)
{
    if (atomic_load_explicit(missing_since, memory_order_relaxed))
        atomic_store(missing_since, 0);
}

int wb_distrust_waits(wb_worker *w, int result, const wb_error *error)
{
    return waits(w->pipeline, &w->pipeline->missing_since, result, error);
}

void wb_distrust_found(wb_worker *w)
{
    found(&w->pipeline->missing_since);
}

int wb_distrust_apart_waits(wb_worker *w, int result, const wb_error *error)
{
    return waits(w->pipeline, &w->pipeline->apart_missing_since, result, error);
}

void wb_distrust_apart_found(wb_worker *w)
{
    found(&w->pipeline->apart_missing_since);
}

int wb_distrust(wb_worker *w, int result, wb_error *error)
{
    if (result != WB_FATAL || wb_bug("believe_fatal"))
        return result;
    if (!w->storage_used)
        return wb_distrust_waits(w, result, error) ? WB_RETRY : result;
    wb_log_event(WB_LOG_WARNING, "database session refuses, which a handler may have caused: it is given up",
                 { "endpoint", w->pipeline->endpoint }, { "reason", error->text });
    w->storage_broken = w->storage_distrusted = 1;
    error->result = WB_NOT_CONNECTED;
    return WB_NOT_CONNECTED;
}

int wb_distrust_shared(wb_worker *w, int result, wb_error *error)
{
    if (result != WB_FATAL || w->pipeline->mode != WB_MODE_TRANSACTION_SCOPE || !w->storage || !w->may_have_ended ||
        wb_bug("believe_fatal"))
        return result;
    error->result = WB_RETRY;
    error->cause = WB_CAUSE_OTHER;
    return WB_RETRY;
}

int wb_distrust_store(wb_worker *w, int result, wb_error *error)
{
    result = wb_distrust(w, result, error);
    w->storage_broken |= result == WB_NOT_CONNECTED;
    return result;
}
