/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/transport/amqp/amqp-window.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/transport/amqp/amqp-delay.h"

#define NOBODY SIZE_MAX /* a confirmed place in `published` */

static int make_room(wb_amqp_window *window, size_t count)
{
    if (count <= window->capacity)
        return 1;
    wb_amqp_slot *slots = realloc(window->slots, count * sizeof *slots);
    if (!slots)
        return 0;
    memset(slots + window->capacity, 0, (count - window->capacity) * sizeof *slots);
    window->slots = slots;
    size_t *published = realloc(window->published, count * sizeof *published);
    if (!published)
        return 0;
    window->published = published;
    window->capacity = count;
    return 1;
}

static void forget_reasons(wb_amqp_window *window)
{
    for (size_t i = 0; i < window->capacity; i++) {
        free(window->slots[i].reason);
        window->slots[i].reason = NULL;
    }
}

int wb_amqp_window_begin(wb_amqp_window *window, wb_operation *const *operations, size_t count)
{
    forget_reasons(window);
    for (size_t i = 0; i < count; i++)
        operations[i]->result = WB_NOT_CONNECTED;
    window->count = window->unsettled = 0;
    wb_amqp_window_new_round(window);
    if (!make_room(window, count))
        return 0;
    for (size_t i = 0; i < count; i++)
        window->slots[i] = (wb_amqp_slot){ .operation = operations[i] };
    window->count = window->unsettled = count;
    return 1;
}

void wb_amqp_window_free(wb_amqp_window *window)
{
    forget_reasons(window);
    free(window->slots);
    free(window->published);
    *window = (wb_amqp_window){ .config = window->config };
}

void wb_amqp_window_new_round(wb_amqp_window *window)
{
    window->base = window->next;
    window->published_count = window->lowest = window->outstanding = window->returns = 0;
}

void wb_amqp_window_new_channel(wb_amqp_window *window)
{
    window->next = 1;
    wb_amqp_window_new_round(window);
}

uint64_t wb_amqp_window_skip(wb_amqp_window *window)
{
    uint64_t sequence = window->next++;
    wb_amqp_window_new_round(window);
    return sequence;
}

void wb_amqp_window_publish(wb_amqp_window *window, size_t slot)
{
    window->slots[slot].returned = 0;
    window->published[window->published_count++] = slot;
    window->outstanding++;
    window->next++;
}

void wb_amqp_window_settle(wb_amqp_window *window, size_t index, int result, int cause,
                           const char *format, ...)
{
    wb_amqp_slot *slot = &window->slots[index];
    if (slot->settled)
        return;
    slot->settled = 1;
    window->unsettled--;
    slot->operation->result = result;
    if (result != WB_REJECT)
        return;
    slot->operation->cause = cause;
    slot->operation->reason = "the broker refuses it";
    slot->reason = malloc(WB_AMQP_REASON_SIZE);
    if (!slot->reason)
        return;
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(slot->reason, WB_AMQP_REASON_SIZE, format, arguments);
    va_end(arguments);
    slot->operation->reason = slot->reason;
}

const char *wb_amqp_window_route(const wb_amqp_window *window, size_t slot, wb_amqp_route *ret_route)
{
    const wb_operation *operation = window->slots[slot].operation;
    const char *problem = wb_amqp_route_make(window->config, operation, ret_route);
    if (!problem && window->slots[slot].delay)
        wb_amqp_delay_route(window->slots[slot].delay, wb_amqp_address_queue(operation->destination),
                            ret_route);
    return problem;
}

static void settle_returned(wb_amqp_window *window, size_t slot)
{
    const wb_operation *operation = window->slots[slot].operation;
    wb_amqp_route route;
    if (wb_amqp_window_route(window, slot, &route) == NULL && window->slots[slot].delay)
        wb_amqp_window_settle(window, slot, WB_REJECT, WB_CAUSE_UNROUTABLE,
                              "exchange \"%s\" leads to no queue: run waybill install", route.exchange);
    else if (!route.exchange[0])
        wb_amqp_window_settle(window, slot, WB_REJECT, WB_CAUSE_UNROUTABLE,
                              "there is no queue \"%s\": is the receiving endpoint installed?",
                              route.key);
    else
        wb_amqp_window_settle(window, slot, WB_REJECT, WB_CAUSE_UNROUTABLE,
                              "no queue is bound to \"%s\": is the receiving endpoint installed?", operation->destination);
}

static void confirm_one(wb_amqp_window *window, size_t at, int nack)
{
    size_t slot = window->published[at];
    if (slot == NOBODY)
        return;
    window->published[at] = NOBODY;
    window->outstanding--;
    if (nack)
        wb_amqp_window_settle(window, slot, WB_RETRY, WB_CAUSE_OTHER, "%s", "");
    else if (window->slots[slot].returned)
        settle_returned(window, slot);
    else
        wb_amqp_window_settle(window, slot, WB_OK, WB_CAUSE_OTHER, "%s", "");
}

void wb_amqp_window_confirm(wb_amqp_window *window, uint64_t sequence, int multiple, int nack)
{
    /* With multiple, 0 stands for everything. Numbers below `base` belong to a round
     * that was given up. */
    if (multiple && sequence == 0)
        sequence = window->next - 1;
    if (sequence < window->base || sequence - window->base >= window->published_count)
        return;
    size_t last = (size_t)(sequence - window->base);
    for (size_t at = multiple ? window->lowest : last; at <= last; at++)
        confirm_one(window, at, nack);
    while (window->lowest < window->published_count &&
           window->published[window->lowest] == NOBODY)
        window->lowest++;
}

static int is_text(amqp_bytes_t bytes, const char *text)
{
    return strlen(text) == bytes.len && (!bytes.len || memcmp(text, bytes.bytes, bytes.len) == 0);
}

/* What came back, as the broker names it. */
struct returned {
    amqp_bytes_t exchange, key, id;
};

/* What waits is always mandatory: levels that lead nowhere would lose it. */
int wb_amqp_window_is_mandatory(const wb_amqp_window *window, size_t slot)
{
    return window->slots[slot].delay || (window->slots[slot].operation->flags & WB_OPERATION_MANDATORY);
}

static int fits(const wb_amqp_window *window, size_t slot, const struct returned *it)
{
    const wb_operation *operation = window->slots[slot].operation;
    amqp_bytes_t id = it->id;
    wb_amqp_route route;
    if (!wb_amqp_window_is_mandatory(window, slot) || operation->id_size != id.len ||
        (id.len && memcmp(operation->id, id.bytes, id.len) != 0))
        return 0;
    return wb_amqp_window_route(window, slot, &route) == NULL &&
           is_text(it->exchange, route.exchange) && is_text(it->key, route.key);
}

static int note_return(wb_amqp_window *window, size_t from, size_t to, const struct returned *it)
{
    for (size_t at = from; at < to; at++) {
        size_t slot = window->published[at];
        if (slot == NOBODY || window->slots[slot].returned ||
            !fits(window, slot, it))
            continue;
        window->slots[slot].returned = 1;
        window->returns = at + 1;
        return 1;
    }
    return 0;
}

void wb_amqp_window_return(wb_amqp_window *window, amqp_bytes_t exchange, amqp_bytes_t key,
                           amqp_bytes_t id)
{
    const struct returned it = { exchange, key, id };
    size_t from = window->returns;
    if (!note_return(window, from, window->published_count, &it))
        (void)note_return(window, 0, from, &it);
}
