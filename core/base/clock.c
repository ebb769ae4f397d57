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
    static _Thread_local int64_t kept_second = INT64_MIN;
    static _Thread_local char kept[WB_TIMESTAMP_SIZE];
    int64_t seconds = wall / WB_SECOND, rest = wall % WB_SECOND;
    if (rest < 0) { /* before 1970 */
        seconds--;
        rest += WB_SECOND;
    }
    if (seconds != kept_second) {
        const time_t time = (time_t)seconds;
        struct tm tm;
        gmtime_r(&time, &tm);
        if (!strftime(kept, sizeof kept, "%Y-%m-%d %H:%M:%S:000000 Z", &tm))
            kept[0] = '\0';
        kept_second = seconds;
    }
    memcpy(text, kept, WB_TIMESTAMP_SIZE);
    unsigned micros = (unsigned)(rest / 1000);
    for (size_t at = 25; at >= 20; at--, micros /= 10)
        text[at] = (char)('0' + micros % 10);
}

/* So many digits, and nothing else: no blank, no sign. @return 0: they are not there. */
static int read_digits(const char **text, int count, int *ret_number)
{
    *ret_number = 0;
    for (; count > 0; count--, (*text)++) {
        if (**text < '0' || **text > '9')
            return 0;
        *ret_number = *ret_number * 10 + (**text - '0');
    }
    return 1;
}

static int read_part(const char **text, int count, char behind, int *ret_number)
{
    if (!read_digits(text, count, ret_number) || **text != behind)
        return 0;
    (*text)++;
    return 1;
}

/* timegm() would take the 31st of February for a day in March. */
static int is_same(const struct tm *a, const struct tm *b)
{
    return a->tm_year == b->tm_year && a->tm_mon == b->tm_mon && a->tm_mday == b->tm_mday && a->tm_hour == b->tm_hour &&
           a->tm_min == b->tm_min && a->tm_sec == b->tm_sec;
}

int wb_clock_read_date(const char **text, char separator, int64_t *ret_seconds)
{
    struct tm given = { 0 };
    if (!read_part(text, 4, '-', &given.tm_year) || !read_part(text, 2, '-', &given.tm_mon) ||
        !read_part(text, 2, separator, &given.tm_mday) || !read_part(text, 2, ':', &given.tm_hour) ||
        !read_part(text, 2, ':', &given.tm_min) || !read_digits(text, 2, &given.tm_sec))
        return 0;
    given.tm_year -= 1900;
    given.tm_mon--;
    struct tm found = given;
    *ret_seconds = timegm(&found);
    return is_same(&given, &found);
}

int wb_clock_parse_wire(const char *text, int64_t *ret_wall)
{
    int64_t seconds;
    int micros;
    if (!wb_clock_read_date(&text, ' ', &seconds) || *text++ != ':' || !read_digits(&text, 6, &micros) ||
        strcmp(text, " Z") != 0)
        return 0;
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
