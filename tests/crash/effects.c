/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/crash/effects.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tests/crash/digest.h"

/* What may differ between a message and its delayed retry; and DelayInSeconds, which is the
 * transport's own. */
static int may_differ(const char *name)
{
    static const char *const names[] = { "NServiceBus.Retries", "NServiceBus.Retries.Timestamp",
                                         "NServiceBus.Transport.RabbitMQ.DelayInSeconds" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], name) == 0)
            return 1;
    return 0;
}

/* A sum, since a transport need not keep the order of headers. */
static uint64_t digest_headers(const wb_message *message)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < message->header_count; i++) {
        const wb_header *header = &message->headers[i];
        uint64_t digest = digest_add(DIGEST_START, header->name, header->name_size);
        if (!may_differ(header->name))
            sum += digest_add(digest, header->value, header->value_size);
    }
    return sum;
}

static int retries_of(const wb_message *message)
{
    const char *retries = wb_message_header(message, "NServiceBus.Retries");
    return retries ? atoi(retries) : 0;
}

/* One line an attempt, written whatever becomes of the transaction. */
static void note_arrival(const effect *e)
{
    const char *path = getenv("CRASH_ARRIVALS");
    const char *due = wb_message_header(e->message, "NServiceBus.DeliverAt");
    char line[512];
    struct timespec now;
    int file = path ? open(path, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
    if (file < 0)
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    int size = snprintf(line, sizeof line, "%.300s\t%lld.%06ld\t%s\t%d\t%s\t%016" PRIx64 "\n",
                        e->message->id, (long long)now.tv_sec, now.tv_nsec / 1000, due ? due : "",
                        retries_of(e->message), e->hash, digest_headers(e->message));
    if (write(file, line, (size_t)size) != size)
        abort();
    close(file);
}

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
    if (strcmp(e->order, "exit") == 0)
        exit(0);
    if (strcmp(e->order, "leave") == 0)
        pthread_exit(NULL);
    if (strcmp(e->order, "reject") == 0)
        return wb_fail(ctx, WB_UNRECOVERABLE, "ordered to reject message %d", e->seq);
    if (order_number(e, "fail", &number) && e->message->attempt <= (uint32_t)number)
        return wb_fail(ctx, WB_RETRY, "ordered to fail attempt %u", e->message->attempt);
    if (order_number(e, "retry", &number) && retries_of(e->message) < number)
        return wb_fail(ctx, WB_RETRY, "ordered to fail until delayed retry %d", number);
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
    note_arrival(ret_effect);
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

static const char *nowhere(char ret_name[256])
{
    const char *name = getenv("CRASH_NOWHERE");
    return name ? name : named("nowhere", ret_name);
}

static const char *destination_of(const effect *e, char ret_name[256])
{
    return strcmp(e->order, "nowhere") == 0 ? nowhere(ret_name) : named("sink", ret_name);
}

static int send_one(wb_context *ctx, const effect *e, int grouped, int ordinal)
{
    char body[400], destination[256], event[256];
    int is_event = ordinal == 2;
    int size = snprintf(body, sizeof body, "cause=%.200s ordinal=%d hash=%s", e->message->id,
                        ordinal, e->hash);
    const wb_header headers[] = { WB_HEADER("Crash.Key", e->key), WB_HEADER("Crash.Note", "ünïcode=;,") };
    wb_outgoing outgoing = {
        .type = is_event ? named("Crash.Happened", event) : "Crash.Noted",
        .destination = is_event ? NULL : destination_of(e, destination),
        .body = body,
        .body_size = (size_t)size,
        .headers = headers,
        .header_count = sizeof headers / sizeof headers[0],
        .key = e->key,
        .key_size = WB_TEXT,
        .cause = grouped ? e->message : NULL,
    };
    return is_event ? wb_publish(ctx, &outgoing) : wb_send(ctx, &outgoing);
}

/* A message to this endpoint that is due later: it has an effect of its own. */
static int send_late(wb_context *ctx, const effect *e, int grouped, const char *destination, int64_t delay)
{
    char body[400], id[300], key[16];
    (void)snprintf(id, sizeof id, "%.250s-late", e->message->id);
    (void)snprintf(key, sizeof key, "l%d", e->seq);
    int size = snprintf(body, sizeof body, "seq=%d key=%s amount=%d do=late cause=%.200s", e->seq, key,
                        e->amount + 1, e->message->id);
    const wb_header headers[] = { WB_HEADER("Crash.Key", key), WB_HEADER("Crash.Note", "ünïcode=;,") };
    return wb_send(ctx, &(wb_outgoing){ .type = e->seq % 2 ? "Crash.Plain" : "Crash.Batch",
                                        .destination = destination,
                                        .id = id,
                                        .id_size = WB_TEXT,
                                        .body = body,
                                        .body_size = (size_t)size,
                                        .headers = headers,
                                        .header_count = sizeof headers / sizeof headers[0],
                                        .key = key,
                                        .key_size = WB_TEXT,
                                        .cause = grouped ? e->message : NULL,
                                        .delay = delay,
                                        .deliver_at = delay ? 0 : WB_SECONDS });
}

static int send_delayed(wb_context *ctx, const effect *e, int grouped)
{
    char name[256];
    int number;
    if (order_number(e, "later", &number))
        return send_late(ctx, e, grouped, named("crash", name), number * WB_MILLISECONDS);
    if (order_number(e, "astray", &number))
        return send_late(ctx, e, grouped, nowhere(name), number * WB_MILLISECONDS);
    return WB_OK;
}

int effect_send(wb_context *ctx, const effect *e, int grouped)
{
    int r = send_one(ctx, e, grouped, 1);
    if (r == WB_OK && e->seq % 2)
        r = send_one(ctx, e, grouped, 2);
    return r == WB_OK ? send_delayed(ctx, e, grouped) : r;
}
