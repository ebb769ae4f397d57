/* SPDX-License-Identifier: Apache-2.0
 *
 * handler-plain.c with a deferred statement: the row travels with the batch's commit.
 */
#include <arpa/inet.h>
#include <waybill/pgsql.h>

static int place_order(wb_context *ctx, const wb_message *message)
{
    uint32_t amount = htonl((uint32_t)message->body_size);
    int result = wb_pgsql_defer(
        ctx, "insert into bench_order (order_id, amount) values ($1::text, $2::int4)",
        &(wb_pgsql_params){ .count = 2,
                            .formats = (const int[]){ 1, 1 },
                            .lengths = (const int[]){ (int)message->id_size, sizeof amount },
                            .values = (const char *const[]){ message->id,
                                                             (const char *)&amount } });
    if (result != WB_OK)
        return result;
    return wb_send(ctx, &(wb_outgoing){ .type = "Bench.OrderPlaced",
                                        .destination = "bench.sink",
                                        .body = message->body,
                                        .body_size = message->body_size });
}

WB_HANDLERS(WB_HANDLER("Bench.PlaceOrder", place_order))
