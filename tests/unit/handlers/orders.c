/* SPDX-License-Identifier: Apache-2.0 */
#include <waybill/handler.h>

static int place(wb_context *context, const wb_message *message)
{
    (void)context, (void)message;
    return WB_OK;
}

static int cancel(wb_context *context, const wb_message *const *messages, size_t count)
{
    (void)context, (void)messages, (void)count;
    return WB_OK;
}

WB_HANDLERS(WB_HANDLER("Sales.PlaceOrder", place), WB_BATCH_HANDLER("Sales.CancelOrder", cancel))
