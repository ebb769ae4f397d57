/* SPDX-License-Identifier: Apache-2.0
 *
 * A worker: one thread that runs the pipeline over sessions of its own.
 */
#ifndef WB_PIPELINE_WORKER_H
#define WB_PIPELINE_WORKER_H

#include "core/pipeline/pipeline.h"

/** Prepare a worker; no thread, no connection yet. */
void wb_worker_init(wb_worker *w, wb_pipeline *pipeline, unsigned number);
/** Start its thread. @return 0 or an errno. */
int wb_worker_start(wb_worker *w);
/** Wake it where it waits for messages. Any thread; pipeline->stop is set before. */
void wb_worker_interrupt(wb_worker *w);
/** Wait for its thread. w->error.result is WB_FATAL if it gave up. */
void wb_worker_join(wb_worker *w);
void wb_worker_free(wb_worker *w);

#endif
