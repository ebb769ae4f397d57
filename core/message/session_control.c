/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/message/session_control.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <waybill/sys/expiry.h>

#include "core/base/clock.h"
#include "core/message/header_names.h"
#include "core/message/incoming.h"

#define HEADERS 7

/* What a peer asks for beyond is not waited for. */
static int read_span(const wb_header *header, int64_t *ret_span)
{
    if (!header || !wb_expiry_parse(header->value, header->value_size, ret_span))
        return 0;
    *ret_span = *ret_span < WB_SESSION_SPAN_MAX ? *ret_span : WB_SESSION_SPAN_MAX;
    return 1;
}

/* The first is number 1, and what does not say counts as that. */
static uint32_t read_attempt(const wb_header *header)
{
    unsigned long number = header ? strtoul(header->value, NULL, 10) : 1;
    return number >= 1 && number < UINT32_MAX ? (uint32_t)number : 1;
}

static uint64_t read_number(const wb_header *header)
{
    return header ? strtoull(header->value, NULL, 10) : 0;
}

int wb_session_control_read(const wb_header *headers, size_t count, wb_session_control *ret_control)
{
    const wb_header *remaining = WB_HEADERS_FIND(headers, count, WB_HEADER_SESSION_REMAINING);
    if (!remaining)
        return 0;
    ret_control->attempt = read_attempt(WB_HEADERS_FIND(headers, count, WB_HEADER_SESSION_ATTEMPT));
    ret_control->replaces = read_number(WB_HEADERS_FIND(headers, count, WB_HEADER_SESSION_REPLACES));
    return read_span(remaining, &ret_control->remaining) &&
                   read_span(WB_HEADERS_FIND(headers, count, WB_HEADER_SESSION_INCREMENT),
                             &ret_control->increment)
               ? 1
               : -1;
}

int wb_session_control_next(const wb_session_control *control, wb_session_control *ret_next)
{
    int64_t twice = 2 * control->increment;
    int64_t increment = twice > 0 && twice < control->remaining ? twice : control->remaining;
    *ret_next = (wb_session_control){ control->remaining - increment, increment, control->attempt + 1, control->replaces };
    return increment > 0;
}

/* Attempts are few, as each is twice as late as the one before; of a record's number its milliseconds tell most. */
uint32_t wb_session_control_key(const wb_session_control *control)
{
    return control->attempt + ((uint32_t)(control->replaces >> 22) << 8);
}

static wb_header make_header(wb_arena *arena, const char *name, const char *value)
{
    size_t size = strlen(value);
    return (wb_header){ name, wb_arena_copy(arena, value, size), strlen(name), size };
}

static wb_header make_span(wb_arena *arena, const char *name, int64_t span)
{
    char text[WB_SPAN_SIZE];
    wb_clock_format_span(span, text);
    return make_header(arena, name, text);
}

static wb_header make_number(wb_arena *arena, const char *name, uint64_t number)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRIu64, number);
    return make_header(arena, name, text);
}

/* What differs from one message to the next of one session. */
static size_t add_headers(const wb_session_control *control, wb_arena *arena, wb_header *headers)
{
    char now[WB_TIMESTAMP_SIZE];
    wb_clock_format_wire(wb_clock_wall(), now);
    headers[0] = make_span(arena, WB_HEADER_SESSION_REMAINING, control->remaining);
    headers[1] = make_span(arena, WB_HEADER_SESSION_INCREMENT, control->increment);
    headers[2] = make_number(arena, WB_HEADER_SESSION_ATTEMPT, control->attempt);
    headers[3] = make_header(arena, WB_HEADER_SESSION_TIME_SENT, now);
    return 4;
}

static wb_operation *add_operation(const char *destination, const char *id, size_t id_size, wb_arena *arena,
                                   wb_operation_list *list)
{
    wb_operation *operation = wb_operation_append(list, arena);
    operation->kind = WB_OPERATION_SEND;
    operation->flags = WB_OPERATION_MANDATORY;
    operation->destination = destination;
    operation->id = id;
    operation->id_size = id_size;
    operation->body = "";
    return operation;
}

wb_operation *wb_session_control_operation(const char *destination, const char *id, size_t id_size,
                                           const wb_session_control *control, wb_arena *arena,
                                           wb_operation_list *list)
{
    wb_operation *operation = add_operation(destination, id, id_size, arena, list);
    wb_header *headers = wb_arena_alloc(arena, HEADERS * sizeof *headers);
    headers[0] = (wb_header){ WB_HEADER_MESSAGE_ID, id, sizeof WB_HEADER_MESSAGE_ID - 1, id_size };
    headers[1] = make_header(arena, WB_HEADER_CONTROL_MESSAGE, "True");
    operation->headers = headers;
    operation->header_count = 2 + add_headers(control, arena, headers + 2);
    if (control->replaces)
        headers[operation->header_count++] = make_number(arena, WB_HEADER_SESSION_REPLACES, control->replaces);
    return operation;
}

static int is_of_session(const wb_header *header)
{
    return header->name_size >= sizeof WB_HEADER_SESSION_PREFIX - 1 &&
           memcmp(header->name, WB_HEADER_SESSION_PREFIX, sizeof WB_HEADER_SESSION_PREFIX - 1) == 0;
}

wb_operation *wb_session_control_again(const char *destination, const wb_incoming *incoming,
                                       const wb_session_control *control, wb_arena *arena,
                                       wb_operation_list *list)
{
    wb_operation *operation = add_operation(destination, incoming->id, incoming->id_size, arena, list);
    wb_header *headers = wb_arena_alloc(arena, (incoming->header_count + 4) * sizeof *headers);
    size_t count = 0;
    for (size_t i = 0; i < incoming->header_count; i++)
        if (!is_of_session(&incoming->headers[i]))
            headers[count++] = incoming->headers[i];
    operation->headers = headers;
    operation->header_count = count + add_headers(control, arena, headers + count);
    return operation;
}
