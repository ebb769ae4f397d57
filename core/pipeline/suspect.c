/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/pipeline/distrust.h"
#include "core/pipeline/suspect.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/base/log.h"
#include "core/pipeline/marks.h"
#include "core/pipeline/stages.h"
#include "core/recover/attempts.h"

/* How long one waits for another suspect's end before it asks again. */
#define WAIT (20 * WB_MILLISECOND)

/* And how long whoever is no suspect waits for one, and how often it looks. */
#define ALONE_MAX (1 * WB_SECOND)
#define LOOK (1 * WB_MILLISECOND)

static atomic_int is_taken;
static _Atomic int64_t taken_since; /* 0: it is not */
static atomic_uint others;
static atomic_uint waiting; /* who will be of them */

/* Who waits goes first, or a row of suspects would keep it waiting. */
int wb_suspect_try_lock(void)
{
    if (!wb_bug("suspect_across_endpoints") && (atomic_load(&waiting) || atomic_exchange(&is_taken, 1) != 0))
        return 0;
    atomic_store(&taken_since, wb_clock_monotonic());
    return 1;
}

void wb_suspect_unlock(void)
{
    atomic_store(&taken_since, 0);
    atomic_store(&is_taken, 0);
}

/* Who begins says so before he looks, and a suspect before it counts: one of them sees the other. */
static int try_enter(void)
{
    atomic_fetch_add(&others, 1);
    int64_t since = atomic_load(&taken_since);
    if (!since || wb_clock_monotonic() - since >= ALONE_MAX)
        return 1;
    atomic_fetch_sub(&others, 1);
    return 0;
}

void wb_suspect_enter(void)
{
    if (try_enter())
        return;
    atomic_fetch_add(&waiting, 1);
    while (!try_enter())
        wb_clock_pause(LOOK, NULL);
    atomic_fetch_sub(&waiting, 1);
}

void wb_suspect_exit(void)
{
    atomic_fetch_sub(&others, 1);
}

unsigned wb_suspect_others(void)
{
    return atomic_load(&others);
}

void wb_suspect_wait(wb_item *item)
{
    item->paused_until = wb_clock_monotonic() + WAIT;
}

static int came_too_often(const wb_pipeline *p, const wb_item *item)
{
    return p->mode != WB_MODE_NONE && item->incoming->id_size &&
           item->incoming->delivery_count >= wb_attempts_suspect_from(&p->recoverability);
}

int wb_item_is_suspect(const wb_pipeline *p, const wb_item *item)
{
    return item->verdict == WB_VERDICT_OPEN && came_too_often(p, item);
}

int wb_suspect_leaves(const wb_pipeline *p, const wb_item *item)
{
    return item->verdict == WB_VERDICT_FAILED && came_too_often(p, item);
}

/* Unless its id turns out not to be free: a duplicate may have something to dispatch. */
static int will_not_be_handled(const wb_pipeline *p, const wb_item *item)
{
    uint32_t deliveries = item->incoming->delivery_count;
    return p->outbox ? wb_attempts_is_last_delivery(&p->recoverability, deliveries, 0)
                     : wb_attempts_deliveries_are_exhausted(&p->recoverability, deliveries);
}

int wb_suspect_is_last_delivery(const wb_pipeline *p, const wb_item *item)
{
    return p->mode != WB_MODE_NONE && !wb_bug("last_waits") &&
           wb_attempts_is_last_delivery(&p->recoverability, item->incoming->delivery_count, 0);
}

int wb_suspect_needs_lock(const wb_pipeline *p, const wb_item *item)
{
    if (wb_suspect_leaves(p, item))
        return !wb_suspect_is_last_delivery(p, item);
    return wb_item_is_suspect(p, item) && !will_not_be_handled(p, item);
}

typedef struct {
    const wb_item *item;
    int64_t attempts; /* -1: no record */
    uint32_t lost;    /* WB_ATTEMPTS_LOST_SESSION, or 0 */
    int taken;        /* the number is somebody else's: two ids with one hash */
} search;

static int visit(void *argument, const wb_pending *pending)
{
    search *s = argument;
    s->attempts = wb_attempts_decode(pending->operations, pending->operations_size,
                                     s->item->incoming->id, s->item->incoming->id_size);
    s->taken = s->attempts < 0;
    if (s->attempts >= 0) {
        s->lost = (uint32_t)s->attempts & WB_ATTEMPTS_LOST_SESSION;
        s->attempts -= s->lost;
    }
    return WB_OK;
}

static uint32_t next_attempt(const search *s)
{
    return s->attempts < 0 ? 1 : ((uint32_t)s->attempts + 1) | s->lost;
}

static int write_record(wb_worker *w, const search *s, uint64_t number, wb_error *error)
{
    const wb_pipeline *p = w->pipeline;
    const wb_incoming *incoming = s->item->incoming;
    uint32_t attempts = next_attempt(s);
    wb_attempts_encode(&w->encoded, incoming->id, incoming->id_size, attempts, wb_pipeline_batch_number(p));
    if (s->attempts < 0)
        return wb_pipeline_store_row(p, w->storage, number, w->encoded.data, w->encoded.size, error);
    wb_mark mark = { number, w->encoded.data, w->encoded.size };
    return p->persistence_ops->mark(w->storage, &mark, 1, error);
}

/* One that was handled by itself before has to leave while there is a delivery in reserve; one that
 * was only beside others is handled by itself once, with none. Where much is allowed, who loses its
 * session time and again does not get all of it. */
static int is_counted_out(const wb_pipeline *p, const wb_item *item, const search *s)
{
    const wb_recoverability *policy = &p->recoverability;
    uint32_t deliveries = item->incoming->delivery_count;
    return (wb_attempts_is_last_delivery(policy, deliveries, s->attempts > 0) ||
            (s->lost && policy->delivery_limit && wb_attempts_deliveries_are_exhausted(policy, deliveries))) &&
           !wb_bug("handle_the_last");
}

static int is_exhausted(const wb_pipeline *p, const search *s)
{
    return s->attempts > 0 && wb_attempts_are_exhausted(&p->recoverability, (uint32_t)s->attempts);
}

/* The reply to its own record was lost: it is no further attempt. */
static int is_own(const wb_item *item, const search *s)
{
    return item->noting && s->attempts >= 0 && ((uint32_t)s->attempts | s->lost) == item->noting &&
           !wb_bug("noted_twice");
}

static int note_attempt(wb_worker *w, wb_item *item, wb_error *error)
{
    const wb_pipeline *p = w->pipeline;
    uint64_t number = wb_attempts_number(item->incoming->id, item->incoming->id_size);
    search s = { item, -1, 0, 0 };
    int r = p->persistence_ops->pending(w->storage, &number, 1, visit, &s, error);

    if (r != WB_OK || s.taken)
        return r;
    if (is_own(item, &s)) {
        item->noted = item->noting;
        return WB_OK;
    }
    item->has_lost_session = s.lost != 0;
    item->is_counted_out = is_counted_out(p, item, &s);
    if (is_exhausted(p, &s) || item->is_counted_out) {
        item->unfinished = s.attempts > 0 ? (uint32_t)s.attempts : 0;
        return WB_OK;
    }
    wb_log_event(WB_LOG_WARNING, "message handled by itself: it may have ended the process before",
                 { "endpoint", p->endpoint }, { "message_id", item->incoming->id }, { "type", wb_item_type(item) });
    item->noting = next_attempt(&s);
    r = write_record(w, &s, number, error);
    item->noted = r == WB_OK ? item->noting : 0;
    return r;
}

int wb_stage_suspect(wb_worker *w, wb_error *error)
{
    wb_item *item = w->batch[0];
    if (!w->pipeline->outbox || !wb_item_is_suspect(w->pipeline, item) || item->noted || item->unfinished ||
        item->is_counted_out)
        return WB_OK;
    int r = wb_distrust(w, note_attempt(w, item, error), error);
    if (r == WB_NOT_CONNECTED || r == WB_IN_DOUBT)
        w->storage_broken = 1;
    return r;
}

const char *wb_suspect_why_given_up(const wb_pipeline *p, const wb_item *item, char *reason, size_t size)
{
    uint32_t deliveries = item->incoming->delivery_count;
    if (p->outbox && item->unfinished)
        (void)snprintf(reason, size,
                       "delivered %" PRIu32 " times, and %" PRIu32 " of them handled by itself, without being "
                       "finished: its handler seems to end the process",
                       deliveries, item->unfinished);
    else if (p->outbox && item->is_counted_out && !item->has_lost_session)
        (void)snprintf(reason, size,
                       "delivered %" PRIu32 " times without being finished, and the broker may drop it when it comes "
                       "back more than %" PRIu32 " times: processes or sessions ended while it was in hand, and "
                       "whose doing that was is not known",
                       deliveries, p->recoverability.delivery_limit);
    else if (p->outbox && item->is_counted_out)
        (void)snprintf(reason, size,
                       "delivered %" PRIu32 " times without being finished: handled by itself, it lost its "
                       "session with the broker",
                       deliveries);
    else if (!p->outbox && p->mode != WB_MODE_NONE &&
             wb_attempts_deliveries_are_exhausted(&p->recoverability, deliveries))
        (void)snprintf(reason, size,
                       "delivered %" PRIu32 " times without being finished: its handler seems to end the "
                       "process",
                       deliveries);
    else
        return NULL;
    return reason;
}

/* It may have been written by an earlier attempt, in another process. @return 0: there is none. */
static uint64_t record_of(const wb_worker *w, const wb_item *item)
{
    return w->pipeline->outbox && came_too_often(w->pipeline, item)
               ? wb_attempts_number(item->incoming->id, item->incoming->id_size)
               : 0;
}

void wb_suspect_done(wb_worker *w, const wb_item *item)
{
    uint64_t number = record_of(w, item);
    if (number)
        wb_marks_add(w, (wb_mark){ number, NULL, 0 });
}

void wb_suspect_settled(wb_worker *w, const wb_item *item)
{
    uint64_t number = record_of(w, item);
    if (w->record)
        wb_suspect_done(w, item);
    else
        w->record = number;
}

/* Whose doing that was is not known, so it is no attempt of those that end the tries; but that it was
 * handled stays written down, and the broker counts on. */
void wb_suspect_lost_session(wb_worker *w, const wb_item *item)
{
    const wb_incoming *incoming = item->incoming;
    uint64_t number = wb_attempts_number(incoming->id, incoming->id_size);
    wb_attempts_encode(&w->encoded, incoming->id, incoming->id_size, (item->noted - 1) | WB_ATTEMPTS_LOST_SESSION,
                       wb_pipeline_batch_number(w->pipeline));
    wb_marks_add(w, (wb_mark){ number, w->encoded.data, w->encoded.size });
}
