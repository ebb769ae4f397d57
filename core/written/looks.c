/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/written/looks.h"

#include <waybill/sys/plugin.h>

#include "core/base/clock.h"

/* Between two looks: what is written waits half of that on average. */
#define EVERY (20 * WB_MILLISECOND)
/* A look that is dear is made that much more seldom: it takes a tenth of the time; */
#define PACE 9
/* a look at all for which nobody is known to wait, a twentieth. */
#define PACE_OF_ALL 19
#define SELDOM (5 * WB_SECOND)
/* What goes costs nobody too much: 1,000 rows of 200 bytes take 5 ms (MariaDB, PostgreSQL, 2 cores), and as much again
 * on a machine that has other work, or more. */
#define OF_ROW (WB_MILLISECOND / 50)
#define OF_BYTE 5

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t cost_of(const wb_written_cost *cost)
{
    return smaller(cost->last, cost->before);
}

static void note_cost(wb_written_cost *cost, const wb_written_look *look)
{
    const int64_t in_vain = look->took - (int64_t)look->count * OF_ROW - (int64_t)look->size * OF_BYTE;
    *cost = (wb_written_cost){ .last = in_vain > 0 ? in_vain : 0, .before = cost->last };
}

int wb_written_looks_are_dear(const wb_written_looks *looks)
{
    return cost_of(&looks->of_all) * PACE > EVERY;
}

static int may_look_behind(const wb_written_looks *looks)
{
    return looks->reached && !looks->wants_all && wb_written_looks_are_dear(looks);
}

static int64_t all_is_due(const wb_written_looks *looks)
{
    const int pace = may_look_behind(looks) ? PACE_OF_ALL : PACE;
    return looks->all_ended + smaller(cost_of(&looks->of_all) * pace, SELDOM);
}

uint64_t wb_written_looks_next(const wb_written_looks *looks, int64_t now)
{
    return may_look_behind(looks) && now < all_is_due(looks) ? looks->reached : 0;
}

void wb_written_looks_note(wb_written_looks *looks, const wb_written_look *look)
{
    looks->wants_all = look->has_keys;
    note_cost(look->behind ? &looks->of_rest : &looks->of_all, look);
    if (!look->behind) {
        looks->all_ended = look->ended;
        looks->reached = look->highest ? look->highest : look->last;
    } else if (look->highest > looks->reached)
        looks->reached = look->highest;
}

int64_t wb_written_looks_pause(const wb_written_looks *looks, int64_t now)
{
    int64_t pause = all_is_due(looks) - now;
    if (may_look_behind(looks))
        pause = smaller(pause, cost_of(&looks->of_rest) * PACE);
    return pause > EVERY ? pause : EVERY;
}
