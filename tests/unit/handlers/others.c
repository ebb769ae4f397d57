/* SPDX-License-Identifier: Apache-2.0
 *
 * A handler of one type, one of all others; with PATTERN one of what is no pattern.
 */
#include <waybill/handler.h>

static int one(wb_context *context, const wb_message *message)
{
    (void)context, (void)message;
    return WB_OK;
}

#ifdef PATTERN
WB_HANDLERS(WB_HANDLER("Sales.*", one), WB_HANDLER("*", one))
#else
WB_HANDLERS(WB_HANDLER("Sales.PlaceOrder", one), WB_HANDLER("*", one))
#endif
