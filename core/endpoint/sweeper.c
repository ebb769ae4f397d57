/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/endpoint/sweeper.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/base/log.h"
#include "core/endpoint/silences.h"
#include "core/message/ids.h"
#include "core/pipeline/unconfirmed.h"
#include "core/pipeline/window.h"
#include "core/plugin/instance.h"
#include "core/recover/attempts.h"
#include "core/recover/parked.h"

/* A record of attempts that nobody has touched for so long is no use: whatever ends a process
 * time and again does it sooner. */
#define ATTEMPTS_KEPT (24 * 3600 * WB_SECOND)
/* So many sessions broken in a row are the broker's affair, not the rows': the rest waits. */
#define LOST_MAX 5
/* How often a row is looked for before there is none, and the pause between, which doubles. */
#define LOOKS_FOR_ROW 4
#define LOOK_AGAIN (3 * WB_MILLISECOND)
/* What the tries of a message take beside the pauses between them: what a full queue refuses is asked for seconds, each time. */
#define TRIES_TAKE (120 * WB_SECOND)
/* Rows remembered from one round to the next. Those beyond come in later rounds. */
#define SEEN_MAX 65536

typedef struct {
    wb_pipeline *pipeline;
    wb_storage_session *storage;
    wb_outlet outlet; /* session NULL: not open */
    wb_window window;
    wb_arena arena;
    wb_buffer bytes; /* the row in hand */
    wb_buffer encoded;
    uint64_t batch; /* its number; 0: there was none */
    uint64_t reached; /* the last row the walk came to */
    size_t passed;    /* rows the walk has left behind */
    void (*tell)(uint64_t rows); /* is told of these; NULL: nobody is */
    const wb_sweep_memory *before;
    wb_sweep_memory after;
    uint64_t young; /* ordinary rows from this number on are left to their workers */
    uint64_t due;   /* parked ones from this number on wait */
    uint64_t tried; /* those that are refused from this number on are left to their messages' retries */
    wb_sweep_result done;
    int64_t until;
    wb_silences silences;
    unsigned lost; /* sessions in a row that broke, with nothing sent in between */
    int is_asked;         /* somebody asked for all that is parked */
    uint64_t *renumbered; /* rows this round parked then */
    size_t renumbered_count;
    int has_row; /* that nobody else dispatches meanwhile */
    wb_error *error;
} round;

/* ---- the walk ---------------------------------------------------------------------- */

static int take_row(void *argument, const wb_pending *pending)
{
    round *r = argument;
    r->batch = pending->batch;
    r->bytes.size = 0;
    wb_buffer_put(&r->bytes, pending->operations, pending->operations_size);
    return WB_OK;
}

typedef struct {
    round *round;
    uint64_t after;
} search;

/* For a persistence that can only visit from the start. */
static int take_first_after(void *argument, const wb_pending *pending)
{
    const search *s = argument;
    if (pending->batch <= s->after || s->round->batch)
        return WB_OK;
    return take_row(s->round, pending);
}

static int ask_for_row(round *r, uint64_t after, uint64_t before)
{
    const wb_persistence_ops *ops = r->pipeline->persistence_ops;
    if (WB_HAS(ops, wb_persistence_ops, next_pending))
        return ops->next_pending(r->storage, after, before, take_row, r, r->error);
    search s = { r, after };
    return ops->sweep(r->storage, before, r->passed + 1, take_first_after, &s, r->error);
}

/* None may mean that another instance was just visiting one: it does for a round trip or two. */
static int next_row(round *r, uint64_t before)
{
    const uint64_t after = r->batch;
    int result = WB_OK;
    r->batch = 0;
    for (unsigned looks = 0; result == WB_OK && !r->batch && looks < LOOKS_FOR_ROW; looks++) {
        if (looks)
            wb_clock_pause(LOOK_AGAIN << looks, &r->pipeline->stop);
        result = ask_for_row(r, after, before);
    }
    return result;
}

/* ---- a row ------------------------------------------------------------------------- */

static int was_seen(const wb_sweep_memory *memory, uint64_t batch)
{
    size_t low = 0, high = memory->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (memory->seen[middle] < batch)
            low = middle + 1;
        else
            high = middle;
    }
    return low < memory->count && memory->seen[low] == batch;
}

static void remember(round *r, uint64_t batch)
{
    if (!r->after.seen)
        r->after.seen = wb_alloc(SEEN_MAX * sizeof *r->after.seen);
    if (r->after.count < SEEN_MAX)
        r->after.seen[r->after.count++] = batch;
}

/* What a round that ended early did not come to has been seen as often as before. */
static void remember_rest(round *r)
{
    for (size_t i = 0; i < r->before->count; i++)
        if (r->before->seen[i] > r->reached)
            remember(r, r->before->seen[i]);
}

static int open_outlet(round *r)
{
    const wb_pipeline *p = r->pipeline;
    if (r->outlet.session)
        return WB_OK;
    r->outlet = (wb_outlet){ .pipeline = r->pipeline, .storage = r->storage, .until = r->until };
    return wb_transport_open(p->transport_ops, p->transport, WB_SESSION_SEND, 0, &r->outlet.session, r->error);
}

static void close_outlet(round *r)
{
    if (r->outlet.session)
        r->pipeline->transport_ops->close(r->outlet.session);
    r->outlet.session = NULL;
}

static int mark(round *r, wb_mark mark)
{
    return r->pipeline->persistence_ops->mark(r->storage, &mark, 1, r->error);
}

/* The first that is refused; else the first that is not confirmed, or was not sent again. */
static const wb_operation *find_obstacle(const wb_operation_group *groups)
{
    const wb_operation *refused = NULL, *unconfirmed = NULL;
    for (; groups && !refused; groups = groups->next) {
        refused = wb_find_refused(&groups->operations);
        unconfirmed = unconfirmed ? unconfirmed : wb_unconfirmed_find(&groups->operations);
    }
    return refused ? refused : unconfirmed;
}

/* When all that is parked is due, the walk comes to the new row, too. */
static void remember_parked(round *r, uint64_t number)
{
    r->renumbered = wb_realloc(r->renumbered, (r->renumbered_count + 1) * sizeof *r->renumbered);
    r->renumbered[r->renumbered_count++] = number;
}

static int was_parked_now(const round *r)
{
    for (size_t i = 0; i < r->renumbered_count; i++)
        if (r->renumbered[i] == r->batch)
            return 1;
    return 0;
}

/* What the store takes no larger than it is waits without its reason. */
static int store_parked(const round *r, wb_parked *parked, wb_parking *ret_parking)
{
    int result = wb_pipeline_park(r->pipeline, r->storage, parked, r->batch, ret_parking, r->error);
    if (result != WB_REJECT)
        return result;
    parked->reason = "";
    return wb_pipeline_park(r->pipeline, r->storage, parked, r->batch, ret_parking, r->error);
}

static int has_confirmed(const wb_operation_group *groups)
{
    for (; groups; groups = groups->next)
        for (const wb_operation_node *node = groups->operations.first; node; node = node->next)
            if (node->operation.result == WB_OK)
                return 1;
    return 0;
}

/* What was confirmed leaves it, and it is parked no longer than it was. A store may refuse that, too: then it goes again. */
static int mark_confirmed(round *r, const wb_mark *remaining, uint32_t tries)
{
    wb_buffer bytes = { 0 };
    wb_mark less = *remaining;
    if (tries) {
        wb_parked_encode(&bytes, &(wb_parked){ tries, "", remaining->remaining, remaining->remaining_size });
        less.remaining = bytes.data;
        less.remaining_size = bytes.size;
    }
    const int result = mark(r, less);
    wb_buffer_free(&bytes);
    return result == WB_REJECT ? WB_OK : result;
}

/* It is no other row's affair. */
static int leave_alone(round *r, const wb_operation_group *groups, const wb_mark *remaining, uint32_t tries,
                       const char *refusal)
{
    char text[2600];
    (void)snprintf(text, sizeof text, "%s (%s)", r->error->text, refusal);
    wb_log_event(WB_LOG_ERROR, "operations stay where they are: the store refuses to park them",
                 { "endpoint", r->pipeline->endpoint }, { "reason", text });
    return has_confirmed(groups) ? mark_confirmed(r, remaining, tries) : WB_OK;
}

/* The new row stands before the old one goes: a crash in between sends twice, and loses
 * nothing. The old one goes, too, where another process has parked what it holds. */
static int park(round *r, const wb_operation_group *groups, const wb_mark *remaining, uint32_t tries,
                const wb_operation *refused)
{
    char reason[1200];
    wb_describe_refusal(refused, reason, sizeof reason);
    wb_parked parked = { tries + 1, reason, remaining->remaining, remaining->remaining_size };
    wb_parking parking = { 0 };
    int result = store_parked(r, &parked, &parking);
    if (result == WB_REJECT)
        return leave_alone(r, groups, remaining, tries, reason);
    if (result != WB_OK)
        return result;
    r->done.parked += !parking.was_done;
    if (r->is_asked && !parking.was_done)
        remember_parked(r, parking.number);
    return mark(r, (wb_mark){ r->batch, NULL, 0 });
}

/* A row that another instance has in hand is its affair. */
static int take(round *r, uint64_t batch, int *ret_is_ours)
{
    const wb_persistence_ops *ops = r->pipeline->persistence_ops;
    int taken = WB_TAKEN, result = WB_OK;
    if (WB_HAS(ops, wb_persistence_ops, take_pending))
        result = ops->take_pending(r->storage, batch, &taken, r->error);
    *ret_is_ours = taken != WB_TAKEN_BY_OTHERS || wb_bug("sweep_untaken");
    r->has_row = result == WB_OK && batch && taken == WB_TAKEN;
    return result;
}

/* A message whose row is parked is done with, and would not come to the error queue. While it may be tried again, at once or
 * after a delay, the row stays. */
static int is_for_its_message(const round *r, const wb_operation *obstacle, uint32_t tries)
{
    return obstacle && obstacle->result == WB_REJECT && !tries && r->batch >= r->tried;
}

/* What was confirmed is marked whatever became of the rest. */
static int conclude(round *r, const wb_operation_group *groups, uint32_t tries)
{
    const wb_operation *obstacle = find_obstacle(groups);
    wb_mark remaining = wb_groups_mark(r->batch, groups, &r->encoded);
    r->done.sent += !remaining.remaining;
    if (is_for_its_message(r, obstacle, tries))
        return has_confirmed(groups) ? mark(r, remaining) : WB_OK;
    return obstacle ? park(r, groups, &remaining, tries, obstacle) : mark(r, remaining);
}

/* What goes where nothing was confirmed a moment ago does not cost this round as long again. */
static void fill_window(round *r, wb_operation_group *groups)
{
    wb_window_clear(&r->window, &r->arena);
    for (; groups; groups = groups->next)
        for (wb_operation_node *node = groups->operations.first; node; node = node->next) {
            if (!wb_silences_has(&r->silences, node->operation.destination))
                wb_window_add(&r->window, &node->operation);
            node->operation.reason = "no confirmation came in time";
        }
}

static void note_silences(round *r)
{
    for (size_t i = 0; i < r->window.count; i++)
        if (r->window.operations[i]->result != WB_OK && r->window.operations[i]->result != WB_REJECT)
            wb_silences_add(&r->silences, r->window.operations[i]->destination);
}

/* The session lives, and what is not confirmed was waited for as long as may be. */
static int is_out_of_patience(int result)
{
    return result == WB_IN_DOUBT || result == WB_RETRY;
}

/* A session that breaks over one row is no reason to give up the others. */
static int dispatch(round *r, const void *operations, size_t size, uint32_t tries)
{
    int failed, result, is_ours;
    wb_operation_group *groups = wb_operations_decode(operations, size, &r->arena, &failed);
    if (failed) {
        r->done.unreadable++;
        return WB_OK;
    }
    if ((result = take(r, r->batch, &is_ours)) != WB_OK || !is_ours)
        return result;
    fill_window(r, groups);
    if (r->window.count && (result = open_outlet(r)) != WB_OK)
        return result == WB_NOT_CONNECTED ? WB_RETRY : result;
    result = wb_window_send(&r->window, &r->outlet, r->error);
    if (r->outlet.storage_failed)
        return result;
    if (is_out_of_patience(result))
        note_silences(r);
    if (result == WB_OK || is_out_of_patience(result)) {
        r->lost = 0;
        return conclude(r, groups, tries);
    }
    close_outlet(r);
    if (++r->lost == LOST_MAX || r->pipeline->stop)
        return WB_RETRY;
    wb_mark remaining = wb_groups_mark(r->batch, groups, &r->encoded);
    return tries ? WB_OK : mark(r, remaining);
}

static int sweep_ordinary(round *r)
{
    if (r->batch >= r->young)
        return WB_OK;
    remember(r, r->batch);
    if (wb_underway_has(&r->pipeline->underway, NULL, r->batch))
        return WB_OK; /* its worker is about it, or its mark is on its way */
    return was_seen(r->before, r->batch) ? dispatch(r, r->bytes.data, r->bytes.size, 0) : WB_OK;
}

static int sweep_row(round *r)
{
    const void *data = r->bytes.data;
    size_t size = r->bytes.size;
    uint64_t day_ago = wb_batch_number_at(wb_pipeline_now(r->pipeline) - ATTEMPTS_KEPT);
    wb_parked parked;

    wb_arena_reset(&r->arena);
    if (was_parked_now(r))
        return WB_OK;
    if (wb_parked_decode(data, size, &parked))
        return !r->is_asked && r->batch >= r->due
                   ? WB_OK
                   : dispatch(r, parked.operations, parked.operations_size, parked.tries);
    if (wb_attempts_is_older(data, size, day_ago))
        return mark(r, (wb_mark){ r->batch, NULL, 0 });
    if (wb_attempts_is_record(data, size))
        return WB_OK;
    return sweep_ordinary(r);
}

/* ---- a round ----------------------------------------------------------------------- */

static void report(const round *r)
{
    char swept[24], parked[24], unreadable[24];
    const wb_sweep_result *done = &r->done;
    if (!done->sent && !done->parked && !done->unreadable)
        return;
    (void)snprintf(parked, sizeof parked, "%zu", done->parked);
    (void)snprintf(swept, sizeof swept, "%zu", done->sent);
    (void)snprintf(unreadable, sizeof unreadable, "%zu", done->unreadable);
    wb_log_event(done->unreadable ? WB_LOG_WARNING : WB_LOG_INFO, "swept pending operations",
                 { "endpoint", r->pipeline->endpoint }, { "rows", swept },
                 { "parked", done->parked ? parked : NULL },
                 { "unreadable_left_alone", done->unreadable ? unreadable : NULL });
}

/* Somebody asked for what is parked: then all of it is due. */
static uint64_t choose_end(round *r)
{
    r->is_asked = atomic_exchange(&r->pipeline->sweep_parked, 0);
    if (r->is_asked)
        return INT64_MAX;
    return r->young > r->due ? r->young : r->due;
}

static int walk(round *r)
{
    const wb_pipeline *p = r->pipeline;
    uint64_t end = choose_end(r);
    int result = next_row(r, end);
    while (result == WB_OK && r->batch && !p->stop && wb_clock_monotonic() < r->until) {
        r->reached = r->batch;
        result = sweep_row(r);
        r->passed++;
        if (r->tell)
            r->tell(r->passed);
        if (result == WB_OK)
            result = wb_bug("sweep_stops") && r->window.count ? WB_RETRY : next_row(r, end);
    }
    return result;
}

/* The session goes on; if this fails its end does it. */
static void give_back(round *r)
{
    wb_error ignored = { 0 };
    wb_error *error = r->error;
    int is_ours;
    r->error = &ignored;
    (void)take(r, 0, &is_ours);
    r->error = error;
}

int wb_sweep(wb_pipeline *p, wb_storage_session *storage, wb_sweep_memory *memory, const wb_sweep_order *order,
             wb_sweep_result *ret_result, wb_error *error)
{
    round r = { .pipeline = p, .storage = storage, .before = memory, .until = order->until,
                .tell = order->passed, .error = error };
    r.young = wb_batch_number_at(wb_pipeline_now(p) - order->older_than);
    r.due = wb_batch_number_at(wb_pipeline_now(p) - p->sweep_after);
    const int64_t span = wb_pipeline_retry_span(p);
    r.tried = span ? wb_batch_number_at(wb_pipeline_now(p) - span - TRIES_TAKE) : UINT64_MAX;
    wb_arena_init(&r.arena, 64 * 1024);
    int result = walk(&r);
    if (result != WB_OK || r.batch)
        remember_rest(&r);
    if (r.has_row && result != WB_NOT_CONNECTED && result != WB_IN_DOUBT)
        give_back(&r);
    report(&r);
    close_outlet(&r);
    wb_window_free(&r.window);
    wb_arena_free(&r.arena);
    wb_buffer_free(&r.bytes);
    wb_buffer_free(&r.encoded);
    free(r.renumbered);
    wb_silences_free(&r.silences);
    wb_sweep_forget(memory);
    *memory = r.after;
    *ret_result = r.done;
    return result;
}

void wb_sweep_forget(wb_sweep_memory *memory)
{
    free(memory->seen);
    *memory = (wb_sweep_memory){ 0 };
}
