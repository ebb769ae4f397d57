/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/endpoint/restart.h"

void wb_restart_started(wb_restart *restart, int64_t now)
{
    restart->started = now;
    restart->due = 0;
}

int64_t wb_restart_plan(wb_restart *restart, int64_t now)
{
    if (!restart->due && now - restart->started >= WB_RESTART_RAN_WELL)
        restart->pause = 0;
    restart->pause = restart->pause ? 2 * restart->pause : WB_RESTART_PAUSE_MIN;
    if (restart->pause > WB_RESTART_PAUSE_MAX)
        restart->pause = WB_RESTART_PAUSE_MAX;
    restart->due = now + restart->pause;
    return restart->pause;
}

int wb_restart_is_planned(const wb_restart *restart)
{
    return restart->due != 0;
}

int wb_restart_is_due(const wb_restart *restart, int64_t now)
{
    return restart->due && now >= restart->due;
}

int wb_restart_is_proven(const wb_restart *restart, int64_t now)
{
    return !restart->due && now - restart->started >= restart->pause;
}
