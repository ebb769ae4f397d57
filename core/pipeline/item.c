/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/pipeline/item.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"

#define BIT(state) (1u << WB_ITEM_##state)

/* From each state, the states that may follow. READY follows everywhere but at the end: a batch
 * can fail at any step. Inside a transport transaction a step more can be undone: SENT. */
static const unsigned allowed[WB_ITEM_STATES] = {
    [WB_ITEM_READY] = BIT(READY) | BIT(HANDLED) | BIT(KEPT) | BIT(DUPLICATE) | BIT(COPY) | BIT(MOVING),
    [WB_ITEM_HANDLED] = BIT(READY) | BIT(COMMITTED) | BIT(SENT),
    [WB_ITEM_KEPT] = BIT(READY),
    [WB_ITEM_DUPLICATE] = BIT(READY) | BIT(COMMITTED) | BIT(SETTLED),
    [WB_ITEM_COPY] = BIT(READY) | BIT(SETTLED),
    [WB_ITEM_COMMITTED] = BIT(READY) | BIT(SETTLED),
    [WB_ITEM_MOVING] = BIT(READY) | BIT(SENT) | BIT(SETTLED),
    [WB_ITEM_SENT] = BIT(READY) | BIT(SETTLED),
    [WB_ITEM_SETTLED] = 0,
};

static const char *const names[WB_ITEM_STATES] = { "ready", "handled", "kept",  "duplicate", "copy",
                                                   "committed", "moving", "sent", "settled" };

void wb_item_init(wb_item *item, const wb_incoming *incoming, const wb_handler_entry *handler)
{
    memset(item, 0, sizeof *item);
    item->incoming = incoming;
    item->id = incoming->id;
    item->id_size = incoming->id_size;
    item->message = (wb_message){
        .struct_size = sizeof item->message,
        .id = incoming->id,
        .id_size = incoming->id_size,
        .body = incoming->body_size ? incoming->body : "",
        .body_size = incoming->body_size,
        .headers = incoming->headers,
        .header_count = incoming->header_count,
        .key = incoming->key_size ? incoming->key : NULL,
        .key_size = incoming->key_size,
    };
    if (handler)
        (void)wb_item_add_handler(item, handler);
}

void wb_item_know_by(wb_item *item, const char *id)
{
    item->own_id = wb_strdup(id);
    item->id = item->own_id;
    item->id_size = strlen(id);
}

int wb_item_add_handler(wb_item *item, const wb_handler_entry *handler)
{
    for (size_t i = 0; i < item->handler_count; i++)
        if (item->handlers[i] == handler)
            return 1;
    if (item->handler_count == WB_ITEM_HANDLERS_MAX)
        return 0;
    item->handlers[item->handler_count++] = handler;
    item->message.type = item->handlers[0]->type;
    return 1;
}

void wb_item_give_other(wb_item *item, const wb_handler_entry *other, const char *type)
{
    item->handlers[item->handler_count++] = other;
    item->message.type = item->type = wb_strdup(type);
}

void wb_item_name_type(wb_item *item, const char *type)
{
    if (!item->type)
        item->type = wb_strdup(type);
}

void wb_item_clear(wb_item *item)
{
    wb_failure_clear(&item->failure);
    free(item->error_queue);
    free(item->type);
    free(item->own_id);
    item->error_queue = item->type = item->own_id = NULL;
}

void wb_item_change(wb_item *item, wb_item_state to)
{
    if (!(allowed[item->state] & 1u << to)) {
        wb_log_event(WB_LOG_ERROR, "a message cannot go from one state to another: the process ends",
                     { "message_id", item->message.id }, { "type", wb_item_type(item) }, { "from", names[item->state] },
                     { "to", names[to] });
        abort();
    }
    item->state = to;
}

void wb_item_rerun(wb_item *item)
{
    wb_item_change(item, WB_ITEM_READY);
    item->message.id = item->incoming->id; /* see wb_stage_commit_transport() */
    item->leader = NULL;
    item->duplicate_of = 0;
    item->is_passed = 0;
    item->handlers_done = 0;
    item->asked = 0;
    item->asked_immediate = 0;
    memset(&item->operations, 0, sizeof item->operations);
}

void wb_item_condemn(wb_item *item, const char *kind, const char *reason)
{
    wb_failure_set(&item->failure, kind, reason, 0);
    item->verdict = WB_VERDICT_FAILED;
    item->paused_until = 0;
    item->pauses = 0;
}

void wb_item_discard(wb_item *item)
{
    item->is_discarded = 1;
    item->handler_count = 0;
    item->paused_until = 0;
    item->pauses = 0;
}

void wb_item_send_to(wb_item *item, const char *error_queue)
{
    char *old = item->error_queue;
    item->error_queue = wb_strdup(error_queue);
    free(old);
}

void wb_item_pause(wb_item *item, int64_t until)
{
    item->paused_until = until;
    item->pauses++;
}

static int is_equal(const void *a, size_t a_size, const void *b, size_t b_size)
{
    return a_size && a_size == b_size && memcmp(a, b, a_size) == 0;
}

int wb_item_is_same(const wb_item *a, const wb_item *b)
{
    return is_equal(a->id, a->id_size, b->id, b->id_size);
}

int wb_item_has_key_of(const wb_item *a, const wb_item *b)
{
    return is_equal(a->message.key, a->message.key_size, b->message.key, b->message.key_size);
}
