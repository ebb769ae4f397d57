/* SPDX-License-Identifier: Apache-2.0
 *
 * The handler of an endpoint whose input queue is an error queue: sends each message back to the queue in which it
 * failed, under its own id, as it came: a message that is sent under the id of the one in hand gets no headers from Waybill.
 * Its time to be received is over, or counts no more: it was received once. doc/day2/error-queue.md has the configuration. With a setting "to" messages
 * go there, as those of an audit queue do (doc/day2/backup-and-restore.md). With a setting "type" only messages of that
 * type go back; others are moved to this endpoint's own error queue.
 *
 *     cc -shared -fPIC -Wl,-z,defs replay.c $(pkg-config --cflags --libs waybill) -o replay.so
 */
#include <string.h>
#include <waybill/handler.h>

enum { HEADERS_MAX = 320 }; /* as many as a message may have: 256, and 64 of the platform */

/* What the failure, or the audit, added says nothing of the message, and counts its attempts. Without it the message would
 * expire again, since it was sent long ago. */
static int is_no_senders(const char *name)
{
    static const char *const names[] = { "NServiceBus.FailedQ", "NServiceBus.TimeOfFailure", "NServiceBus.Retries",
                                         "NServiceBus.Retries.Timestamp", "NServiceBus.FLRetries",
                                         "NServiceBus.ProcessingStarted", "NServiceBus.ProcessingEnded",
                                         "NServiceBus.ProcessingMachine", "NServiceBus.ProcessingEndpoint",
                                         "$.diagnostics.hostid", "$.diagnostics.hostdisplayname",
                                         "NServiceBus.TimeToBeReceived" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return 1;
    return strncmp(name, "NServiceBus.ExceptionInfo.", 26) == 0;
}

static int replay(wb_context *ctx, const wb_message *msg)
{
    wb_header headers[HEADERS_MAX];
    size_t count = 0;
    const char *only = wb_setting(ctx, "type");
    const char *to = wb_setting(ctx, "to");
    const char *queue = to ? to : wb_message_header(msg, "NServiceBus.FailedQ");
    if (only && strcmp(only, msg->type) != 0)
        return wb_fail(ctx, WB_UNRECOVERABLE, "kept: it is of another type than \"%s\"", only);
    if (!queue || !msg->type[0] || wb_message_header(msg, "Waybill.Trimmed"))
        return wb_fail(ctx, WB_UNRECOVERABLE, "kept: it has no NServiceBus.FailedQ or no type, or is not whole");
    for (size_t i = 0; i < msg->header_count && count < HEADERS_MAX; i++)
        if (!is_no_senders(msg->headers[i].name))
            headers[count++] = msg->headers[i];
    return wb_send(ctx, &(wb_outgoing){ .type = msg->type, .destination = queue,
                                        .id = msg->id, .id_size = msg->id_size,
                                        .key = msg->key, .key_size = msg->key_size,
                                        .content_type = wb_message_header(msg, "NServiceBus.ContentType"),
                                        .body = msg->body, .body_size = msg->body_size,
                                        .headers = headers, .header_count = count });
}

WB_HANDLERS(WB_HANDLER("*", replay))
