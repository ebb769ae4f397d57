/* SPDX-License-Identifier: Apache-2.0
 *
 * Suspects: messages that may have ended a process before (core/recover/attempts.h says how
 * they are told from those that were merely beside one). Before a suspect is handled, the
 * attempt is written down and committed; when it is done, the record goes with the marks.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/base/crash.h"
#include "core/base/log.h"
#include "core/message/ids.h"
#include "core/pipeline/stages.h"
#include "core/recover/attempts.h"

typedef struct {
    const wb_item *item;
    int64_t attempts; /* -1: no record */
    int taken;        /* the number is somebody else's: two ids with one hash */
} search;

static int visit(void *argument, const wb_pending *pending)
{
    search *s = argument;
    s->attempts = wb_attempts_decode(pending->operations, pending->operations_size,
                                     s->item->incoming->id, s->item->incoming->id_size);
    s->taken = s->attempts < 0;
    return WB_OK;
}

static int add_record(wb_worker *w, uint64_t number)
{
    const wb_persistence_ops *ops = w->pipeline->persistence_ops;
    wb_begin begin = { .struct_size = sizeof begin, .batch = number };
    wb_commit commit = { .struct_size = sizeof commit,
                         .batch = number,
                         .operations = w->encoded.data,
                         .operations_size = w->encoded.size };
    int r = ops->begin(w->storage, &begin, &w->error);
    return r == WB_OK ? ops->commit(w->storage, &commit, &w->error) : r;
}

static int write_record(wb_worker *w, const search *s, uint64_t number)
{
    const wb_incoming *incoming = s->item->incoming;
    uint32_t attempts = s->attempts < 0 ? 1 : (uint32_t)s->attempts + 1;
    wb_attempts_encode(&w->encoded, incoming->id, incoming->id_size, attempts,
                       wb_batch_number());
    if (s->attempts < 0)
        return add_record(w, number);
    wb_mark mark = { number, w->encoded.data, w->encoded.size };
    return w->pipeline->persistence_ops->mark(w->storage, &mark, 1, &w->error);
}

static void give_up(wb_item *item)
{
    char reason[200];
    (void)snprintf(reason, sizeof reason,
                   "delivered %" PRIu32 " times, and the last %" PRIu32
                   " times handled by itself, without being finished: its handler seems to end the "
                   "process",
                   item->incoming->delivery_count, item->exhausted);
    item->state = WB_ITEM_FAILED;
    wb_failure_set(&item->failure, WB_FAILURE_CRASHES, reason, 0);
}

static int note_attempt(wb_worker *w, wb_item *item)
{
    const wb_pipeline *p = w->pipeline;
    uint64_t number = wb_attempts_number(item->incoming->id, item->incoming->id_size);
    search s = { item, -1, 0 };
    int r = p->persistence_ops->pending(w->storage, &number, 1, visit, &s, &w->error);

    if (r != WB_OK || s.taken)
        return r;
    if (s.attempts > 0 && wb_attempts_are_exhausted(&p->recoverability, (uint32_t)s.attempts)) {
        item->exhausted = (uint32_t)s.attempts;
        return WB_OK;
    }
    wb_log_event(WB_LOG_WARNING, "message handled by itself: it may have ended the process before",
                 { "endpoint", p->endpoint }, { "message_id", item->incoming->id });
    r = write_record(w, &s, number);
    item->noted = r == WB_OK;
    return r;
}

int wb_item_is_suspect(const wb_worker *w, const wb_item *item)
{
    return w->pipeline->outbox && item->incoming->delivery_count >= WB_SUSPECT_DELIVERIES &&
           item->incoming->id_size;
}

int wb_stage_suspect(wb_worker *w)
{
    wb_item *item = &w->held[0];
    int r;
    if (!wb_item_is_suspect(w, item) || item->state != WB_ITEM_READY || item->noted ||
        item->exhausted)
        return WB_OK;
    r = note_attempt(w, item);
    if (r == WB_NOT_CONNECTED || r == WB_IN_DOUBT)
        w->storage_broken = 1;
    return r;
}

int wb_suspect_give_up(wb_worker *w)
{
    wb_item *item = &w->held[0];
    if (!item->exhausted || item->state != WB_ITEM_READY)
        return WB_OK;
    give_up(item);
    return wb_stage_rollback(w);
}

void wb_suspect_done(wb_worker *w, const wb_item *item)
{
    if (wb_item_is_suspect(w, item))
        wb_settle_add_mark(w, wb_attempts_number(item->incoming->id, item->incoming->id_size), NULL, 0);
}
