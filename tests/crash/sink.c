/* SPDX-License-Identifier: Apache-2.0
 *
 * The handler module of the endpoint "sink": it is installed, for its queue and its
 * subscription to Crash.Happened, and never run. The oracle reads its queue.
 */
#include "config.h"

#include <waybill/handler.h>

static int unused(wb_context *ctx, const wb_message *message)
{
    return wb_fail(ctx, WB_UNRECOVERABLE, "\"%s\" was handled: the sink must not run", message->id);
}

WB_HANDLERS(WB_HANDLER("Crash.Happened", unused), WB_HANDLER("Crash.Noted", unused))
