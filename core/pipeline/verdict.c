/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/pipeline/verdict.h"

#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/base/log.h"
#include "core/pipeline/observe.h"
#include "core/recover/retry_copy.h"

/* How long a message that met a server's trouble is set aside. */
#define TROUBLE_PAUSE_FIRST (1 * WB_SECOND)
#define TROUBLE_PAUSE_LONGEST (30 * WB_SECOND)
/* And one that lost a connection: a proxy that flaps does so for seconds. */
#define LOSS_PAUSE_FIRST (500 * WB_MILLISECOND)
#define LOSS_PAUSE_LONGEST (4 * WB_SECOND)
/* And one whose handler runs again to send what was refused. */
#define REFUSAL_PAUSE_FIRST (10 * WB_SECOND)
#define REFUSAL_PAUSE_LONGEST (300 * WB_SECOND)
/* The same refusal, again. */
#define TELL_EVERY (30 * WB_SECOND)

/* Delayed retries are known by their id: two of one id would be one. A copy of the same bytes is no
 * loss then; another one goes to the error queue now. */
static int may_wait_with(const wb_item *copy, const wb_item *item)
{
    return item->failure.may_wait && copy->incoming->body_size == item->incoming->body_size &&
           memcmp(copy->incoming->body, item->incoming->body, item->incoming->body_size) == 0;
}

/* A copy that has come back once more has its own tries, and its handler has not run in this one. */
static int is_as_old(const wb_item *a, const wb_item *b)
{
    return wb_recover_retries(a->incoming->headers, a->incoming->header_count) ==
           wb_recover_retries(b->incoming->headers, b->incoming->header_count);
}

static int shares_fate(const wb_item *copy, const wb_item *item)
{
    return copy != item && copy->verdict == WB_VERDICT_OPEN && copy->state != WB_ITEM_SETTLED &&
           wb_item_is_same(copy, item) && (is_as_old(copy, item) || wb_bug("shared_retry"));
}

void wb_verdict_condemn(wb_worker *w, wb_item *item, const char *kind, const char *reason)
{
    wb_item_condemn(item, kind, reason);
    for (size_t i = 0; w->pipeline->outbox && !wb_bug("lost_copy") && i < w->held_count; i++) {
        wb_item *copy = w->held[i];
        if (shares_fate(copy, item)) {
            copy->failure.may_wait = may_wait_with(copy, item);
            copy->failure.delay = item->failure.delay;
            wb_item_condemn(copy, kind, reason);
        }
    }
}

static void discard(const wb_worker *w, wb_item *item, const char *reason)
{
    wb_item_discard(item);
    wb_log_event(WB_LOG_WARNING, "message is discarded", { "endpoint", w->pipeline->endpoint },
                 { "message_id", item->incoming->id }, { "type", wb_item_type(item) }, { "reason", reason });
}

static void end_attempts(wb_worker *w, wb_item *item, const wb_attempt *attempt)
{
    int wish = attempt->wish ? (int)attempt->wish->kind : WB_WISH_NOTHING;
    if (wish == WB_WISH_DISCARD) {
        discard(w, item, attempt->reason);
        return;
    }
    if (wish == WB_WISH_MOVE)
        wb_item_send_to(item, attempt->wish->queue);
    wb_verdict_condemn(w, item, attempt->kind, attempt->reason);
}

static wb_tally_kind class_of(const char *kind)
{
    return strcmp(kind, WB_FAILURE_DISPATCH) == 0        ? WB_TALLY_FAILED_DISPATCH
           : strcmp(kind, WB_FAILURE_CRASHES) == 0       ? WB_TALLY_FAILED_CRASH
           : strcmp(kind, WB_FAILURE_UNRECOVERABLE) == 0 ? WB_TALLY_FAILED_UNRECOVERABLE
                                                         : WB_TALLY_FAILED_HANDLER;
}

/* What a handler has discarded has not failed, and its attempt has no effect. */
static void note_failure(wb_worker *w, wb_item *item, const wb_attempt *attempt)
{
    if (!attempt->counts)
        return;
    wb_observe_failed(w->pipeline, item, attempt->reason);
    if (attempt->wish && attempt->wish->kind == WB_WISH_DISCARD)
        return;
    wb_tally_note(&w->tally, WB_TALLY_FAILED, 1);
    wb_tally_note(&w->tally, class_of(attempt->kind), 1);
    wb_rate_failed(&w->pipeline->rate, w->pipeline->endpoint);
}

static int wants_retry(const wb_attempt *attempt)
{
    return attempt->wish && attempt->wish->kind == WB_WISH_RETRY_AFTER;
}

void wb_verdict_attempt_failed(wb_worker *w, wb_item *item, const wb_attempt *attempt)
{
    const wb_pipeline *p = w->pipeline;
    const wb_recoverability policy = wb_pipeline_policy(p, item->message.type);
    char number[12];

    wb_failure_set(&item->failure, attempt->kind, attempt->reason, attempt->counts && !wb_bug("uncounted_attempt"));
    note_failure(w, item, attempt);
    item->failure.delay = wants_retry(attempt) ? attempt->wish->delay : 0;
    item->failure.may_wait = !attempt->final || wants_retry(attempt);
    int is_over = attempt->final || wb_recover_is_exhausted(&policy, &item->failure);
    if (is_over && (attempt->is_sure || wb_bug("blame"))) {
        end_attempts(w, item, attempt);
        return;
    }
    (void)snprintf(number, sizeof number, "%u", item->failure.attempts);
    wb_log_event(WB_LOG_INFO, "message failed and is retried", { "endpoint", p->endpoint },
                 { "message_id", item->incoming->id }, { "type", wb_item_type(item) },
                 { "attempt", number }, { "reason", attempt->reason });
}

static void count_fault(wb_worker *w, wb_item *item, const char *kind, const char *reason)
{
    wb_failure_set(&item->failure, kind, reason, 0);
    item->failure.faults++;
    item->failure.may_wait = 1;
    if (wb_recover_is_faulty(&w->pipeline->recoverability, &item->failure))
        wb_verdict_condemn(w, item, kind, reason);
}

int wb_verdict_is_proved(const wb_worker *w, const wb_item *item)
{
    return item->fault_seen && atomic_load(&w->pipeline->successes) >= item->fault_seen;
}

static void watch_others(const wb_worker *w, wb_item *item)
{
    item->fault_seen = atomic_load(&w->pipeline->successes) + 1;
}

/* The pause outlasts the worker's own, so that others get a turn. */
static void set_aside(const wb_worker *w, wb_item *item, int64_t first, int64_t longest)
{
    int64_t pause = wb_clock_backoff(first, item->failure.faults, longest);
    if (item->verdict == WB_VERDICT_OPEN)
        wb_item_pause(item, wb_clock_monotonic() + pause + 2 * w->pause);
}

/* Only what others committed says that the server is well. A transaction of our own would not: the
 * table space of the outbox may have room while that of the business data has none. */
void wb_verdict_met_trouble(wb_worker *w, wb_item *item, const wb_error *error)
{
    if (wb_verdict_is_proved(w, item))
        count_fault(w, item, WB_FAILURE_HANDLER, error->text);
    watch_others(w, item);
    set_aside(w, item, TROUBLE_PAUSE_FIRST, TROUBLE_PAUSE_LONGEST);
}

/* A line when it begins, and one each half minute; one for each destination. */
static void tell_refusal(wb_worker *w, const wb_item *item, const char *reason)
{
    int64_t now = wb_clock_monotonic();
    if (w->refusal_told && now - w->refusal_told < TELL_EVERY &&
        strncmp(w->refusal, reason, sizeof w->refusal - 1) == 0)
        return;
    w->refusal_told = now;
    (void)snprintf(w->refusal, sizeof w->refusal, "%.*s", (int)sizeof w->refusal - 1, reason);
    wb_log_event(WB_LOG_ERROR, "message stays in hand: a privilege is missing for what it sends",
                 { "endpoint", w->pipeline->endpoint }, { "message_id", item->incoming->id },
                 { "type", wb_item_type(item) }, { "reason", reason });
}

/* Without the outbox each try runs the handler again. */
static int64_t pause_for_privilege(const wb_worker *w, const wb_item *item)
{
    int dear = !w->pipeline->outbox;
    return wb_clock_backoff(dear ? REFUSAL_PAUSE_FIRST : TROUBLE_PAUSE_FIRST, item->pauses,
                            dear ? REFUSAL_PAUSE_LONGEST : TROUBLE_PAUSE_LONGEST);
}

/* Only what others sent, and what arrived, says that sending is not forbidden to everybody: that
 * they were committed does not. */
static void wait_for_privilege(wb_worker *w, wb_item *item, const char *reason)
{
    uint64_t arrivals = atomic_load(&w->pipeline->arrivals);
    tell_refusal(w, item, reason);
    if (item->arrivals_seen && arrivals >= item->arrivals_seen)
        count_fault(w, item, WB_FAILURE_DISPATCH, reason);
    item->arrivals_seen = arrivals + 1;
    item->alone = 1;
    if (item->verdict == WB_VERDICT_OPEN)
        wb_item_pause(item, wb_clock_monotonic() + pause_for_privilege(w, item));
}

void wb_verdict_was_refused(wb_worker *w, wb_item *item, const wb_operation *refused)
{
    char reason[1200];
    wb_describe_refusal(refused, reason, sizeof reason);
    wb_item_rerun(item);
    if (refused->cause == WB_CAUSE_REFUSED && w->pipeline->mode != WB_MODE_NONE)
        wait_for_privilege(w, item, reason);
    else
        wb_verdict_attempt_failed(w, item, &(wb_attempt){ WB_FAILURE_DISPATCH, reason, 0, 1, 1, NULL });
}

void wb_verdict_broke_connection(wb_worker *w, wb_item *item, const wb_error *error)
{
    wb_log_event(WB_LOG_WARNING,
                 w->storage_distrusted ? "database session given up while a message was handled"
                                       : "connection to the database lost while a message was handled",
                 { "endpoint", w->pipeline->endpoint }, { "message_id", item->incoming->id },
                 { "type", wb_item_type(item) }, { "reason", error->text });
    wb_failure_set(&item->failure, WB_FAILURE_HANDLER, error->text, 0);
    if (w->storage_distrusted)
        item->fault_seen = 0; /* others may have needed less: the witness must ask */
    else
        watch_others(w, item);
    item->is_doubted = 1;
    if (item->failure.faults) /* the first time nearly always it was committed, or a server restarted */
        set_aside(w, item, LOSS_PAUSE_FIRST, LOSS_PAUSE_LONGEST);
}

void wb_verdict_wait(const wb_worker *w, wb_item *item)
{
    set_aside(w, item, TROUBLE_PAUSE_FIRST, TROUBLE_PAUSE_LONGEST);
}

/* The verdict waits for the claim that follows: the commit may have been made. */
void wb_verdict_count_loss(wb_item *item)
{
    char reason[1200];
    item->is_doubted = 0;
    item->failure.faults++;
    (void)snprintf(reason, sizeof reason,
                   "%s %u times while it was handled: %s",
                   item->fault_seen ? "the connection to the database was lost"
                                    : "the database refused what its session was asked, and no other,",
                   item->failure.faults, item->failure.reason);
    wb_failure_set(&item->failure, WB_FAILURE_HANDLER, reason, 0);
}
