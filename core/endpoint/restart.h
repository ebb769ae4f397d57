/* SPDX-License-Identifier: Apache-2.0
 *
 * When an endpoint whose workers gave up is started again: after a pause that grows while it
 * goes on giving up. A clockwork without a clock: the caller says what time it is (monotonic
 * nanoseconds), and does what is due.
 */
#ifndef WB_ENDPOINT_RESTART_H
#define WB_ENDPOINT_RESTART_H

#include <stdint.h>

#include "core/base/clock.h"

/** The first pause; each next one is twice as long, up to the longest. */
#define WB_RESTART_PAUSE_MIN WB_SECOND
#define WB_RESTART_PAUSE_MAX (60 * WB_SECOND)
/** Having run for so long, an endpoint that gives up begins with the first pause again. */
#define WB_RESTART_RAN_WELL (60 * WB_SECOND)

/** One endpoint's; all zero at first. */
typedef struct wb_restart {
    int64_t pause;   /* the last one; 0: none yet */
    int64_t due;     /* when it is to be started; 0: it runs */
    int64_t started; /* when it was started last */
} wb_restart;

/** It was started, for the first time or again. */
void wb_restart_started(wb_restart *restart, int64_t now);
/** It gave up, or could not be started: plan its next start. @return the pause before it. */
int64_t wb_restart_plan(wb_restart *restart, int64_t now);
/** Whether a start is planned. */
int wb_restart_is_planned(const wb_restart *restart);
/** Whether a start is planned and its time has come. */
int wb_restart_is_due(const wb_restart *restart, int64_t now);
/** Whether it can be said to run: none is planned, and it has run for as long as it paused
 *  before. One that gives up again and again is not well in the moment it tries once more. */
int wb_restart_is_proven(const wb_restart *restart, int64_t now);

#endif
