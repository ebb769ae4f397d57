/* SPDX-License-Identifier: Apache-2.0
 *
 * handler-plain.c without a database: one outgoing message of the incoming message's body.
 */
#include <waybill/handler.h>

static int place_order(wb_context *ctx, const wb_message *message)
{
    return wb_send(ctx, &(wb_outgoing){ .type = "Bench.OrderPlaced",
                                        .destination = "bench.sink",
                                        .body = message->body,
                                        .body_size = message->body_size });
}

WB_HANDLERS(WB_HANDLER("Bench.PlaceOrder", place_order))
