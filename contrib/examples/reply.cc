/* SPDX-License-Identifier: Apache-2.0
 *
 * A handler in C++11. An exception must not leave the handler: it is turned into a
 * result here. How it greets may stand among the endpoint's settings:
 *
 *     settings = { greeting = "good morning"; };
 *
 *     c++ -shared -fPIC -Wl,-z,defs reply.cc $(pkg-config --cflags --libs waybill) -o replycc.so
 */
#include <exception>
#include <string>
#include <waybill/handler.h>

namespace {

int check(wb_context *ctx)
{
    const char *greeting = wb_setting(ctx, "greeting");
    return greeting && !*greeting ? wb_fail(ctx, WB_FATAL, "the setting \"greeting\" is empty") : WB_OK;
}

std::string greeting(wb_context *ctx, const wb_message *msg)
{
    const char *word = wb_setting(ctx, "greeting");
    return std::string(word ? word : "hello") + ", " +
           std::string(static_cast<const char *>(msg->body), msg->body_size);
}

int greet(wb_context *ctx, const wb_message *msg)
{
    try {
        const std::string body = greeting(ctx, msg);
        wb_outgoing outgoing = wb_outgoing();
        outgoing.type = "Example.Greeting";
        outgoing.content_type = "text/plain";
        outgoing.body = body.data();
        outgoing.body_size = body.size();
        return wb_reply(ctx, &outgoing);
    } catch (const std::exception &error) {
        return wb_fail(ctx, WB_RETRY, "could not greet: %s", error.what());
    }
}

} // namespace

WB_MODULE(WB_HOOKS(check, NULL, NULL, NULL, NULL), WB_HANDLER("Example.Greet", greet))
