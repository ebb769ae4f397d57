/* SPDX-License-Identifier: Apache-2.0
 *
 * What a worker has finished and not yet told: marks for pending rows, and messages to
 * acknowledge once those are made. Dispatch before mark, mark before acknowledge.
 */
#ifndef WB_PIPELINE_MARKS_H
#define WB_PIPELINE_MARKS_H

#include "core/pipeline/worker.h"

/** Remember to make a mark. What remains is copied. */
void wb_marks_add(wb_worker *w, wb_mark mark);
/** Remember to acknowledge. */
void wb_marks_add_message(wb_worker *w, const wb_incoming *incoming);
/** The marks were made. */
void wb_marks_clear(wb_worker *w);

#endif
