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

int wb_sql_gap_holds(wb_sql_gap *gap, int64_t now, uint64_t *ret_low, uint64_t *ret_high)
{
    (void)pthread_mutex_lock(&gap->lock);
    const int holds = now < gap->until;
    *ret_low = gap->low;
    *ret_high = gap->high;
    (void)pthread_mutex_unlock(&gap->lock);
    return holds;
}

/* Of several slow ranges the dearest is waited for; one that does not come again makes way. */
static void note_slow(wb_sql_gap *gap, uint64_t from, int64_t took)
{
    if (took < COSTLY && gap->slow == from)
        gap->slow_cost = 0;
    else if (took >= COSTLY && (gap->slow == from || took > gap->slow_cost)) {
        gap->slow = from;
        gap->slow_cost = took;
    } else if (took >= COSTLY)
        gap->slow_cost -= gap->slow_cost / 8;
}

/* Whether it is so for the second time. */
static int is_slow_again(wb_sql_gap *gap, uint64_t from, int64_t took)
{
    const int was_slow =
        (gap->slow == from && gap->slow_cost) || (gap->low == from && gap->cost >= COSTLY);

    note_slow(gap, from, took);
    return took >= COSTLY && was_slow;
}

/* All of it was looked through: is that worth more than what is remembered? A row that stays
 * where it is parts a cheap look from the dear one behind it. */
static void take_whole(wb_sql_gap *gap, const wb_sql_look *look)
{
    const int64_t took = look->ended - look->began;
    const int is_better = gap->low == look->from || gap->until <= look->ended || took > gap->cost;
    const int is_slow = is_slow_again(gap, look->from, took);
    const int is_telling = took < COSTLY ? gap->low == look->from : is_slow;

    if (!is_better || (!is_telling && !look->goes_on))
        return;
    if (gap->slow == look->from)
        gap->slow_cost = 0;
    gap->low = look->from;
    gap->high = look->reached;
    gap->cost = took;
    gap->rest = is_slow ? look->ended + PACE * took : INT64_MIN;
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
