/* SPDX-License-Identifier: Apache-2.0
 *
 * Business data in MySQL or MariaDB through deferred statements: they are sent together with
 * the batch's next round trip, so that a handler costs no round trip of its own. For
 * statements whose result the handler does not need. If one fails, the message fails as if
 * the handler had.
 *
 *     cc -shared -fPIC -Wl,-z,defs mysql-deferred.c $(pkg-config --cflags --libs waybill libmariadb) -o orders.so
 */
#include <string.h>
#include <waybill/handler.h>
#include <waybill/mysql.h>

static int place_order(wb_context *ctx, const wb_message *msg)
{
    const char *order = wb_message_header(msg, "Order");
    if (!order)
        return wb_fail(ctx, WB_UNRECOVERABLE, "header \"Order\" is missing");
    int result = wb_mysql_defer(
        ctx, "insert into orders (order_id, message_id, body) values (?, ?, ?)",
        &(wb_mysql_params){
            .count = 3,
            .types = (const int[]){ WB_MYSQL_TYPE_TEXT, WB_MYSQL_TYPE_BINARY,
                                    WB_MYSQL_TYPE_BINARY },
            .values = (const char *const[]){ order, msg->id, (const char *)msg->body },
            .lengths = (const size_t[]){ strlen(order), msg->id_size, msg->body_size },
        });
    if (result != WB_OK)
        return result;
    return wb_publish(ctx, &(wb_outgoing){ .type = "Sales.OrderPlaced",
                                           .body = msg->body,
                                           .body_size = msg->body_size });
}

WB_HANDLERS(WB_HANDLER("Sales.PlaceOrder", place_order))
