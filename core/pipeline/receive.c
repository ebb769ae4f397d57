/* SPDX-License-Identifier: Apache-2.0
 *
 * Stage 1: take messages that are already there, one to `take`, and look whether each can
 * be handled at all. Nothing is acknowledged.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/message/header_names.h"
#include "core/message/ids.h"
#include "core/message/incoming.h"
#include "core/pipeline/stages.h"
#include "core/recover/attempts.h"

/* A worker with nothing to do looks around this often; stopping interrupts it. */
#define IDLE_WAIT (5 * WB_SECOND)

static void refuse(wb_item *item, const char *kind, const char *reason)
{
    item->state = WB_ITEM_FAILED;
    wb_failure_set(&item->failure, kind, reason, 0);
}

static size_t headers_size(const wb_incoming *incoming)
{
    size_t size = 0;
    for (size_t i = 0; i < incoming->header_count; i++)
        size += incoming->headers[i].name_size + incoming->headers[i].value_size;
    return size;
}

/* The users' headers: those of the platform do not count, or a message that a handler gave
 * all the headers it may would be refused where it arrives, as would one that comes back from
 * the error queue with the reasons it was there. */
static size_t count_users_headers(const wb_incoming *incoming)
{
    size_t count = 0;
    for (size_t i = 0; i < incoming->header_count; i++)
        count += !wb_header_is_platforms(&incoming->headers[i]);
    return count;
}

static int is_too_large(const wb_worker *w, const wb_incoming *incoming, char *reason, size_t size)
{
    size_t headers = incoming->header_count, bytes = headers_size(incoming);
    if (headers > WB_INCOMING_HEADERS_MAX)
        headers = count_users_headers(incoming);
    if ((int64_t)incoming->body_size > w->pipeline->body_max)
        return snprintf(reason, size, "the body has %zu bytes, over body_max = %" PRId64,
                        incoming->body_size, w->pipeline->body_max);
    if (incoming->id_size > WB_ID_MAX)
        return snprintf(reason, size, "the message id has %zu bytes, more than %d", incoming->id_size,
                        WB_ID_MAX);
    if (headers > WB_INCOMING_HEADERS_MAX)
        return snprintf(reason, size, "the message has %zu headers, more than %d", headers,
                        WB_INCOMING_HEADERS_MAX);
    if (bytes > WB_INCOMING_HEADERS_SIZE_MAX)
        return snprintf(reason, size, "the headers have %zu bytes, more than %d", bytes,
                        WB_INCOMING_HEADERS_SIZE_MAX);
    return 0;
}

/* The handler of the first type the message says it is that has one, or NULL. */
static const wb_handler_entry *find_handler(const wb_handler_set *handlers, const wb_incoming *incoming)
{
    const wb_header *types =
        WB_HEADERS_FIND(incoming->headers, incoming->header_count, WB_HEADER_TYPES);
    const char *position = types ? types->value : "";
    const wb_handler_entry *handler = NULL;
    const char *type;
    size_t size;
    while (!handler && (type = wb_type_next(&position, &size)))
        handler = wb_handlers_find(handlers, type, size);
    return handler;
}

static void refuse_without_handler(wb_item *item)
{
    char reason[400];
    const wb_header *types =
        WB_HEADERS_FIND(item->incoming->headers, item->incoming->header_count, WB_HEADER_TYPES);
    if (types)
        (void)snprintf(reason, sizeof reason, "no handler for \"%.300s\"", types->value);
    else
        (void)snprintf(reason, sizeof reason, "the message names no type: it has no header " WB_HEADER_TYPES);
    refuse(item, WB_FAILURE_NO_HANDLER, reason);
}

/* The order is that of the reasons a person would want to read first. */
static void admit(wb_worker *w, wb_item *item)
{
    const wb_incoming *incoming = item->incoming;
    char reason[200];

    item->handler = find_handler(w->pipeline->handlers, incoming);
    if (is_too_large(w, incoming, reason, sizeof reason)) {
        refuse(item, WB_FAILURE_TOO_LARGE, reason);
    } else if (incoming->problem) {
        refuse(item, WB_FAILURE_UNREADABLE, incoming->problem);
    } else if (!incoming->id || !incoming->id_size) {
        refuse(item, WB_FAILURE_NO_ID, "the message has no id, so a duplicate could not be told");
    } else if (!item->handler) {
        refuse_without_handler(item);
    } else if (!w->pipeline->outbox && incoming->delivery_count > WB_DELIVERIES_MAX) {
        (void)snprintf(reason, sizeof reason,
                       "delivered %" PRIu32 " times without being finished: its handler seems to end "
                       "the process",
                       incoming->delivery_count);
        refuse(item, WB_FAILURE_CRASHES, reason);
    }
}

static void add_held(wb_worker *w, const wb_incoming *incoming)
{
    wb_item *item = &w->held[w->held_count++];
    memset(item, 0, sizeof *item);
    item->incoming = incoming;
    item->state = WB_ITEM_READY;
    admit(w, item);
    item->message = (wb_message){
        .struct_size = sizeof item->message,
        .id = incoming->id,
        .id_size = incoming->id_size,
        .type = item->handler ? item->handler->type : NULL,
        .body = incoming->body,
        .body_size = incoming->body_size,
        .headers = incoming->headers,
        .header_count = incoming->header_count,
        .key = incoming->key,
        .key_size = incoming->key_size,
    };
}

static int64_t wait_until(const wb_worker *w)
{
    if (w->settled_count || w->mark_count || w->pipeline->stop)
        return 0; /* only what is there: the messages before wait for their mark */
    return wb_clock_monotonic() + IDLE_WAIT;
}

int wb_stage_receive(wb_worker *w)
{
    wb_pipeline *p = w->pipeline;
    const wb_incoming *messages[w->held_max];
    size_t count = 0;
    int r;

    if (w->held_count)
        return WB_OK;
    r = p->transport_ops->receive(w->transport, wait_until(w), messages,
                                  w->take, &count, &w->error);
    if (r != WB_OK) {
        w->transport_broken = 1;
        return r;
    }
    for (size_t i = 0; i < count; i++)
        add_held(w, messages[i]);
    if (!count)
        return wb_stage_settle(w);
    wb_crash_point("after_receive");
    return WB_OK;
}
