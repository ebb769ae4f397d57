/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/pipeline/tally.h"

const char *wb_tally_name(wb_tally_kind kind)
{
    static const char *const names[WB_TALLY_KINDS] = {
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

void wb_tally_read(const wb_tally *tally, wb_counts *ret_counts)
{
    for (int kind = 0; kind < WB_TALLY_KINDS; kind++)
        ret_counts->of[kind] = atomic_load_explicit(&tally->of[kind], memory_order_relaxed);
}
