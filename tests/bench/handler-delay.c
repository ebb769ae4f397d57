/* SPDX-License-Identifier: Apache-2.0
 *
 * Fills a delayed message store: each message asks for a thousand that are due in a day. And measures
 * how late they are: Bench.AskLate asks for one that is due soon, Bench.Late notes when it came, in
 * nanoseconds after its due time, in the file BENCH_LATE.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <waybill/handler.h>

#define EACH 1000

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return (int64_t)time.tv_sec * WB_SECONDS + time.tv_nsec;
}

static int fill(wb_context *ctx, const wb_message *message)
{
    const char *to = wb_message_header(message, "to");
    int r = WB_OK;
    for (int i = 0; i < EACH && r == WB_OK; i++)
        r = wb_send(ctx, &(wb_outgoing){ .type = "Bench.OrderPlaced",
                                         .destination = to ? to : "bench.sink",
                                         .body = message->body,
                                         .body_size = message->body_size,
                                         .delay = 24 * WB_HOURS });
    return r;
}

static int ask(wb_context *ctx, const wb_message *message)
{
    char text[24];
    (void)message;
    int64_t due = now() + 1500000000 + (int64_t)(rand() % 1000) * 1000000;
    (void)snprintf(text, sizeof text, "%" PRId64, due);
    return wb_send(ctx, &(wb_outgoing){ .type = "Bench.Late",
                                        .destination = wb_endpoint_name(ctx),
                                        .body = text,
                                        .body_size = strlen(text),
                                        .deliver_at = due });
}

static int note(wb_context *ctx, const wb_message *message)
{
    char text[24] = "";
    const char *path = getenv("BENCH_LATE");
    int64_t came = now();
    memcpy(text, message->body, message->body_size < sizeof text - 1 ? message->body_size : sizeof text - 1);
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file)
        return wb_fail(ctx, WB_UNRECOVERABLE, "BENCH_LATE is no file to write to");
    fprintf(file, "%" PRId64 "\n", came - (int64_t)strtoll(text, NULL, 10));
    return fclose(file) ? WB_RETRY : WB_OK;
}

WB_HANDLERS(WB_HANDLER("Bench.PlaceOrder", fill), WB_HANDLER("Bench.AskLate", ask), WB_HANDLER("Bench.Late", note))
