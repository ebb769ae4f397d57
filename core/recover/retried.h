/* SPDX-License-Identifier: Apache-2.0
 *
 * A message that ServiceControl sent back from the error queue says where it wants to hear that
 * it was handled, and by which id it knows it. Until it hears of it, the failure counts as
 * pending there.
 */
#ifndef WB_RECOVER_RETRIED_H
#define WB_RECOVER_RETRIED_H

#include "core/base/arena.h"
#include "core/message/operations.h"
#include "core/message/outgoing.h"

/** Add the operation that says so to `list`: a control message whose id follows from that of
 *  `incoming`. `started` is when its handling began, by the wall clock. Lives as long as the
 *  arena; points into `incoming`.
 *  @return 0 when the message is no such one, or what it says is no address. */
int wb_recover_acknowledge(const wb_origin *origin, const wb_incoming *incoming, int64_t started,
                           wb_arena *arena, wb_operation_list *list);

/** The same for a duplicate, found at `now`: what it sent could not leave, so it was in the error
 *  queue though it had been handled. That is another message each time, with a new id. */
int wb_recover_acknowledge_duplicate(const wb_incoming *incoming, int64_t now, wb_arena *arena,
                                     wb_operation_list *list);

#endif
