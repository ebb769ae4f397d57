/* SPDX-License-Identifier: Apache-2.0
 *
 * The batch: the first of the messages a worker holds; how large it is, and what becomes of
 * its messages when it is over.
 */
#include "config.h"

#include <string.h>

#include "core/base/crash.h"
#include "core/message/ids.h"
#include "core/pipeline/stages.h"

/* A suspect is a batch of its own. */
static size_t choose_size(const wb_worker *w)
{
    size_t wanted = w->solo ? 1 : w->take, size = 1;
    while (size < wanted && size < w->held_count && !wb_item_is_suspect(w, &w->held[0]) &&
           !wb_item_is_suspect(w, &w->held[size]))
        size++;
    return size;
}

void wb_batch_start(wb_worker *w)
{
    w->batch_size = choose_size(w);
    w->batch_number = w->pipeline->outbox ? wb_batch_number() : 0;
    w->transaction_ended = 0;
    w->grouped = 0;
    w->stored = 0;
    w->claim_count = 0;
    wb_arena_reset(&w->arena);
    wb_arena_reset(&w->recovered);
    for (size_t i = 0; i < w->batch_size; i++) {
        wb_item *item = &w->held[i];
        item->message.attempt =
            item->incoming->delivery_count + item->failure.attempts + item->failure.losses + 1;
    }
}

static void reset_item(wb_item *item)
{
    if (item->state != WB_ITEM_FAILED)
        item->state = WB_ITEM_READY;
    item->leader = NULL;
    item->duplicate_of = 0;
    item->asked = 0;
    memset(&item->operations, 0, sizeof item->operations);
}

void wb_batch_reset(wb_worker *w)
{
    for (size_t i = 0; i < w->batch_size; i++)
        reset_item(&w->held[i]);
}

/* Grow while batches are full and quick, shrink to what a batch's time allows. That time is the
 * handlers' alone: what commit and confirmations take hardly depends on how many messages there
 * are, and where it is long, large batches are what helps. */
static void adapt(wb_worker *w, size_t kept)
{
    unsigned handled = (unsigned)(w->batch_size - kept);
    if (kept)
        w->take = handled ? handled : 1;
    else if (w->batch_size == w->take && w->handling_spent < w->pipeline->batch_time / 2)
        w->take = w->take * 2 < w->pipeline->batch_max ? w->take * 2 : w->pipeline->batch_max;
}

static int is_over(const wb_item *item)
{
    const wb_item *decisive = item->state == WB_ITEM_FOLLOWER ? item->leader : item;
    return decisive->state == WB_ITEM_DONE;
}

void wb_batch_finish(wb_worker *w)
{
    size_t kept = 0, left = 0, late = 0;
    int over[w->batch_size];

    for (size_t i = 0; i < w->batch_size; i++) /* before items move: followers point to leaders */
        over[i] = is_over(&w->held[i]);
    for (size_t i = 0; i < w->held_count; i++) {
        wb_item *item = &w->held[i];
        if (item->absorbed || (i < w->batch_size && over[i])) {
            if (!wb_has_transport_transaction(w) && !wb_bug("ack_before_commit"))
                wb_settle_add_message(w, item->incoming);
            wb_suspect_done(w, item);
            wb_failure_clear(&item->failure);
            left++;
            continue;
        }
        if (i < w->batch_size) {
            late += item->state == WB_ITEM_KEPT;
            reset_item(item);
        }
        w->held[kept++] = *item;
    }
    w->held_count = kept;
    w->solo = w->solo > left ? w->solo - (unsigned)left : 0;
    if (!w->solo)
        adapt(w, late);
    w->batch_size = 0;
}

void wb_batch_drop_all(wb_worker *w)
{
    for (size_t i = 0; i < w->held_count; i++) {
        if (w->held[i].noted) /* the attempt ended, and the process lives to know it */
            wb_suspect_done(w, &w->held[i]);
        wb_failure_clear(&w->held[i].failure);
    }
    w->held_count = 0;
    w->batch_size = 0;
    w->settled_count = 0;
    w->solo = 0;
}
