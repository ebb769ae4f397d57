/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls a client library without linking it.
 */
#include <math.h>
#include <waybill/handler.h>

static int one(wb_context *context, const wb_message *message)
{
    (void)context;
    return cbrt((double)message->body_size) > 1e6 ? WB_RETRY : WB_OK;
}

WB_HANDLERS(WB_HANDLER("Client.Call", one))
