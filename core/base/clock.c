/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
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

int64_t wb_clock_steady(void)
{
    return read_clock(CLOCK_BOOTTIME);
}

void wb_clock_format_wire(int64_t wall, char text[WB_TIMESTAMP_SIZE])
{
    /* Every outgoing message carries one: the part down to the second is kept. */
    static _Thread_local time_t kept_second = -1;
    static _Thread_local char kept[WB_TIMESTAMP_SIZE];
    time_t seconds = (time_t)(wall / WB_SECOND);
    unsigned micros = (unsigned)(wall % WB_SECOND / 1000);

    if (seconds != kept_second) {
        struct tm tm;
        gmtime_r(&seconds, &tm);
        if (!strftime(kept, sizeof kept, "%Y-%m-%d %H:%M:%S:000000 Z", &tm))
            kept[0] = '\0';
        kept_second = seconds;
    }
    memcpy(text, kept, WB_TIMESTAMP_SIZE);
    for (size_t at = 25; at >= 20; at--, micros /= 10)
        text[at] = (char)('0' + micros % 10);
}

int wb_clock_parse_wire(const char *text, int64_t *ret_wall)
{
    struct tm tm = { 0 };
    int micros, size = 0;
    if (sscanf(text, "%4d-%2d-%2d %2d:%2d:%2d:%6d Z%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour,
               &tm.tm_min, &tm.tm_sec, &micros, &size) != 7 || size != WB_TIMESTAMP_SIZE - 1)
        return 0;
    tm.tm_year -= 1900;
    tm.tm_mon--;
    const int64_t seconds = timegm(&tm);
    if (__builtin_mul_overflow(seconds, WB_SECOND, ret_wall) ||
        __builtin_add_overflow(*ret_wall, micros * INT64_C(1000), ret_wall))
        *ret_wall = seconds < 0 ? INT64_MIN : INT64_MAX;
    return 1;
}

void wb_clock_format_span(int64_t span, char text[WB_SPAN_SIZE])
{
    int64_t ticks = span / 100 + (span % 100 != 0), seconds = ticks / 10000000;
    int used = 0;
    if (seconds >= 86400)
        used = snprintf(text, WB_SPAN_SIZE, "%" PRId64 ".", seconds / 86400);
    used += snprintf(text + used, WB_SPAN_SIZE - (size_t)used, "%02d:%02d:%02d", (int)(seconds / 3600 % 24),
                     (int)(seconds / 60 % 60), (int)(seconds % 60));
    if (ticks % 10000000)
        (void)snprintf(text + used, WB_SPAN_SIZE - (size_t)used, ".%07d", (int)(ticks % 10000000));
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

int64_t wb_clock_backoff(int64_t first, unsigned times, int64_t longest)
{
    int64_t pause = first;
    while (times-- > 0 && pause < longest)
        pause *= 2;
    return pause < longest ? pause : longest;
}

void wb_clock_pause(int64_t duration, const atomic_int *stop)
{
    int64_t end = wb_clock_monotonic() + duration;
    while (!(stop && atomic_load(stop))) {
        int64_t left = end - wb_clock_monotonic();
        if (left <= 0)
            return;
        int64_t nap = left < 5 * WB_MILLISECOND ? left : 5 * WB_MILLISECOND;
        struct timespec request = { 0, (long)nap };
        nanosleep(&request, NULL);
    }
}
