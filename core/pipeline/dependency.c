/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/pipeline/dependency.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/log.h"

/* How soon those who wait look whether the one who asks got an answer. */
#define LOOK_AGAIN (20 * WB_MILLISECOND)

static const struct {
    const char *away, *unusable, *back;
} texts[] = {
    [WB_DEPENDENCY_BROKER] = { "the broker is away", "the broker cannot be used: waiting", "the broker is back" },
    [WB_DEPENDENCY_DATABASE] = { "the database is away", "the database cannot be used: waiting",
                                 "the database is back" },
    [WB_DEPENDENCY_APART] = { "the deduplication store is away", "the deduplication store cannot be used: waiting",
                              "the deduplication store is back" },
};

void wb_dependency_init(wb_dependency *d, int kind)
{
    *d = (wb_dependency){ .kind = kind, .seed = (unsigned)wb_clock_wall() ^ (unsigned)(uintptr_t)d };
    pthread_mutex_init(&d->lock, NULL);
}

void wb_dependency_free(wb_dependency *d)
{
    pthread_mutex_destroy(&d->lock);
}

/* ---- waiters ---------------------------------------------------------------------------- */

int64_t wb_waiter_turn(wb_waiter *waiter, int64_t now)
{
    wb_dependency *d = waiter->dependency;
    int64_t wait = 0;
    pthread_mutex_lock(&d->lock);
    if (d->in_turns && d->asking)
        wait = LOOK_AGAIN;
    else if (d->in_turns && now < d->due)
        wait = d->due - now; /* nobody asks before: there is no answer to miss */
    else if (d->in_turns)
        d->asking = waiter;
    pthread_mutex_unlock(&d->lock);
    return wait;
}

/* Those who asked beside each other and failed are one failure. */
static void take_turns(wb_dependency *d, int64_t now)
{
    d->in_turns = 1;
    d->asking = NULL;
    d->pause = d->pause ? 2 * d->pause : WB_DEPENDENCY_PAUSE_MIN;
    if (d->pause > WB_DEPENDENCY_PAUSE_MAX)
        d->pause = WB_DEPENDENCY_PAUSE_MAX;
    d->due = now + d->pause - d->pause / 4 * (int64_t)(rand_r(&d->seed) % 1000) / 1000;
}

void wb_waiter_missed(wb_waiter *waiter, const wb_error *error, int64_t now)
{
    wb_dependency *d = waiter->dependency;
    pthread_mutex_lock(&d->lock);
    if (!waiter->waits && d->waiting++ == 0)
        d->away_since = now;
    waiter->waits = 1;
    d->error = *error;
    if (!d->in_turns || d->asking == waiter)
        take_turns(d, now);
    pthread_mutex_unlock(&d->lock);
}

static void stop_waiting(wb_dependency *d, wb_waiter *waiter)
{
    if (d->asking == waiter)
        d->asking = NULL;
    if (waiter->waits && --d->waiting == 0) {
        d->away_since = 0;
        d->pause = 0;
        d->in_turns = 0;
    }
    waiter->waits = 0;
}

void wb_waiter_met(wb_waiter *waiter)
{
    wb_dependency *d = waiter->dependency;
    pthread_mutex_lock(&d->lock);
    d->in_turns = 0;
    stop_waiting(d, waiter);
    pthread_mutex_unlock(&d->lock);
}

void wb_waiter_note(wb_waiter *waiter, int result, wb_error *error, int64_t now)
{
    error->result = result;
    if (result == WB_OK)
        wb_waiter_met(waiter);
    else
        wb_waiter_missed(waiter, error, now);
}

void wb_waiter_leave(wb_waiter *waiter)
{
    wb_dependency *d = waiter->dependency;
    pthread_mutex_lock(&d->lock);
    stop_waiting(d, waiter);
    pthread_mutex_unlock(&d->lock);
}

/* ---- what is told ----------------------------------------------------------------------- */

int wb_dependency_is_away(wb_dependency *d)
{
    pthread_mutex_lock(&d->lock);
    int is_away = d->waiting != 0;
    pthread_mutex_unlock(&d->lock);
    return is_away;
}

/* Where somebody must act the server is there, and waiting is what the endpoint does meanwhile. */
static int must_somebody_act(const wb_error *error)
{
    return error->cause == WB_CAUSE_REFUSED || error->cause == WB_CAUSE_MISSING ||
           error->cause == WB_CAUSE_MISMATCH || error->cause == WB_CAUSE_CONFIG;
}

static void format_seconds(int64_t duration, char text[24])
{
    (void)snprintf(text, 24, "%" PRId64 ".%" PRId64 "s", duration / WB_SECOND,
                   duration % WB_SECOND / (100 * WB_MILLISECOND));
}

static void tell_away(const wb_dependency *d, const char *endpoint, unsigned waiting, int64_t duration,
                      const wb_error *error)
{
    char workers[12], away[24];
    (void)snprintf(workers, sizeof workers, "%u", waiting);
    format_seconds(duration, away);
    wb_log_event(WB_LOG_ERROR, must_somebody_act(error) ? texts[d->kind].unusable : texts[d->kind].away,
                 { "endpoint", endpoint }, { "workers", workers }, { "away", away },
                 { "class", wb_result_name(error->result) }, { "reason", error->text });
}

static void tell_back(const wb_dependency *d, const char *endpoint, int64_t duration)
{
    char away[24];
    format_seconds(duration, away);
    wb_log_event(WB_LOG_INFO, texts[d->kind].back, { "endpoint", endpoint }, { "away", away });
}

/* Whoever mended the one that was told waits for the line that says it is back. */
static int is_told_too_little(const wb_dependency *d, const wb_error *error, int64_t now)
{
    const int64_t age = now - d->told_at;
    return !d->told_since || age >= WB_DEPENDENCY_REMIND_EVERY ||
           (error->cause != d->told_cause && must_somebody_act(error) && age >= WB_DEPENDENCY_TELL_ANOTHER);
}

void wb_dependency_tell(wb_dependency *d, const char *endpoint, int64_t now)
{
    pthread_mutex_lock(&d->lock);
    int64_t since = d->away_since;
    unsigned waiting = d->waiting;
    wb_error error = d->error;
    pthread_mutex_unlock(&d->lock);

    if (since && is_told_too_little(d, &error, now)) {
        tell_away(d, endpoint, waiting, now - since, &error);
        d->told_at = now;
        d->told_cause = error.cause;
        if (!d->told_since)
            d->told_since = since;
    } else if (!since && d->told_since) {
        tell_back(d, endpoint, now - d->told_since);
        d->told_since = 0;
    }
}
