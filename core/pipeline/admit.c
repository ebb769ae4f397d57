/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/pipeline/admit.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/base/log.h"
#include "core/message/failed_id.h"
#include "core/message/header_names.h"
#include "core/message/ids.h"
#include "core/message/incoming.h"

/* Of control messages. */
#define NOTE_EVERY (60 * WB_SECOND)

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
    const size_t bytes = headers_size(incoming);
    const size_t most = WB_INCOMING_HEADERS_SIZE_MAX + (w->pipeline->failures ? WB_FAILURE_HEADERS_SIZE_MAX : 0);
    if ((int64_t)incoming->body_size > w->pipeline->body_max)
        return snprintf(reason, size, "the body has %zu bytes, over body_max = %" PRId64,
                        incoming->body_size, w->pipeline->body_max);
    if (incoming->id_size > WB_ID_MAX)
        return snprintf(reason, size, "the message id has %zu bytes, more than %d", incoming->id_size,
                        WB_ID_MAX);
    if (has_too_many_headers(incoming, reason, size))
        return 1;
    if (bytes > most)
        return snprintf(reason, size, "the headers have %zu bytes, more than %zu", bytes, most);
    return 0;
}

static const wb_header *find(const wb_item *item, const char *name, size_t size)
{
    return wb_headers_find(item->incoming->headers, item->incoming->header_count, name, size);
}

#define FIND(item, literal) find((item), "" literal, sizeof(literal) - 1)

/* @return 0 when there are more of them than there is place for. */
static int find_handlers(const wb_handler_set *handlers, wb_item *item)
{
    const wb_header *types = FIND(item, WB_HEADER_TYPES);
    const char *position = types && !(handlers->other && wb_bug("other_takes_all")) ? types->value : "";
    char type[WB_TYPE_SIZE];
    size_t size;
    while (wb_type_next(&position, type, &size) && !(item->handler_count && wb_bug("one_handler"))) {
        const wb_handler_entry *handler = wb_handlers_find(handlers, type, size);
        if (handler && !wb_item_add_handler(item, handler))
            return 0;
    }
    return 1;
}

/* What names no type is of none that another handler takes. */
static void give_other(const wb_handler_set *handlers, wb_item *item)
{
    char text[WB_TYPE_SIZE];
    const char *type = wb_headers_type(item->incoming->headers, item->incoming->header_count, text);
    wb_item_give_other(item, handlers->other, type ? type : "");
}

/* ---- what has no handler ----------------------------------------------------------- */

/* One line a minute says how many there were; not one for each, they may come often. */
static void note_control_message(wb_worker *w, const wb_item *item)
{
    char count[24];
    wb_pipeline *p = w->pipeline;
    int64_t now = wb_clock_monotonic(), due = atomic_load(&p->control_messages_due);
    uint64_t so_far = atomic_fetch_add(&p->control_messages, 1) + 1;
    if (now < due || !atomic_compare_exchange_strong(&p->control_messages_due, &due, now + NOTE_EVERY))
        return;
    (void)snprintf(count, sizeof count, "%" PRIu64, so_far);
    wb_log_event(WB_LOG_INFO, "control messages are acknowledged: nothing here is what they are for",
                 { "endpoint", p->endpoint }, { "count", count }, { "message_id", item->message.id });
}

static int is_control_message(const wb_item *item)
{
    return FIND(item, WB_HEADER_CONTROL_MESSAGE) && !FIND(item, WB_HEADER_TYPES);
}

static void admit_control_message(wb_worker *w, wb_item *item)
{
    int r = w->pipeline->minds_sessions ? wb_session_control_read(item->incoming->headers, item->incoming->header_count,
                                                                  &item->control)
                                        : 0;
    item->is_control = r > 0;
    if (r < 0)
        wb_item_condemn(item, WB_FAILURE_UNREADABLE,
                        "the control message of a session has times that cannot be read");
    else if (r == 0)
        note_control_message(w, item);
}

static void refuse_without_handler(wb_item *item)
{
    char reason[400];
    const wb_header *types = FIND(item, WB_HEADER_TYPES);
    if (types)
        (void)snprintf(reason, sizeof reason, "no handler for \"%.300s\"", types->value);
    else
        (void)snprintf(reason, sizeof reason, "the message names no type: it has no header " WB_HEADER_TYPES);
    wb_item_condemn(item, WB_FAILURE_NO_HANDLER, reason);
}

/* Whoever reads that it failed wants to know what it was. */
static void name_type(wb_item *item)
{
    char text[WB_TYPE_SIZE];
    const char *type = wb_headers_type(item->incoming->headers, item->incoming->header_count, text);
    if (type && !item->message.type)
        wb_item_name_type(item, type);
}

/* Whatever failed is for its handler, and so are answers of what was retried. */
static int is_for_failures(const wb_worker *w, const wb_item *item)
{
    return w->pipeline->failures &&
           (FIND(item, WB_HEADER_FAILED_QUEUE) || wb_failed_answer(item->incoming->headers, item->incoming->header_count));
}

/* One that fails again has its id again, and what several endpoints handle fails in each. */
static void know_by_failure(const wb_worker *w, wb_item *item)
{
    char claim[WB_GENERATED_ID_SIZE];
    const wb_incoming *incoming = item->incoming;
    if (!is_for_failures(w, item) || wb_bug("failures_by_id"))
        return;
    wb_failed_claim(incoming->headers, incoming->header_count, incoming->id, incoming->id_size, claim);
    wb_item_know_by(item, claim);
}

/* The order is that of the reasons a person would want to read first. */
void wb_admit(wb_worker *w, wb_item *item)
{
    const wb_incoming *incoming = item->incoming;
    char reason[200];

    if (is_too_large(w, incoming, reason, sizeof reason))
        wb_item_condemn(item, WB_FAILURE_TOO_LARGE, reason);
    else if (incoming->problem)
        wb_item_condemn(item, WB_FAILURE_UNREADABLE, incoming->problem);
    else if (!incoming->id || !incoming->id_size)
        wb_item_condemn(item, WB_FAILURE_NO_ID, "the message has no id, so a duplicate could not be told");
    else if (!find_handlers(w->pipeline->handlers, item))
        wb_item_condemn(item, WB_FAILURE_TOO_LARGE, "the message names more types with a handler than "
                                                    WB_ITEM_HANDLERS_TEXT);
    else if (!item->handler_count && is_control_message(item) && !is_for_failures(w, item))
        admit_control_message(w, item);
    else if (!item->handler_count && w->pipeline->handlers->other)
        give_other(w->pipeline->handlers, item);
    else if (!item->handler_count)
        refuse_without_handler(item);
    if (item->verdict == WB_VERDICT_FAILED)
        name_type(item);
    else
        know_by_failure(w, item);
}
