/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/pipeline/rate.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/base/log.h"

/* While it is another worker's turn, nobody knows for how long. */
#define ASK_AGAIN (50 * WB_MILLISECOND)

static void tell_began(const wb_rate_limit *limit, const char *endpoint)
{
    char failures[12], milliseconds[24], times[24];
    (void)snprintf(failures, sizeof failures, "%u", limit->after);
    (void)snprintf(milliseconds, sizeof milliseconds, "%" PRId64, limit->wait / WB_MILLISECOND);
    (void)snprintf(times, sizeof times, "%" PRIu64, atomic_load(&limit->times));
    wb_log_event(WB_LOG_WARNING, "attempts fail in a row: one is made at a time from now on",
                 { "endpoint", endpoint }, { "failures", failures }, { "wait_ms", milliseconds },
                 { "times", times });
}

void wb_rate_failed(wb_rate_limit *limit, const char *endpoint)
{
    int64_t now = wb_clock_monotonic(), none = 0;
    if (!limit->after || atomic_fetch_add(&limit->failures, 1) + 1 < limit->after)
        return;
    if (!atomic_compare_exchange_strong(&limit->since, &none, now ? now : 1))
        return;
    atomic_fetch_add(&limit->times, 1);
    tell_began(limit, endpoint);
}

void wb_rate_succeeded(wb_rate_limit *limit, const char *endpoint)
{
    char seconds[24];
    if (!atomic_load(&limit->failures))
        return;
    atomic_store(&limit->failures, 0);
    int64_t since = wb_bug("limited_for_ever") ? 0 : atomic_exchange(&limit->since, 0);
    if (!since)
        return;
    (void)snprintf(seconds, sizeof seconds, "%" PRId64, (wb_clock_monotonic() - since) / WB_SECOND);
    wb_log_event(WB_LOG_INFO, "a message was handled: attempts are limited no longer",
                 { "endpoint", endpoint }, { "seconds", seconds });
}

/* Behind the last attempt, and behind the failure that began it. */
static int64_t left_to_wait(const wb_rate_limit *limit)
{
    int64_t first = atomic_load(&limit->since) + limit->wait, next = atomic_load(&limit->next);
    return (next > first ? next : first) - wb_clock_monotonic();
}

int64_t wb_rate_take_turn(wb_rate_limit *limit, const void *worker)
{
    const void *nobody = NULL;
    int64_t left;
    if (!wb_rate_is_limited(limit))
        return 0;
    if ((left = left_to_wait(limit)) > 0)
        return left;
    if (!atomic_compare_exchange_strong(&limit->turn, &nobody, worker))
        return nobody == worker ? 0 : ASK_AGAIN;
    if ((left = left_to_wait(limit)) > 0) /* somebody has had his turn since we looked */
        atomic_store(&limit->turn, NULL);
    return left > 0 ? left : 0;
}

void wb_rate_give_turn(wb_rate_limit *limit, const void *worker)
{
    if (atomic_load(&limit->turn) != worker)
        return;
    atomic_store(&limit->next, wb_clock_monotonic() + limit->wait);
    atomic_store(&limit->turn, NULL);
}
