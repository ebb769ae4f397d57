/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-message.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/transport/amqp/amqp-gate.h"
#include "plugins/transport/amqp/amqp-headers.h"

/* No broker keeps larger messages; whoever declares more is not believed. */
#define BODY_CAP (UINT64_C(512) << 20)
/* What is announced need not come: a large body begins with this. */
#define BODY_FIRST ((size_t)1 << 20)

/* Of a text about headers. */
#define PROBLEM_SIZE 200

static const char too_much[] = "its headers are over the limits";
static const char no_memory[] = "its body is larger than the memory there is for it";

/* A host that knows no limits sets none; 0 is none. */
static wb_amqp_limits limits_of(const wb_endpoint_info *endpoint)
{
    wb_amqp_limits limits = { SIZE_MAX, SIZE_MAX };
    if (WB_HAS(endpoint, wb_endpoint_info, headers_max) && endpoint->headers_max)
        limits.count = endpoint->headers_max;
    if (WB_HAS(endpoint, wb_endpoint_info, headers_size_max) && endpoint->headers_size_max > 0)
        limits.size = (size_t)endpoint->headers_size_max;
    return limits;
}

/* It is rare: no message has room for it. */
static void note_problem(wb_amqp_message *message, wb_amqp_limits all, wb_amqp_limits limits)
{
    char text[PROBLEM_SIZE];
    if (!wb_amqp_headers_problem(all, message->incoming.header_count, limits, text, sizeof text))
        return;
    message->problem = strdup(text);
    message->incoming.problem = message->problem ? message->problem : too_much;
}

static wb_amqp_message *allocate(const amqp_basic_properties_t *properties, wb_amqp_limits limits,
                                 size_t body_size)
{
    wb_amqp_size size = wb_amqp_headers_measure(properties, limits);
    size_t headers_size = size.header_count * sizeof(wb_header);
    wb_amqp_message *message =
        malloc(sizeof *message + headers_size + size.text_size + body_size + 1);
    if (!message)
        return NULL;
    wb_header *headers = (wb_header *)(message + 1);
    char *text = (char *)(message + 1) + headers_size;
    char *body = text + size.text_size;
    *message = (wb_amqp_message){ .incoming = { .struct_size = sizeof message->incoming } };
    wb_amqp_limits all = wb_amqp_headers_read(properties, limits, &message->incoming, headers, text);
    note_problem(message, all, limits);
    message->body = body;
    message->incoming.body = body;
    body[body_size] = '\0';
    return message;
}
_Static_assert(alignof(wb_header) <= alignof(wb_amqp_message), "headers follow the message");

static void give_up_body(wb_amqp_message *message)
{
    if (message->large)
        free(message->body);
    if (message->holds_gate)
        wb_amqp_gate_leave();
    message->body = NULL;
    message->large = message->holds_gate = 0;
    message->bodiless = 1;
    message->incoming.body = "";
    message->incoming.body_size = 0;
    message->incoming.problem = no_memory;
}

wb_amqp_message *wb_amqp_message_new(const wb_transport *transport,
                                     const amqp_basic_properties_t *properties,
                                     uint64_t body_size)
{
    const wb_endpoint_info *endpoint = transport->endpoint;
    wb_amqp_limits limits = limits_of(endpoint);
    int large = body_size > (uint64_t)(endpoint->body_max > 0 ? endpoint->body_max : 0);
    wb_amqp_message *message = allocate(properties, limits, large ? 0 : (size_t)body_size);
    if (!message && !large && body_size > BODY_FIRST) {
        /* Smaller ones will find room another time. Without the body it can still be moved out of the way, with the reason. */
        message = allocate(properties, limits, 0);
        if (message)
            give_up_body(message);
        return message;
    }
    if (!message)
        return NULL;
    if (large)
        message->body = NULL;
    message->large = large;
    if (large && body_size > BODY_CAP)
        give_up_body(message);
    else
        message->incoming.body_size = (size_t)body_size;
    return message;
}

void wb_amqp_message_free(wb_amqp_message *message)
{
    if (!message)
        return;
    if (message->large)
        free(message->body);
    if (message->holds_gate)
        wb_amqp_gate_leave();
    free(message->problem);
    free(message);
}

int wb_amqp_message_may_read(wb_amqp_message *message)
{
    if (message->large && !message->holds_gate)
        message->holds_gate = wb_amqp_gate_enter();
    return !message->large || message->holds_gate;
}

/* Room for what has arrived and `more`, and a NUL byte behind it. */
static int grow(wb_amqp_message *message, size_t more)
{
    size_t needed = message->body_size + more + 1;
    size_t capacity = message->body_capacity ? message->body_capacity : BODY_FIRST;
    if (needed <= message->body_capacity)
        return 1;
    while (capacity < needed)
        capacity *= 2;
    if (capacity > message->incoming.body_size + 1)
        capacity = message->incoming.body_size + 1;
    char *body = realloc(message->body, capacity);
    if (!body)
        return 0;
    message->body = body;
    message->body_capacity = capacity;
    message->incoming.body = body;
    return 1;
}

void wb_amqp_message_add(wb_amqp_message *message, amqp_bytes_t data)
{
    if (message->bodiless || data.len == 0)
        return;
    if (message->large && !grow(message, data.len)) {
        give_up_body(message);
        return;
    }
    memcpy(message->body + message->body_size, data.bytes, data.len);
    message->body_size += data.len;
    if (message->large)
        message->body[message->body_size] = '\0';
}
