/* SPDX-License-Identifier: Apache-2.0
 *
 * What a handler sees: the context behind include/waybill/handler.h.
 */
#ifndef WB_PIPELINE_CONTEXT_H
#define WB_PIPELINE_CONTEXT_H

#include "core/pipeline/worker.h"

/** For handlers that are built in: wb_pipeline_now() of the endpoint whose handler was called with it. */
int64_t wb_context_now(wb_context *ctx);

/** Call the handler that is next for `count` messages of the batch.
 *  @return WB_OK; WB_RETRY, WB_REJECT with what it said; WB_NOT_CONNECTED when an immediate send
 *  found the session dead. */
int wb_call_handler(wb_worker *w, wb_item *const *items, size_t count, wb_error *error);

#endif
