/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/base/patience.h"

#include <errno.h>
#include <poll.h>
#include <time.h>

#include "core/base/clock.h"

static _Thread_local int64_t patience = WB_NEVER;
static _Thread_local int is_stuck; /* it has waited once: what comes next has no time, until something is taken */

static int64_t remaining(void)
{
    return is_stuck ? 0 : patience;
}

void wb_log_set_patience(int64_t duration)
{
    patience = duration;
}

int wb_log_is_hurried(void)
{
    return patience != WB_NEVER;
}

int wb_log_lock(pthread_mutex_t *lock)
{
    if (!wb_log_is_hurried())
        return pthread_mutex_lock(lock) == 0;
    const int64_t until = wb_clock_monotonic() + remaining();
    const struct timespec end = { (time_t)(until / WB_SECOND), (long)(until % WB_SECOND) };
    const int is_locked = pthread_mutex_clocklock(lock, CLOCK_MONOTONIC, &end) == 0;
    is_stuck |= !is_locked;
    return is_locked;
}

/* Of a pipe the kernel says so when a page is free: PIPE_BUF, in which a line has room (pipe(7)). */
int wb_log_wait_for(int descriptor)
{
    struct pollfd it = { .fd = descriptor, .events = POLLOUT };
    int r;
    if (!wb_log_is_hurried())
        return 1;
    do
        r = poll(&it, 1, (int)(remaining() / WB_MILLISECOND));
    while (r < 0 && errno == EINTR);
    is_stuck = r <= 0;
    return r > 0;
}
