/* SPDX-License-Identifier: Apache-2.0
 *
 * An alarm: one thread sleeps until something is due, others tell it of what is due earlier.
 * Times are whatever clock they agree on; only how long it sleeps is measured here.
 */
#ifndef WB_BASE_ALARM_H
#define WB_BASE_ALARM_H

#include <pthread.h>
#include <stdint.h>

typedef struct wb_alarm {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    int64_t earliest; /* of what was told since it was cleared; WB_NEVER: nothing */
    int is_rung;
} wb_alarm;

void wb_alarm_init(wb_alarm *alarm);
void wb_alarm_free(wb_alarm *alarm);

/** Something is due then. Wakes the sleeper if it would sleep longer. Any thread. */
void wb_alarm_tell(wb_alarm *alarm, int64_t due);
/** Wake the sleeper now, or end its next sleep at once. Any thread. */
void wb_alarm_ring(wb_alarm *alarm);

/** Forget what was told: what the sleeper looks at next will have it. */
void wb_alarm_clear(wb_alarm *alarm);
/** Sleep for `duration` ns, until the alarm rings, or until something was told since it was cleared
 *  that is due before `until`. */
void wb_alarm_sleep(wb_alarm *alarm, int64_t until, int64_t duration);

#endif
