/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/pipeline/tally.h"

#include "core/base/clock.h"

#define COUNT(table) (unsigned)(sizeof(table) / sizeof(table)[0])
#define MICROSECOND INT64_C(1000)

/* Three a decade: who asks whether it was one second or two has the sum, too. */
static const int64_t times[] = {
    10 * MICROSECOND,    30 * MICROSECOND,    100 * MICROSECOND,   300 * MICROSECOND,  WB_MILLISECOND, 3 * WB_MILLISECOND,
    10 * WB_MILLISECOND, 30 * WB_MILLISECOND, 100 * WB_MILLISECOND, 300 * WB_MILLISECOND, WB_SECOND,   3 * WB_SECOND,
    10 * WB_SECOND,      30 * WB_SECOND,      60 * WB_SECOND,      300 * WB_SECOND,    3600 * WB_SECOND, 86400 * WB_SECOND
};
static const int64_t sizes[] = { 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000 };
_Static_assert(sizeof times / sizeof times[0] <= WB_HISTOGRAM_BOUNDS, "a number is missing");

const char *wb_tally_name(wb_tally_kind kind)
{
    static const char *const names[WB_TALLY_TOLD] = {
        [WB_TALLY_HANDLED] = "handled",
        [WB_TALLY_FAILED] = "failed",
        [WB_TALLY_MOVED] = "moved",
        [WB_TALLY_DUPLICATES] = "duplicates",
        [WB_TALLY_RETRIED_LATER] = "retried_later",
        [WB_TALLY_DISCARDED] = "discarded",
        [WB_TALLY_PARKED] = "parked",
    };
    return names[kind];
}

const int64_t *wb_histogram_bounds(wb_histogram histogram, unsigned *ret_count)
{
    const int is_size = histogram == WB_HISTOGRAM_BATCH;
    *ret_count = is_size ? COUNT(sizes) : COUNT(times);
    return is_size ? sizes : times;
}

int64_t wb_histogram_unit(wb_histogram histogram)
{
    return histogram == WB_HISTOGRAM_CRITICAL || histogram == WB_HISTOGRAM_LATENESS ? MICROSECOND : 1;
}

static int64_t limit(wb_histogram histogram, int64_t value)
{
    if (histogram != WB_HISTOGRAM_BATCH && value > WB_TALLY_LONGEST)
        return WB_TALLY_LONGEST;
    return value > 0 ? value : 0;
}

/* Most values are at one of the first bounds: looking at them in their order is the quickest. */
void wb_tally_observe(wb_tally *tally, wb_histogram histogram, int64_t value)
{
    const unsigned first = wb_histogram_first(histogram);
    unsigned count, at = 0;
    const int64_t *bounds = wb_histogram_bounds(histogram, &count);
    while (at < count && value > bounds[at])
        at++;
    wb_tally_note(tally, first + at, 1);
    wb_tally_note(tally, first + WB_HISTOGRAM_SIZE - 1, (uint64_t)(limit(histogram, value) / wb_histogram_unit(histogram)));
}

void wb_tally_read(const wb_tally *tally, wb_counts *counts)
{
    for (unsigned kind = 0; kind < WB_TALLY_KINDS; kind++)
        counts->of[kind] += atomic_load_explicit(&tally->of[kind], memory_order_relaxed);
}

void wb_tally_fold(wb_tally *into, const wb_tally *tally)
{
    for (unsigned kind = 0; kind < WB_TALLY_KINDS; kind++)
        wb_tally_add(into, kind, atomic_load_explicit(&tally->of[kind], memory_order_relaxed));
}
