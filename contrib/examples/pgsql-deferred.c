/* SPDX-License-Identifier: Apache-2.0
 *
 * Business data through deferred statements: they are sent together with the batch's
 * next round trip, so that a handler costs no round trip of its own. For statements whose
 * result the handler does not need. If one fails, the message fails as if the handler had.
 *
 *     cc -shared -fPIC -Wl,-z,defs pgsql-deferred.c $(pkg-config --cflags --libs waybill libpq) -o orders.so
 */
#include <waybill/handler.h>
#include <waybill/pgsql.h>

static int place_order(wb_context *ctx, const wb_message *msg)
{
    const char *order = wb_message_header(msg, "Order");
    if (!order)
        return wb_fail(ctx, WB_UNRECOVERABLE, "header \"Order\" is missing");
    int result = wb_pgsql_defer(
        ctx, "insert into orders (order_id, message_id, body) values ($1, $2, $3)",
        &(wb_pgsql_params){
            .count = 3,
            .values = (const char *const[]){ order, msg->id, (const char *)msg->body },
            .lengths = (const int[]){ 0, 0, (int)msg->body_size },
            .formats = (const int[]){ 0, 0, 1 },
        });
    if (result != WB_OK)
        return result;
    return wb_publish(ctx, &(wb_outgoing){ .type = "Sales.OrderPlaced",
                                           .body = msg->body,
                                           .body_size = msg->body_size });
}

WB_HANDLERS(WB_HANDLER("Sales.PlaceOrder", place_order))
