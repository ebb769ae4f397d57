/* SPDX-License-Identifier: Apache-2.0
 *
 * The smallest handler: answers a request. It needs no database, so it runs on any
 * persistence, or without one.
 *
 *     cc -shared -fPIC -Wl,-z,defs reply.c $(pkg-config --cflags --libs waybill) -o reply.so
 */
#include <waybill/handler.h>

static int answer(wb_context *ctx, const wb_message *msg)
{
    const char *locale = wb_message_header(msg, "Locale");
    const wb_header header = WB_HEADER("Locale", locale ? locale : "en");
    if (msg->body_size == 0)
        return wb_fail(ctx, WB_UNRECOVERABLE, "the request has no body");
    wb_log(ctx, WB_LOG_DEBUG, "answering attempt %u", (unsigned)msg->attempt);
    return wb_reply(ctx, &(wb_outgoing){ .type = "Example.Answer",
                                         .body = msg->body,
                                         .body_size = msg->body_size,
                                         .headers = &header,
                                         .header_count = 1 });
}

WB_HANDLERS(WB_HANDLER("Example.Question", answer))
