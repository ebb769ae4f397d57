/* SPDX-License-Identifier: Apache-2.0
 *
 * The handlers of the endpoint whose topology was captured (tests/captures).
 */
#include <waybill/handler.h>

static int handle(wb_context *ctx, const wb_message *message)
{
    (void)ctx, (void)message;
    return WB_OK;
}

WB_HANDLERS(WB_HANDLER("Shop.Ask", handle), WB_HANDLER("Shop.Answer", handle),
            WB_HANDLER("Shop.IThingHappened", handle), WB_HANDLER("Shop.BaseEvent", handle),
            WB_HANDLER("Shop.Shipped", handle), WB_HANDLER("Shop.Order", handle),
            WB_HANDLER("Shop.Fail", handle))
