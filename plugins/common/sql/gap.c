/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/sql/gap.h"

#define SECOND INT64_C(1000000000)
/* A look that takes less is made again whenever somebody asks. */
#define COSTLY (SECOND / 4)
/* How often as long as it took, a look is not repeated. */
#define PACE 20
/* The host pauses between two steps for some times as long as one takes. */
#define STEP_PAUSE SECOND

void wb_sql_gap_init(wb_sql_gap *gap)
{
    *gap = (wb_sql_gap){ .until = INT64_MIN, .rest = INT64_MIN };
    (void)pthread_mutex_init(&gap->lock, NULL);
}

void wb_sql_gap_free(wb_sql_gap *gap)
{
    (void)pthread_mutex_destroy(&gap->lock);
}

wb_sql_look wb_sql_gap_begin(wb_sql_gap *gap, uint64_t from, int64_t now)
{
    wb_sql_look look = { .from = from, .start = from, .began = now };
    (void)pthread_mutex_lock(&gap->lock);
    if (now < gap->until && from >= gap->low && from < gap->high)
        look.start = gap->high;
    (void)pthread_mutex_unlock(&gap->lock);
    return look;
}

/* All of it was looked through: is that worth more than what is remembered? A row that stays
 * where it is parts a cheap look from the dear one behind it. */
static void take_whole(wb_sql_gap *gap, const wb_sql_look *look)
{
    const int64_t took = look->ended - look->began;
    const int is_better = gap->low == look->from || gap->until <= look->ended || took > gap->cost;

    if (!is_better || (took < COSTLY && !look->goes_on && gap->low != look->from))
        return;
    gap->low = look->from;
    gap->high = look->reached;
    gap->cost = took;
    gap->rest = took < COSTLY ? INT64_MIN : look->ended + PACE * took;
    gap->until = gap->rest;
}

void wb_sql_gap_end(wb_sql_gap *gap, const wb_sql_look *look)
{
    const int64_t next = look->ended + PACE * (look->ended - look->began) + STEP_PAUSE;

    (void)pthread_mutex_lock(&gap->lock);
    if (look->start == look->from)
        take_whole(gap, look);
    else if (look->start == gap->high)
        gap->high = look->reached;
    if (!look->goes_on)
        gap->until = gap->rest;
    else if (gap->until < next)
        gap->until = next;
    (void)pthread_mutex_unlock(&gap->lock);
}
