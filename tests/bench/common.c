/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/bench/common.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

volatile int bench_stopping;

const char *const bench_header_names[BENCH_HEADER_COUNT] = {
    "NServiceBus.MessageId",
    "NServiceBus.MessageIntent",
    "NServiceBus.ConversationId",
    "NServiceBus.CorrelationId",
    "NServiceBus.RelatedTo",
    "NServiceBus.ReplyToAddress",
    "NServiceBus.OriginatingEndpoint",
    "NServiceBus.OriginatingMachine",
    "$.diagnostics.originating.hostid",
    "NServiceBus.ContentType",
    "NServiceBus.EnclosedMessageTypes",
    "NServiceBus.Version",
    "NServiceBus.TimeSent",
};

void bench_die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: ", program_invocation_short_name);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

void *bench_zeroed(size_t size)
{
    void *memory = calloc(1, size);
    if (!memory)
        bench_die("out of memory");
    return memory;
}

const char *bench_setting(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value && *value ? value : otherwise;
}

int64_t bench_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

uint64_t bench_wall_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

uint64_t bench_number(const char *option, const char *text, uint64_t minimum)
{
    char *end = NULL;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || end == text || *end || value < minimum)
        bench_die("--%s: \"%s\" is not a number from %llu up", option, text,
                  (unsigned long long)minimum);
    return value;
}

/* splitmix64: spreads neighbouring numbers, so that ids arrive in no index order, as
 * those of real senders do not. */
static uint64_t mix(uint64_t value)
{
    value += 0x9e3779b97f4a7c15u;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

static void put_hex(char *buffer, uint64_t value, int digits)
{
    static const char hex[] = "0123456789abcdef";
    for (int i = digits - 1; i >= 0; i--, value >>= 4)
        buffer[i] = hex[value & 15];
}

static void put_id(char *buffer, uint64_t high, uint64_t low)
{
    put_hex(buffer, high >> 32, 8);
    put_hex(buffer + 9, high >> 16, 4);
    put_hex(buffer + 14, high, 4);
    put_hex(buffer + 19, low >> 48, 4);
    put_hex(buffer + 24, low, 12);
    buffer[8] = buffer[13] = buffer[18] = buffer[23] = '-';
    buffer[BENCH_ID_SIZE] = '\0';
}

void bench_message_id(char *buffer, uint64_t salt, uint64_t number)
{
    put_id(buffer, mix(salt ^ mix(number)), number);
}

void bench_caused_id(char *buffer, const void *cause, size_t cause_size)
{
    const unsigned char *bytes = cause;
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < cause_size; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    put_id(buffer, mix(hash), hash);
}

static int format_start(char *line, size_t size, uint64_t number)
{
    return snprintf(line, size, "{\"OrderId\":%llu,\"Lines\":[", (unsigned long long)number);
}

static int format_line(char *line, size_t size, uint64_t random)
{
    return snprintf(line, size, "{\"Sku\":\"%08x\",\"Quantity\":%u,\"Price\":%u.%02u},",
                    (unsigned)random, (unsigned)(random >> 32) % 20,
                    (unsigned)(random >> 40) % 1000, (unsigned)(random >> 52) % 100);
}

void bench_message_body(char *buffer, size_t size, uint64_t number)
{
    char line[128];
    size_t used = 0;
    for (uint64_t i = 0; used < size; i++) {
        uint64_t random = mix(number * 64 + i);
        int length = i == 0 ? format_start(line, sizeof line, number)
                            : format_line(line, sizeof line, random);
        size_t room = size - used;
        size_t part = (size_t)length < room ? (size_t)length : room;
        memcpy(buffer + used, line, part);
        used += part;
    }
    memcpy(buffer + size - 2, "]}", 2);
}

/* "yyyy-MM-dd HH:mm:ss:ffffff Z"; the calendar part is computed once a second. */
static void format_time(char *buffer, size_t size)
{
    static _Thread_local time_t last;
    static _Thread_local char text[20];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (now.tv_sec != last) {
        struct tm parts;
        gmtime_r(&now.tv_sec, &parts);
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
        last = now.tv_sec;
    }
    snprintf(buffer, size, "%s:%06u Z", text, (unsigned)(now.tv_nsec / 1000) % 1000000u);
}

void bench_header_values(const struct bench_envelope *envelope, char *time_sent,
                         const char *values[BENCH_HEADER_COUNT])
{
    format_time(time_sent, 32);
    const char *all[BENCH_HEADER_COUNT] = {
        envelope->id,
        "Send",
        envelope->conversation_id,
        envelope->related_to ? envelope->related_to : envelope->id,
        envelope->related_to ? envelope->related_to : "",
        envelope->endpoint,
        envelope->endpoint,
        "bench.localdomain",
        "5f1d7f2c9f0b4b6f8f2a1f6b0c3d9e57",
        "application/json",
        envelope->type,
        "0.1.0",
        time_sent,
    };
    memcpy(values, all, sizeof all);
}

unsigned char *bench_bytes_room(struct bench_bytes *bytes, size_t size)
{
    if (bytes->capacity - bytes->size < size) {
        size_t capacity = bytes->capacity ? bytes->capacity * 2 : 4096;
        while (capacity - bytes->size < size)
            capacity *= 2;
        bytes->data = realloc(bytes->data, capacity);
        if (!bytes->data)
            bench_die("out of memory");
        bytes->capacity = capacity;
    }
    return bytes->data + bytes->size;
}

void bench_bytes_put(struct bench_bytes *bytes, const void *data, size_t size)
{
    memcpy(bench_bytes_room(bytes, size), data, size);
    bytes->size += size;
}

static void on_signal(int number)
{
    (void)number;
    bench_stopping = 1;
}

void bench_stop_on_signal(void)
{
    struct sigaction action = { .sa_handler = on_signal };
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}
