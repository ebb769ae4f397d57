/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/crash/effects.h"

#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tests/crash/digest.h"

static int order_number(const effect *e, const char *order, int *ret_number)
{
    size_t size = strlen(order);
    if (strncmp(e->order, order, size) != 0 || e->order[size] != ':')
        return 0;
    *ret_number = atoi(e->order + size + 1);
    return 1;
}

static int follow_orders(wb_context *ctx, const effect *e)
{
    int number;
    if (strcmp(e->order, "abort") == 0)
        abort();
    if (strcmp(e->order, "reject") == 0)
        return wb_fail(ctx, WB_UNRECOVERABLE, "ordered to reject message %d", e->seq);
    if (order_number(e, "fail", &number) && e->message->attempt <= (uint32_t)number)
        return wb_fail(ctx, WB_RETRY, "ordered to fail attempt %u", e->message->attempt);
    if (order_number(e, "slow", &number))
        nanosleep(&(struct timespec){ number / 1000, number % 1000 * 1000000L }, NULL);
    return WB_OK;
}

int effect_read(wb_context *ctx, const wb_message *message, effect *ret_effect)
{
    char head[200] = "";
    size_t size = message->body_size < sizeof head - 1 ? message->body_size : sizeof head - 1;

    memcpy(head, message->body, size);
    *ret_effect = (effect){ .message = message };
    if (sscanf(head, "seq=%d key=%31s amount=%d do=%31s", &ret_effect->seq, ret_effect->key,
               &ret_effect->amount, ret_effect->order) != 4)
        return wb_fail(ctx, WB_UNRECOVERABLE, "not a message of the crash suite");
    (void)snprintf(ret_effect->hash, sizeof ret_effect->hash, "%016" PRIx64,
                   digest_add(DIGEST_START, message->body, message->body_size));
    return follow_orders(ctx, ret_effect);
}

void effect_between_writes(void)
{
    static atomic_int passed;
    const char *nth = getenv("CRASH_HANDLER");
    if (nth && atomic_fetch_add(&passed, 1) + 1 == atoi(nth))
        kill(getpid(), SIGKILL);
}

/* The suite's queues, and its event, have a prefix where trials share a broker that has no
 * virtual hosts. */
static const char *named(const char *name, char ret_name[256])
{
    const char *prefix = getenv("CRASH_PREFIX");
    (void)snprintf(ret_name, 256, "%s%s", prefix ? prefix : "", name);
    return ret_name;
}

static const char *destination_of(const effect *e, char ret_name[256])
{
    const char *nowhere = getenv("CRASH_NOWHERE");
    if (strcmp(e->order, "nowhere") != 0)
        return named("sink", ret_name);
    return nowhere ? nowhere : named("nowhere", ret_name);
}

static int send_one(wb_context *ctx, const effect *e, int grouped, int ordinal)
{
    char body[400], destination[256], event[256];
    int is_event = ordinal == 2;
    int size = snprintf(body, sizeof body, "cause=%.200s ordinal=%d hash=%s", e->message->id,
                        ordinal, e->hash);
    wb_header headers[] = { { "Crash.Key", e->key, 0, 0 }, { "Crash.Note", "ünïcode=;,", 0, 0 } };
    wb_outgoing outgoing = {
        .type = is_event ? named("Crash.Happened", event) : "Crash.Noted",
        .destination = is_event ? NULL : destination_of(e, destination),
        .body = body,
        .body_size = (size_t)size,
        .headers = headers,
        .header_count = sizeof headers / sizeof headers[0],
        .key = e->key,
        .key_size = strlen(e->key),
        .cause = grouped ? e->message : NULL,
    };
    return is_event ? wb_publish(ctx, &outgoing) : wb_send(ctx, &outgoing);
}

int effect_send(wb_context *ctx, const effect *e, int grouped)
{
    int r = send_one(ctx, e, grouped, 1);
    if (r == WB_OK && e->seq % 2)
        r = send_one(ctx, e, grouped, 2);
    return r;
}
