/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/endpoint/cleaner_pace.h"

#include "core/base/clock.h"

#define STEP_FIRST 1000
#define STEP_MIN 500 /* each step is a flush to disk, too */
#define STEP_MAX 8000
/* Steps become larger below, smaller above. */
#define SHORT (5 * WB_MILLISECOND)
#define LONG (40 * WB_MILLISECOND)
/* A fortieth of the time; a quarter where that does not do. */
#define REST_MOST 39
#define REST_LEAST 3

wb_cleaner_pace wb_cleaner_pace_init(void)
{
    return (wb_cleaner_pace){ .step = STEP_FIRST, .rest = REST_MOST };
}

int64_t wb_cleaner_pace_step(wb_cleaner_pace *pace, int64_t took, int is_full)
{
    if (is_full && took < SHORT && pace->step < STEP_MAX)
        pace->step *= 2;
    else if (is_full && took > LONG && pace->step > STEP_MIN)
        pace->step /= 2;
    return took * pace->rest;
}

void wb_cleaner_pace_round(wb_cleaner_pace *pace, int is_behind)
{
    if (is_behind && pace->rest > REST_LEAST)
        pace->rest -= pace->rest / 4 + 1;
    else if (!is_behind && pace->rest < REST_MOST)
        pace->rest += pace->rest / 8 + 1;
    if (pace->rest < REST_LEAST)
        pace->rest = REST_LEAST;
    if (pace->rest > REST_MOST)
        pace->rest = REST_MOST;
}
