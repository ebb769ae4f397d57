/* SPDX-License-Identifier: Apache-2.0
 *
 * handler-deferred.c on MariaDB.
 */
#include <stdio.h>
#include <waybill/mysql.h>

static int place_order(wb_context *ctx, const wb_message *message)
{
    char amount[24];
    size_t sizes[] = { message->id_size,
                       (size_t)snprintf(amount, sizeof amount, "%zu", message->body_size) };
    int result = wb_mysql_defer(
        ctx, "insert into bench_order (order_id, amount) values (?, ?)",
        &(wb_mysql_params){ .count = 2,
                            .types = (const int[]){ WB_MYSQL_TYPE_TEXT, WB_MYSQL_TYPE_NUMBER },
                            .lengths = sizes,
                            .values = (const char *const[]){ message->id, amount } });
    if (result != WB_OK)
        return result;
    return wb_send(ctx, &(wb_outgoing){ .type = "Bench.OrderPlaced",
                                        .destination = "bench.sink",
                                        .body = message->body,
                                        .body_size = message->body_size });
}

WB_HANDLERS(WB_HANDLER("Bench.PlaceOrder", place_order))
