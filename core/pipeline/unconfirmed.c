/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/pipeline/unconfirmed.h"

#include "core/base/clock.h"
#include "core/base/log.h"

/* A try takes as long as confirmations are waited for, and nothing else is done meanwhile. */
#define PAUSE_FIRST (10 * WB_SECOND)
#define PAUSE_LONGEST (300 * WB_SECOND)

const wb_operation *wb_unconfirmed_find(const wb_operation_list *list)
{
    for (const wb_operation_node *node = list->first; node; node = node->next)
        if (node->operation.result != WB_OK && node->operation.result != WB_REJECT)
            return &node->operation;
    return NULL;
}

void wb_unconfirmed_set_aside(wb_worker *w, wb_item *item, const wb_error *error)
{
    int64_t pause = PAUSE_FIRST;
    for (unsigned i = 0; i < item->pauses && pause < PAUSE_LONGEST; i++)
        pause *= 2;
    wb_log_event(WB_LOG_ERROR, "message stays in hand: what it sends is not confirmed",
                 { "endpoint", w->pipeline->endpoint }, { "message_id", item->incoming->id },
                 { "type", wb_item_type(item) }, { "reason", error->text });
    item->alone = 1;
    wb_item_pause(item, wb_clock_monotonic() + (pause < PAUSE_LONGEST ? pause : PAUSE_LONGEST));
}
