/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/cli/guard.h"

#include <sysexits.h>
#include <time.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/patience.h"
#include "core/pipeline/call.h"

/* How often the guard looks at the time. */
#define LOOK_EVERY (100 * WB_MILLISECOND)

/* The lock is held: nobody else writes the line as well. */
static _Noreturn void leave(const char *reason)
{
    wb_log_event(WB_LOG_WARNING, "ends without finishing what is in flight", { "reason", reason });
    wb_call_end_process(EX_TEMPFAIL);
}

static void limit(cli_guard *guard, int64_t until)
{
    if (until < guard->deadline)
        guard->deadline = until;
}

static void stop(cli_guard *guard)
{
    if (guard->is_told)
        leave("second signal");
    guard->is_told = 1;
    limit(guard, wb_clock_monotonic() + guard->patience);
    pthread_cond_broadcast(&guard->changed);
}

static void take_signal(cli_guard *guard, int number)
{
    switch (number) {
    case SIGHUP: guard->asked |= CLI_ASKED_TO_READ; break;
    case SIGUSR1: guard->asked |= CLI_ASKED_FOR_COUNTS; break;
    case SIGUSR2: break;
    default: stop(guard);
    }
}

static void *guard_main(void *argument)
{
    cli_guard *guard = argument;
    const struct timespec look = { 0, LOOK_EVERY };
    int is_over = 0;
    wb_log_set_patience(WB_LOG_PATIENCE); /* who ends the process in time waits for no reader */
    while (!is_over) {
        int number = sigtimedwait(&guard->signals, NULL, &look);
        pthread_mutex_lock(&guard->lock);
        is_over = guard->is_over;
        if (number > 0 && !is_over)
            take_signal(guard, number);
        if (!is_over && wb_clock_monotonic() >= guard->deadline)
            leave("shutdown_timeout");
        pthread_mutex_unlock(&guard->lock);
        wb_log_sum_up();
    }
    return NULL;
}

void cli_guard_block(cli_guard *guard)
{
    static const int numbers[] = { SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2 };
    sigemptyset(&guard->signals);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sigaddset(&guard->signals, numbers[i]);
    pthread_sigmask(SIG_BLOCK, &guard->signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

int cli_guard_start(cli_guard *guard, int64_t patience)
{
    pthread_condattr_t attributes;
    guard->patience = patience;
    guard->is_told = 0;
    guard->is_over = 0;
    guard->asked = 0;
    guard->deadline = WB_NEVER;
    pthread_mutex_init(&guard->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&guard->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    return pthread_create(&guard->thread, NULL, guard_main, guard);
}

int cli_guard_is_told(cli_guard *guard)
{
    pthread_mutex_lock(&guard->lock);
    int told = guard->is_told;
    pthread_mutex_unlock(&guard->lock);
    return told;
}

unsigned cli_guard_take(cli_guard *guard)
{
    pthread_mutex_lock(&guard->lock);
    unsigned asked = guard->asked;
    guard->asked = 0;
    pthread_mutex_unlock(&guard->lock);
    return asked;
}

void cli_guard_sleep(cli_guard *guard, int64_t duration)
{
    int64_t until = wb_clock_monotonic() + duration;
    const struct timespec end = { (time_t)(until / WB_SECOND), (long)(until % WB_SECOND) };
    pthread_mutex_lock(&guard->lock);
    int told = guard->is_told, r = 0;
    while (guard->is_told == told && r == 0)
        r = pthread_cond_timedwait(&guard->changed, &guard->lock, &end);
    pthread_mutex_unlock(&guard->lock);
}

void cli_guard_limit(cli_guard *guard, int64_t until)
{
    pthread_mutex_lock(&guard->lock);
    limit(guard, until);
    pthread_mutex_unlock(&guard->lock);
}

void cli_guard_allow(cli_guard *guard, int64_t duration)
{
    int64_t until = wb_clock_monotonic() + duration;
    pthread_mutex_lock(&guard->lock);
    if (guard->deadline < until)
        guard->deadline = until;
    pthread_mutex_unlock(&guard->lock);
}

void cli_guard_leave(cli_guard *guard, const char *reason)
{
    pthread_mutex_lock(&guard->lock);
    leave(reason);
}

void cli_guard_end(cli_guard *guard)
{
    pthread_mutex_lock(&guard->lock);
    guard->is_over = 1;
    pthread_mutex_unlock(&guard->lock);
    (void)pthread_kill(guard->thread, SIGTERM); /* it waits for one */
    pthread_join(guard->thread, NULL);
    pthread_cond_destroy(&guard->changed);
    pthread_mutex_destroy(&guard->lock);
}
