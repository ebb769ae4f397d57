/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/base/clock.h"

#include <stdio.h>
#include <time.h>

static int64_t read_clock(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (int64_t)now.tv_sec * WB_SECOND + now.tv_nsec;
}

int64_t wb_clock_monotonic(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t wb_clock_wall(void)
{
    return read_clock(CLOCK_REALTIME);
}

void wb_clock_format_wire(int64_t wall, char text[WB_TIMESTAMP_SIZE])
{
    struct tm tm;
    time_t seconds = (time_t)(wall / WB_SECOND);
    gmtime_r(&seconds, &tm);
    size_t used = strftime(text, WB_TIMESTAMP_SIZE, "%Y-%m-%d %H:%M:%S:", &tm);
    (void)snprintf(text + used, WB_TIMESTAMP_SIZE - used, "%06u Z",
                   (unsigned)(wall % WB_SECOND / 1000) % 1000000u);
}

void wb_clock_format_log(int64_t wall, char text[WB_LOG_TIMESTAMP_SIZE])
{
    struct tm tm;
    time_t seconds = (time_t)(wall / WB_SECOND);
    gmtime_r(&seconds, &tm);
    size_t used = strftime(text, WB_LOG_TIMESTAMP_SIZE, "%Y-%m-%dT%H:%M:%S.", &tm);
    (void)snprintf(text + used, WB_LOG_TIMESTAMP_SIZE - used, "%03uZ",
                   (unsigned)(wall % WB_SECOND / WB_MILLISECOND) % 1000u);
}

void wb_clock_pause(int64_t duration, const volatile int *stop)
{
    int64_t end = wb_clock_monotonic() + duration;
    while (!(stop && *stop)) {
        int64_t left = end - wb_clock_monotonic();
        if (left <= 0)
            return;
        int64_t nap = left < 5 * WB_MILLISECOND ? left : 5 * WB_MILLISECOND;
        struct timespec request = { 0, (long)nap };
        nanosleep(&request, NULL);
    }
}
