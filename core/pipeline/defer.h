/* SPDX-License-Identifier: Apache-2.0
 *
 * Deferring: operations that are due later leave by the same road as all others, and part here.
 * Where a store keeps them (core/delayed) they are stored instead of sent, which is as good as a
 * confirmation; where the transport delays they are sent, and it knows what to do. What is due by
 * the time it leaves is sent at once.
 */
#ifndef WB_PIPELINE_DEFER_H
#define WB_PIPELINE_DEFER_H

#include "core/pipeline/window.h"

/** Store what of the window is to wait. An operation that was stored is WB_OK; one that is refused
 *  (too large for a row, or nobody delays here any more) is WB_REJECT, with a reason. What is
 *  left is to be sent. A store that cannot now is waited for, as a broker is, until
 *  outlet->until or the endpoint stops.
 *  @return WB_OK; else the class of what the store said, and outlet->storage_failed is set. */
int wb_defer(wb_window *window, wb_outlet *outlet, wb_error *error);

/** Of the operations of a list those that a commit is to store: due later than `now`, and not done yet. They
 *  are done with it (WB_OK). There is room for all of the list in `rows`. @return how many there are. */
size_t wb_defer_take(wb_operation_list *list, int64_t now, wb_arena *arena, wb_buffer *scratch, wb_delayed *rows);

/** An operation as a row of the store. Lives as long as the arena; `scratch` is emptied. */
wb_delayed wb_defer_row(const wb_operation *operation, wb_arena *arena, wb_buffer *scratch);

#endif
