/* SPDX-License-Identifier: Apache-2.0
 *
 * Types that another module has too, and types with both functions, with none, without a
 * name; and types whose names have assemblies.
 */
#include <waybill/handler.h>

static int one(wb_context *context, const wb_message *message)
{
    (void)context, (void)message;
    return WB_OK;
}

static int many(wb_context *context, const wb_message *const *messages, size_t count)
{
    (void)context, (void)messages, (void)count;
    return WB_OK;
}

WB_HANDLERS(WB_HANDLER("Sales.PlaceOrder", one), { "Sales.Both", one, many },
            { "Sales.Neither", NULL, NULL }, WB_HANDLER("", one), WB_HANDLER("Sales.New", one),
            WB_HANDLER("Sales.New, Sales", one), WB_HANDLER("Sales.Newer;Sales.New", one),
            WB_HANDLER("Sales.Some`1[[Sales.New, Sales, Version=1.0]], Sales", one))
