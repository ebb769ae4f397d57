/* SPDX-License-Identifier: Apache-2.0
 *
 * A handler over this persistence: the order is there with the batch, or not at all.
 */
#include "waybill-lmdb.h"

static int place_order(wb_context *ctx, const wb_message *msg)
{
    int code = wb_lmdb_put(ctx, msg->id, msg->id_size, msg->body, msg->body_size, 0);
    if (code != 0)
        return wb_fail(ctx, WB_RETRY, "could not write the order: %s", mdb_strerror(code));
    wb_log(ctx, WB_LOG_INFO, "order written");
    return WB_OK;
}
WB_HANDLERS(WB_HANDLER("Sales.PlaceOrder", place_order))
