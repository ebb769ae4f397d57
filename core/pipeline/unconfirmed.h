/* SPDX-License-Identifier: Apache-2.0
 *
 * A message that is handled, and whose destination confirms nothing (a replicated queue without
 * a majority): it stays in hand and is tried again later, and what can run, runs. No attempt of
 * it counts.
 */
#ifndef WB_PIPELINE_UNCONFIRMED_H
#define WB_PIPELINE_UNCONFIRMED_H

#include "core/pipeline/worker.h"

/** After wb_window_send() returned WB_OK or WB_IN_DOUBT: the first operation of the list that
 *  has no outcome, or NULL. */
const wb_operation *wb_unconfirmed_find(const wb_operation_list *list);
/** Set aside, with a line that says why. */
void wb_unconfirmed_set_aside(wb_worker *w, wb_item *item, const wb_error *error);

#endif
