/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/recover/retry_copy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/message/header_names.h"
#include "core/message/incoming.h"

/* FNV-1a: what has several processes fail at once is not to bring all back at once. */
static uint64_t spread(const wb_incoming *incoming, uint32_t number)
{
    uint64_t hash = UINT64_C(14695981039346656037) ^ number;
    for (size_t i = 0; i < incoming->id_size; i++)
        hash = (hash ^ (unsigned char)incoming->id[i]) * UINT64_C(1099511628211);
    return hash >> 16;
}

uint32_t wb_recover_retries(const wb_header *headers, size_t count)
{
    const wb_header *header = WB_HEADERS_FIND(headers, count, WB_HEADER_RETRIES);
    unsigned long number = header ? strtoul(header->value, NULL, 10) : 0;
    return number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
}

/* When its first delayed retry was asked for. The error queue's copy keeps that time, as .NET's does, but not
 * the number: what comes back from there begins anew. */
static const wb_header *find_first(const wb_incoming *incoming)
{
    return wb_recover_retries(incoming->headers, incoming->header_count)
               ? WB_HEADERS_FIND(incoming->headers, incoming->header_count, WB_HEADER_RETRIES_TIMESTAMP)
               : NULL;
}

/* A time that cannot be read counts as now. */
static int is_over(const wb_incoming *incoming, int64_t now)
{
    int64_t first;
    const wb_header *header = find_first(incoming);
    return header && wb_clock_parse_wire(header->value, &first) && first <= now - WB_DELAYED_RETRIES_END;
}

int64_t wb_recover_delay(const wb_recoverability *policy, const wb_retry_question *question)
{
    const wb_incoming *incoming = question->incoming;
    uint32_t number = wb_recover_retries(incoming->headers, incoming->header_count);
    int64_t delay;
    if (!question->failure->may_wait || number >= policy->delayed_retries || is_over(incoming, question->now))
        return 0;
    if (policy->on_failure == WB_ON_MESSAGE_FAILURE_BLOCK ||
        (policy->on_failure == WB_ON_MESSAGE_FAILURE_BY_KEY && question->keeps_order))
        return 0;
    if (question->failure->delay)
        return question->failure->delay;
    if (__builtin_mul_overflow(policy->delay_increment, (int64_t)number + 1, &delay) ||
        delay > WB_OUTGOING_DELAY_MAX / 2)
        delay = WB_OUTGOING_DELAY_MAX / 2;
    int64_t most = delay / 100 * policy->delay_jitter;
    return delay + (most ? (int64_t)(spread(incoming, number) % (uint64_t)most) : 0);
}

int64_t wb_recover_most_retries(int64_t of_others, const wb_type_policy *types, size_t count)
{
    int64_t most = of_others;
    for (size_t i = 0; i < count; i++)
        if (types[i].delayed_retries > most)
            most = types[i].delayed_retries;
    return most;
}

/* The last one is sent within WB_DELAYED_RETRIES_END, and waits then; an increment is a year at most. */
int64_t wb_recover_span(int64_t delayed_retries, int64_t increment, int64_t jitter)
{
    int64_t span = 0, delay = 0;
    for (int64_t i = 1; i <= delayed_retries && span < WB_DELAYED_RETRIES_END; i++) {
        delay += increment;
        span += delay + delay / 100 * jitter;
    }
    return span;
}

static int is_ours(const wb_header *header)
{
    static const char *const names[] = { WB_HEADER_RETRIES, WB_HEADER_RETRIES_TIMESTAMP };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (header->name_size == strlen(names[i]) && memcmp(header->name, names[i], header->name_size) == 0)
            return 1;
    return 0;
}

static wb_header make_header(wb_arena *arena, const char *name, const char *value)
{
    size_t size = strlen(value);
    return (wb_header){ name, wb_arena_copy(arena, value, size), strlen(name), size };
}

/* The first one's time stays: it is what ends the tries after a day, by the clock that they are due by. */
static wb_header make_timestamp(const wb_origin *origin, const wb_incoming *incoming, wb_arena *arena)
{
    char now[WB_TIMESTAMP_SIZE];
    const wb_header *first = find_first(incoming);
    wb_clock_format_wire(wb_origin_now(origin), now);
    return first ? *first : make_header(arena, WB_HEADER_RETRIES_TIMESTAMP, now);
}

static void add_headers(const wb_origin *origin, const wb_incoming *incoming, wb_arena *arena, wb_operation *operation)
{
    char number[12];
    wb_header *headers = wb_arena_alloc(arena, (incoming->header_count + 2) * sizeof *headers);
    size_t count = 0;
    for (size_t i = 0; i < incoming->header_count; i++)
        if (!is_ours(&incoming->headers[i]))
            headers[count++] = incoming->headers[i];
    (void)snprintf(number, sizeof number, "%" PRIu32,
                   wb_recover_retries(incoming->headers, incoming->header_count) + 1);
    headers[count++] = make_header(arena, WB_HEADER_RETRIES, number);
    headers[count++] = make_timestamp(origin, incoming, arena);
    operation->headers = headers;
    operation->header_count = count;
}

wb_operation *wb_recover_retry_operation(const wb_origin *origin, const wb_incoming *incoming, int64_t due,
                                         wb_arena *arena, wb_operation_list *list)
{
    wb_operation *operation = wb_operation_append(list, arena);
    operation->kind = WB_OPERATION_SEND;
    operation->flags = WB_OPERATION_MANDATORY;
    operation->destination = wb_origin_queue(origin);
    operation->id = incoming->id;
    operation->id_size = incoming->id_size;
    add_headers(origin, incoming, arena, operation);
    operation->body = incoming->body;
    operation->body_size = incoming->body_size - (wb_bug("retry_cuts_body") ? 1 : 0);
    operation->key = incoming->key;
    operation->key_size = incoming->key_size;
    operation->deliver_at = due;
    return operation;
}
