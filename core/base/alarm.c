/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/base/alarm.h"

#include <errno.h>
#include <time.h>

#include "core/base/clock.h"

void wb_alarm_init(wb_alarm *alarm)
{
    pthread_condattr_t attributes;
    pthread_mutex_init(&alarm->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&alarm->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    alarm->earliest = WB_NEVER;
    alarm->is_rung = 0;
}

void wb_alarm_free(wb_alarm *alarm)
{
    pthread_cond_destroy(&alarm->wake);
    pthread_mutex_destroy(&alarm->lock);
}

void wb_alarm_tell(wb_alarm *alarm, int64_t due)
{
    pthread_mutex_lock(&alarm->lock);
    if (due < alarm->earliest) {
        alarm->earliest = due;
        pthread_cond_signal(&alarm->wake);
    }
    pthread_mutex_unlock(&alarm->lock);
}

void wb_alarm_ring(wb_alarm *alarm)
{
    pthread_mutex_lock(&alarm->lock);
    alarm->is_rung = 1;
    pthread_cond_signal(&alarm->wake);
    pthread_mutex_unlock(&alarm->lock);
}

void wb_alarm_clear(wb_alarm *alarm)
{
    pthread_mutex_lock(&alarm->lock);
    alarm->earliest = WB_NEVER;
    pthread_mutex_unlock(&alarm->lock);
}

static struct timespec in(int64_t duration)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t nanoseconds = until.tv_nsec + duration % WB_SECOND;
    until.tv_sec += (time_t)(duration / WB_SECOND + nanoseconds / WB_SECOND);
    until.tv_nsec = (long)(nanoseconds % WB_SECOND);
    return until;
}

void wb_alarm_sleep(wb_alarm *alarm, int64_t until, int64_t duration)
{
    struct timespec end = in(duration > 0 ? duration : 0);
    pthread_mutex_lock(&alarm->lock);
    while (!alarm->is_rung && alarm->earliest >= until &&
           pthread_cond_timedwait(&alarm->wake, &alarm->lock, &end) != ETIMEDOUT)
        ;
    alarm->is_rung = 0;
    pthread_mutex_unlock(&alarm->lock);
}
