/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a message that was just received can be handled at all, and by whom.
 */
#ifndef WB_PIPELINE_ADMIT_H
#define WB_PIPELINE_ADMIT_H

#include "core/pipeline/worker.h"

/** Find its handlers: those of all types it says it is, in the order in which it names them. Give
 *  it the verdict "failed" if it has none, or breaks a limit. A control message without a type is
 *  for a part of the platform that is not here: it has no handlers, and is handled with that. */
void wb_admit(wb_worker *w, wb_item *item);

#endif
