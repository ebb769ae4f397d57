/* SPDX-License-Identifier: Apache-2.0
 *
 * Handlers of version 1.0: each message makes business data, and sends now, later, and to whoever
 * subscribed. Where what is sent arrives at an endpoint with the same module, it says so.
 */
#include <waybill/handler.h>

#include "memory.h"
#include "said.h"

static int send_later(wb_context *ctx, const wb_message *message, const char *destination)
{
    return wb_send(ctx, &(wb_outgoing){ .type = "Abi.Later", .destination = destination, .body = message->body,
                                        .body_size = message->body_size, .delay = 50 * WB_MILLISECONDS });
}

static int work(wb_context *ctx, const wb_message *message)
{
    const wb_header headers[] = { { "first", "1", 5, 1 }, { "second", message->id, 6, message->id_size } };
    const char *number = wb_message_header(message, "number");
    SEES(wb_message, message);
    SEES(wb_handler_api, ctx->api);
    memory_note(ctx, message->id);
    wb_log(ctx, WB_LOG_INFO, "number %s of endpoint %s", number ? number : "none", wb_endpoint_name(ctx));
    int r = wb_send(ctx, &(wb_outgoing){ .type = "Abi.Sent", .destination = "sink", .body = message->body,
                                         .body_size = message->body_size, .headers = headers, .header_count = 2,
                                         .key = "key", .key_size = 3 });
    if (r == WB_OK)
        r = wb_publish(ctx, &(wb_outgoing){ .type = "Abi.Done", .body = message->body,
                                            .body_size = message->body_size });
    if (r == WB_OK)
        r = send_later(ctx, message, "later");
    return r == WB_OK ? send_later(ctx, message, "latest") : r;
}

static int work_together(wb_context *ctx, const wb_message *const *messages, size_t count)
{
    int r = WB_OK;
    for (size_t i = 0; r == WB_OK && i < count; i++) {
        memory_note(ctx, messages[i]->id);
        r = wb_send(ctx, &(wb_outgoing){ .type = "Abi.Sent", .destination = "sink", .cause = messages[i],
                                         .body = messages[i]->body, .body_size = messages[i]->body_size });
    }
    return r;
}

static int give_up(wb_context *ctx, const wb_message *message)
{
    memory_note(ctx, message->id);
    return wb_discard(ctx, "nobody wants it");
}

static int arrive(wb_context *ctx, const wb_message *message)
{
    const char *second = wb_message_header(message, "second");
    say("arrived %s at %s with %.*s %s", message->type, wb_endpoint_name(ctx), (int)message->body_size,
        (const char *)message->body, second ? second : "-");
    return WB_OK;
}

WB_HANDLERS(WB_HANDLER("Abi.Work", work), WB_BATCH_HANDLER("Abi.Together", work_together),
            WB_HANDLER("Abi.Unwanted", give_up), WB_HANDLER("Abi.Sent", arrive), WB_HANDLER("Abi.Later", arrive))
