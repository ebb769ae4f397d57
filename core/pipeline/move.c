/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/pipeline/move.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/base/log.h"
#include "core/message/header_names.h"
#include "core/message/incoming.h"
#include "core/pipeline/batch.h"
#include "core/pipeline/follow.h"
#include "core/pipeline/suspect.h"
#include "core/recover/retry_copy.h"

/* Between two tries of an error queue that refuses: it may be made again, or emptied. */
#define PAUSE_FIRST (1 * WB_SECOND)
#define PAUSE_LONGEST (60 * WB_SECOND)
/* So often it is tried again before the message is parked. */
#define TRIES_BEFORE_PARKING 3

static const char *error_queue_of(const wb_worker *w, const wb_item *item)
{
    return item->error_queue ? item->error_queue : wb_pipeline_policy(w->pipeline, item->message.type).error_queue;
}

static int had_failed(const wb_incoming *incoming)
{
    return WB_HEADERS_FIND(incoming->headers, incoming->header_count, WB_HEADER_FAILED_QUEUE) != NULL;
}

static void add_copy(wb_worker *w, wb_item *item, unsigned trim)
{
    const wb_pipeline *p = w->pipeline;
    const wb_failed_message message = { .incoming = item->incoming, .failure = &item->failure,
                                        .type = item->message.type, .trim = trim,
                                        .keeps_failure = p->failures && had_failed(item->incoming) };
    memset(&item->operations, 0, sizeof item->operations);
    wb_operation *copy = wb_recover_error_operation(&p->recoverability, &p->origin, &message, &w->arena,
                                                    &item->operations);
    const char *queue = error_queue_of(w, item);
    copy->destination = wb_arena_copy(&w->arena, queue, strlen(queue)); /* the item may change its mind */
}

/* By the same road as the move to the error queue, and as safe. */
static void add_retry(wb_worker *w, wb_item *item, int64_t now)
{
    memset(&item->operations, 0, sizeof item->operations);
    item->retry = wb_recover_retries(item->incoming->headers, item->incoming->header_count) + 1;
    (void)wb_recover_retry_operation(&w->pipeline->origin, item->incoming, now + item->delay, &w->arena,
                                     &item->operations);
}

void wb_move_prepare(wb_worker *w, wb_item *item)
{
    const wb_pipeline *p = w->pipeline;
    const wb_recoverability policy = wb_pipeline_policy(p, item->message.type);
    const wb_retry_question question = { item->incoming, &item->failure,
                                         p->ordered && item->incoming->key_size, wb_pipeline_now(p) };
    wb_item_change(item, WB_ITEM_MOVING);
    item->delay = wb_recover_delay(&policy, &question);
    if (item->delay && (p->outbox || !wb_bug("retry_needs_outbox")))
        add_retry(w, item, question.now);
    else
        add_copy(w, item, item->trim);
    if (wb_bug("audit_failed"))
        wb_follow_handled(w, item);
}

static void log_retry(const wb_worker *w, const wb_item *item)
{
    char number[12], milliseconds[24];
    (void)snprintf(number, sizeof number, "%" PRIu32, item->retry);
    (void)snprintf(milliseconds, sizeof milliseconds, "%" PRId64, item->delay / WB_MILLISECOND);
    wb_log_event(WB_LOG_WARNING, "message failed and is retried later", { "endpoint", w->pipeline->endpoint },
                 { "message_id", item->message.id }, { "type", wb_item_type(item) },
                 { "delayed_retry", number }, { "delay_ms", milliseconds },
                 { "reason", item->failure.reason });
}

static void log_move(const wb_worker *w, const wb_item *item)
{
    const wb_pipeline *p = w->pipeline;
    char attempts[12];
    (void)snprintf(attempts, sizeof attempts, "%u", item->failure.attempts);
    wb_log_event(WB_LOG_ERROR, "message moved to the error queue", { "endpoint", p->endpoint },
                 { "message_id", item->message.id }, { "type", wb_item_type(item) },
                 { "error_queue", error_queue_of(w, item) }, { "kind", item->failure.kind },
                 { "attempts", attempts }, { "trimmed", item->trim ? "yes" : NULL },
                 { "reason", item->failure.reason });
}

void wb_move_note_done(wb_worker *w, const wb_item *item)
{
    wb_tally_note(&w->tally, item->delay ? WB_TALLY_RETRIED_LATER : WB_TALLY_MOVED, 1);
    if (item->delay)
        log_retry(w, item);
    else
        log_move(w, item);
}

static void set_aside(wb_worker *w, wb_item *item, const wb_operation *refused, const char *reason)
{
    int64_t pause = wb_clock_backoff(PAUSE_FIRST, item->pauses, PAUSE_LONGEST);
    wb_log_event(WB_LOG_ERROR, "message stays in hand: it cannot be moved to the error queue",
                 { "endpoint", w->pipeline->endpoint }, { "message_id", item->incoming->id },
                 { "type", wb_item_type(item) }, { "error_queue", error_queue_of(w, item) }, { "reason", reason },
                 { "remedy", refused->cause == WB_CAUSE_UNROUTABLE ? "waybill install makes the error queue" : NULL });
    item->trim = 0;
    wb_item_pause(item, wb_clock_monotonic() + pause);
}

/* With the outbox it waits in the database, whole, and no longer in the broker's queue.
 * @return whether it does. */
static int park(wb_worker *w, wb_item *item, const char *reason)
{
    wb_error error;
    add_copy(w, item, WB_TRIM_NOTHING);
    wb_operations_encode_start(&w->encoded);
    (void)wb_operations_encode_group(&w->encoded, item->id, item->id_size, &item->operations);
    const wb_parked parked = { 1, reason, w->encoded.data, w->encoded.size };
    int r = wb_pipeline_park(w->pipeline, w->storage, &parked, 0, NULL, &error);
    w->storage_broken |= r == WB_NOT_CONNECTED || r == WB_IN_DOUBT;
    if (r != WB_OK)
        return 0;
    wb_tally_note(&w->tally, WB_TALLY_PARKED, 1);
    wb_log_event(WB_LOG_ERROR, "message parked: it cannot be moved to the error queue",
                 { "endpoint", w->pipeline->endpoint }, { "message_id", item->incoming->id },
                 { "type", wb_item_type(item) }, { "error_queue", error_queue_of(w, item) }, { "kind", item->failure.kind },
                 { "reason", item->failure.reason });
    return 1;
}

static int can_be_cut(const wb_item *item, const wb_operation *refused)
{
    return refused->cause != WB_CAUSE_UNROUTABLE && refused->cause != WB_CAUSE_SERVER &&
           refused->cause != WB_CAUSE_REFUSED && item->trim < WB_TRIM_MAX && !wb_bug("unmovable");
}

/* One of its own choice that is not there: nobody may have made it. The ordinary one is. */
static int is_missing(const wb_worker *w, const wb_item *item, const wb_operation *refused)
{
    return refused->cause == WB_CAUSE_UNROUTABLE &&
           strcmp(error_queue_of(w, item), w->pipeline->recoverability.error_queue) != 0;
}

static void send_to_ordinary_queue(const wb_worker *w, wb_item *item, const char *refusal)
{
    char reason[2600];
    (void)snprintf(reason, sizeof reason, "%.1200s (%.1199s)", item->failure.reason, refusal);
    wb_failure_set(&item->failure, item->failure.kind, reason, 0);
    wb_item_send_to(item, w->pipeline->recoverability.error_queue);
}

/* The error queue takes what cannot be delayed. */
static void give_up_retry(wb_worker *w, wb_item *item, const char *reason)
{
    wb_log_event(WB_LOG_WARNING, "message is not retried later: its delay was refused",
                 { "endpoint", w->pipeline->endpoint }, { "message_id", item->incoming->id },
                 { "type", wb_item_type(item) }, { "reason", reason });
    item->failure.may_wait = wb_bug("delay_insisted");
}

void wb_move_refused(wb_worker *w, wb_item *item, const wb_operation *refused)
{
    char reason[1200];
    wb_describe_refusal(refused, reason, sizeof reason);
    item->alone = 1;
    if (item->delay)
        give_up_retry(w, item, reason);
    else if (is_missing(w, item, refused))
        send_to_ordinary_queue(w, item, reason);
    else if (can_be_cut(item, refused))
        item->trim++;
    else
        set_aside(w, item, refused, reason);
}

/* Others must not wait for it, and the broker not drop it meanwhile. */
static int is_final(const wb_worker *w, const wb_item *item, const wb_operation *refused)
{
    return refused->cause == WB_CAUSE_TOO_LARGE || item->pauses >= TRIES_BEFORE_PARKING ||
           wb_batch_count_aside(w) + 1 >= WB_ASIDE_MAX / 2 || wb_suspect_is_last_delivery(w->pipeline, item);
}

/* It is never for the error queue: whoever retried it from there would be told of nothing. Without it the sweeper
 * sends what the session committed, if it did. */
static void give_up_control(const wb_worker *w, wb_item *item, const char *reason)
{
    wb_log_event(WB_LOG_ERROR, "control message of a session is given up: it cannot be delayed",
                 { "endpoint", w->pipeline->endpoint }, { "session_id", item->message.id }, { "reason", reason });
    wb_item_change(item, WB_ITEM_SETTLED);
}

void wb_move_conclude(wb_worker *w, wb_item *item)
{
    char reason[1200];
    const wb_operation *refused = wb_find_refused(&item->operations);
    if (!refused) {
        if (!wb_item_is_control(item))
            wb_move_note_done(w, item);
        wb_item_change(item, WB_ITEM_SETTLED);
        return;
    }
    wb_describe_refusal(refused, reason, sizeof reason);
    if (wb_item_is_control(item)) {
        give_up_control(w, item, reason);
        return;
    }
    int has_way = item->delay || is_missing(w, item, refused) || can_be_cut(item, refused);
    if (!has_way && w->pipeline->outbox && is_final(w, item, refused) && park(w, item, reason))
        wb_item_change(item, WB_ITEM_SETTLED);
    else
        wb_move_refused(w, item, refused);
}
