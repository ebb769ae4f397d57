/* SPDX-License-Identifier: Apache-2.0
 *
 * What follows from a message being handled, beside what its handlers asked for: operations of
 * the same batch, stored, committed and sent as theirs are.
 */
#ifndef WB_PIPELINE_FOLLOW_H
#define WB_PIPELINE_FOLLOW_H

#include "core/pipeline/worker.h"

/** Behind the operations of a message whose handlers succeeded come the acknowledgement that
 *  ServiceControl waits for, if it sent the message back, and the copy for the audit queue. They
 *  count as none of the handlers': ordinals and limits are theirs alone. */
void wb_follow_handled(wb_worker *w, wb_item *item);

/** A duplicate that ServiceControl sent back had been handled before: that is told, too, when what
 *  it sent is out. @return whether it has an operation now. */
int wb_follow_duplicate(wb_worker *w, wb_item *item);

#endif
