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
#include "core/pipeline/batch.h"
#include "core/pipeline/pace.h"
#include "core/pipeline/stages.h"

/* A worker with nothing to do looks around this often; stopping interrupts it. */
#define IDLE_WAIT (5 * WB_SECOND)

static size_t headers_size(const wb_incoming *incoming)
{
    size_t size = 0;
    for (size_t i = 0; i < incoming->header_count; i++)
        size += incoming->headers[i].name_size + incoming->headers[i].value_size;
    return size;
}

/* The platform's headers are counted by themselves, or a message that a handler gave all the
 * headers it may would be refused where it arrives, as would one that comes back from the error
 * queue with the reasons it was there. */
static size_t count_platforms_headers(const wb_incoming *incoming)
{
    size_t count = 0;
    for (size_t i = 0; i < incoming->header_count; i++)
        count += wb_header_is_platforms(&incoming->headers[i]) != 0;
    return count;
}

static int has_too_many_headers(const wb_incoming *incoming, char *reason, size_t size)
{
    if (incoming->header_count <= WB_PLATFORM_HEADERS_MAX)
        return 0;
    size_t platforms = count_platforms_headers(incoming), own = incoming->header_count - platforms;
    if (platforms > WB_PLATFORM_HEADERS_MAX)
        return snprintf(reason, size, "the message has %zu headers of the platform, more than %d",
                        platforms, WB_PLATFORM_HEADERS_MAX);
    if (own > WB_INCOMING_HEADERS_MAX)
        return snprintf(reason, size, "the message has %zu headers, more than %d", own,
                        WB_INCOMING_HEADERS_MAX);
    return 0;
}

static int is_too_large(const wb_worker *w, const wb_incoming *incoming, char *reason, size_t size)
{
    size_t bytes = headers_size(incoming);
    if ((int64_t)incoming->body_size > w->pipeline->body_max)
        return snprintf(reason, size, "the body has %zu bytes, over body_max = %" PRId64,
                        incoming->body_size, w->pipeline->body_max);
    if (incoming->id_size > WB_ID_MAX)
        return snprintf(reason, size, "the message id has %zu bytes, more than %d", incoming->id_size,
                        WB_ID_MAX);
    if (has_too_many_headers(incoming, reason, size))
        return 1;
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
    char type[WB_TYPE_SIZE];
    size_t size;
    while (!handler && wb_type_next(&position, type, &size))
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
    wb_item_condemn(item, WB_FAILURE_NO_HANDLER, reason);
}

/* The order is that of the reasons a person would want to read first. */
static void admit(wb_worker *w, wb_item *item)
{
    const wb_incoming *incoming = item->incoming;
    char reason[200];

    if (is_too_large(w, incoming, reason, sizeof reason))
        wb_item_condemn(item, WB_FAILURE_TOO_LARGE, reason);
    else if (incoming->problem)
        wb_item_condemn(item, WB_FAILURE_UNREADABLE, incoming->problem);
    else if (!incoming->id || !incoming->id_size)
        wb_item_condemn(item, WB_FAILURE_NO_ID, "the message has no id, so a duplicate could not be told");
    else if (!item->handler)
        refuse_without_handler(item);
}

static int has_something_to_settle(const wb_worker *w)
{
    return w->settled_count || w->mark_count;
}

static int64_t wait_until(const wb_worker *w)
{
    int64_t idle = wb_clock_monotonic() + IDLE_WAIT, next = wb_batch_next_time(w);
    if (has_something_to_settle(w) || w->pipeline->stop)
        return 0; /* only what is there: the messages before wait for their mark */
    return next < idle ? next : idle; /* in the past when one that was set aside is due */
}

/* Too many are set aside: more would be more memory. Whoever is due first runs next. */
static void wait_for_those_aside(wb_worker *w)
{
    wb_error why = { .result = WB_RETRY };
    (void)snprintf(why.text, sizeof why.text,
                   "%zu messages in hand wait for a server, or for an error queue that takes them",
                   wb_batch_count_aside(w));
    wb_pace_complain(w, "takes no more messages", &why);
    int64_t wait = wb_batch_next_time(w) - wb_clock_monotonic();
    if (!has_something_to_settle(w) && wait > 0)
        wb_clock_pause(wait < IDLE_WAIT ? wait : IDLE_WAIT, &w->pipeline->stop);
}

static size_t count_wanted(const wb_worker *w)
{
    size_t room = wb_batch_room(w);
    if (wb_batch_count_aside(w) >= WB_ASIDE_MAX)
        return 0;
    return room < w->take ? room : w->take;
}

int wb_stage_receive(wb_worker *w, wb_error *error)
{
    wb_pipeline *p = w->pipeline;
    const wb_incoming *messages[w->held_max];
    size_t count = 0, wanted = count_wanted(w);

    if (!wanted) {
        wait_for_those_aside(w);
        return WB_OK;
    }
    int r = p->transport_ops->receive(w->transport, wait_until(w), messages, wanted, &count, error);
    if (r != WB_OK) {
        w->transport_broken = 1;
        return r;
    }
    for (size_t i = 0; i < count; i++)
        admit(w, wb_batch_hold(w, messages[i], find_handler(p->handlers, messages[i])));
    if (count)
        wb_crash_point("after_receive");
    return WB_OK;
}
