/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/pipeline/window.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/message/incoming.h"
#include "core/pipeline/defer.h"
#include "core/pipeline/observe.h"

/* Between two tries of what the broker refused for now. Six refusals in three seconds end them:
 * a full queue that refuses (x-overflow = reject-publish) does so for ever. */
#define PAUSE_FIRST (100 * WB_MILLISECOND)
#define PAUSE_LONGEST (5 * WB_SECOND)
#define REFUSALS_MAX 6
/* So often a window is sent on a way out that was made for it; then it is the destination that
 * does not confirm. With mode none, which runs nothing twice, there is no giving up. Whose time is
 * limited, the sweeper, has rows enough to try instead. */
#define SILENCES_MAX 2
#define SILENCES_MAX_IN_TIME 1
/* A connection that took longer to die died of silence, not of what was sent. */
#define DEATH_WITHIN (5 * WB_SECOND)
/* AMQP's CONNECTION_FORCED: an operator closed it, or the broker shuts down. */
#define CONNECTION_FORCED 320

void wb_window_free(wb_window *window)
{
    free(window->operations);
    memset(window, 0, sizeof *window);
}

void wb_window_clear(wb_window *window, wb_arena *arena)
{
    window->count = 0;
    window->arena = arena;
}

void wb_window_add(wb_window *window, wb_operation *operation)
{
    if (window->count == window->max) {
        const size_t max = window->max ? window->max * 2 : 128;
        window->operations = wb_realloc(window->operations, max * sizeof *window->operations);
        window->max = max; /* not before: this is where it may be left for want of memory */
    }
    if (wb_bug("not_mandatory"))
        operation->flags &= ~WB_OPERATION_MANDATORY;
    window->operations[window->count++] = operation;
}

void wb_window_add_list(wb_window *window, const wb_operation_list *list)
{
    for (wb_operation_node *node = list->first; node; node = node->next)
        wb_window_add(window, &node->operation);
}

void wb_window_add_groups(wb_window *window, const wb_operation_group *groups)
{
    for (; groups; groups = groups->next)
        wb_window_add_list(window, &groups->operations);
}

/* Sending alone failed: the session has made, or makes, a new way out. */
static int is_silence(int result, const wb_error *error, int in_transaction)
{
    return result == WB_IN_DOUBT && error->cause == WB_CAUSE_SENDING && !in_transaction;
}

static int is_done(const wb_operation *operation)
{
    return operation->result == WB_OK || operation->result == WB_REJECT;
}

static void refuse(wb_arena *arena, wb_operation *operation, int cause, const char *reason)
{
    operation->result = WB_REJECT;
    operation->cause = cause;
    operation->reason = wb_arena_copy(arena, reason, strlen(reason));
}

/* ---- one try ---------------------------------------------------------------------- */

/* What is handed over may be there, unless the transport knows better. */
static void doubt(const wb_window *part)
{
    for (size_t i = 0; i < part->count; i++)
        part->operations[i]->result = WB_IN_DOUBT;
}

/* A refusal's reason belongs to the session until its next call. */
static void note_outcomes(const wb_window *part, wb_outlet *outlet, int64_t began)
{
    size_t confirmed = 0;
    for (size_t i = 0; i < part->count; i++) {
        wb_operation *operation = part->operations[i];
        if (operation->result == WB_REJECT && operation->reason)
            operation->reason = wb_arena_copy(part->arena, operation->reason, strlen(operation->reason));
        confirmed += operation->result == WB_OK;
    }
    wb_observe_sent(outlet->pipeline, part, began);
    outlet->confirmed += confirmed;
    if (outlet->tally)
        wb_tally_note(outlet->tally, WB_TALLY_SENT, confirmed);
    else
        wb_tally_add(&outlet->pipeline->tally, WB_TALLY_SENT, confirmed);
}

void wb_window_keep_undone(wb_window *part)
{
    size_t count = 0;
    for (size_t i = 0; i < part->count; i++)
        if (!is_done(part->operations[i]))
            part->operations[count++] = part->operations[i];
    part->count = count;
}

/* Who has a patience of his own has to be done `until` then. */
static int64_t wait_until(const wb_outlet *outlet)
{
    int64_t left = outlet->until - wb_clock_monotonic();
    return left < outlet->patience ? (left > PAUSE_FIRST ? left : PAUSE_FIRST) : outlet->patience;
}

/* A stop is not to wait longer than it may. */
static int64_t patience(const wb_outlet *outlet)
{
    const wb_pipeline *p = outlet->pipeline;
    int64_t usual = outlet->patience ? wait_until(outlet) : WB_DISPATCH_TIMEOUT;
    return p->stop && p->drain_time < usual ? p->drain_time : usual;
}

static int is_silent(const wb_outlet *outlet, int silences)
{
    return silences >= (outlet->until ? SILENCES_MAX_IN_TIME : SILENCES_MAX) &&
           (outlet->until || outlet->pipeline->mode != WB_MODE_NONE);
}

static int is_time_up(const wb_outlet *outlet)
{
    return outlet->until && wb_clock_monotonic() >= outlet->until;
}

/* Any two times: stored operations are whoever's. */
static void set_ahead(wb_operation *const *operations, size_t count, int64_t by)
{
    for (size_t i = 0; by && i < count; i++)
        if (operations[i]->deliver_at)
            operations[i]->deliver_at = (int64_t)((uint64_t)operations[i]->deliver_at + (uint64_t)by);
}

int wb_window_hand_over(const wb_pipeline *p, wb_transport_session *session, wb_operation *const *operations, size_t count,
                        int64_t deadline, wb_error *error)
{
    const int64_t ahead = wb_pipeline_host_ahead(p);
    set_ahead(operations, count, ahead);
    int r = p->transport_ops->send(session, operations, count, deadline, error);
    set_ahead(operations, count, -ahead);
    return r;
}

static int try_once(const wb_window *part, wb_outlet *outlet, wb_error *error)
{
    if (outlet->beat)
        atomic_store(outlet->beat, wb_clock_monotonic());
    doubt(part);
    const int64_t began = wb_observe_now(outlet->pipeline, 0);
    int r = wb_window_hand_over(outlet->pipeline, outlet->session, part->operations, part->count,
                                wb_clock_monotonic() + patience(outlet), error);
    error->result = r;
    note_outcomes(part, outlet, began);
    return r;
}

static void say_why_we_wait(const wb_outlet *outlet, const wb_error *error)
{
    wb_log_event(WB_LOG_WARNING, "the broker takes nothing for now: waiting",
                 { "endpoint", outlet->pipeline->endpoint }, { "class", wb_result_name(error->result) },
                 { "reason", error->text });
}

void wb_window_refuse(wb_window *window, const wb_error *error)
{
    char reason[1200];
    (void)snprintf(reason, sizeof reason, "the broker refused it: %s", error->text);
    for (size_t i = 0; i < window->count; i++)
        if (!is_done(window->operations[i]))
            refuse(window->arena, window->operations[i], WB_CAUSE_SERVER, reason);
}

/* Sends a part of a window until it is done, or was refused so often. `part` is used up. */
static int send_part(wb_window *part, wb_outlet *outlet, int refusals_max, wb_error *error)
{
    const wb_pipeline *p = outlet->pipeline;
    int64_t pause = PAUSE_FIRST;
    int in_transaction = wb_has_transport_transaction(p) && !outlet->is_apart;
    int refusals = 0, silences = 0, waits = 0, r;

    while (part->count && (r = try_once(part, outlet, error)) != WB_OK) {
        if (r != WB_RETRY && !is_silence(r, error, in_transaction))
            return r == WB_FATAL || (r == WB_ABORT && in_transaction) ? r : WB_NOT_CONNECTED;
        if (in_transaction)
            return WB_RETRY; /* a transaction is run again from its start, never in the middle */
        wb_window_keep_undone(part);
        if (!wb_error_is_servers(error) && ++refusals == refusals_max && !wb_bug("uncounted_attempt")) {
            wb_window_refuse(part, error);
            return WB_OK;
        }
        if (p->stop)
            return WB_NOT_CONNECTED;
        silences = r == WB_IN_DOUBT ? silences + 1 : 0;
        if (part->count && is_silent(outlet, silences))
            return WB_IN_DOUBT;
        if (is_time_up(outlet))
            return WB_RETRY;
        if (!waits++)
            say_why_we_wait(outlet, error);
        wb_clock_pause(pause, &p->stop);
        pause = pause * 2 < PAUSE_LONGEST ? pause * 2 : PAUSE_LONGEST;
    }
    return WB_OK;
}

/* ---- suspicions ------------------------------------------------------------------- */

static int is_suspected(const wb_window *window, const wb_outlet *outlet)
{
    wb_suspicions *s = outlet->pipeline->suspicions;
    for (size_t i = 0; atomic_load(&s->count) && i < window->count; i++)
        if (wb_suspicions_has(s, window->operations[i]->id, window->operations[i]->id_size))
            return 1;
    return 0;
}

static void suspect_rest(const wb_window *window, const wb_outlet *outlet)
{
    for (size_t i = 0; i < window->count && i < WB_SUSPICIONS_MAX; i++)
        if (!is_done(window->operations[i]))
            wb_suspicions_add(outlet->pipeline->suspicions, window->operations[i]->id,
                              window->operations[i]->id_size);
}

/* What the transport calls fatal ends the session as a broken connection does, and may be one
 * operation's doing just the same. */
static int is_lost(int result, const wb_outlet *outlet)
{
    return (result == WB_NOT_CONNECTED || result == WB_FATAL) && !outlet->pipeline->stop;
}

static int send_together(const wb_window *window, wb_outlet *outlet, wb_error *error)
{
    wb_window part = { wb_alloc((window->count + 1) * sizeof *part.operations), window->count,
                       window->count, window->arena };
    wb_memory_held held;
    wb_memory_hold(&held, free, part.operations);
    memcpy(part.operations, window->operations, window->count * sizeof *part.operations);
    wb_window_keep_undone(&part); /* what was deferred is done */
    int r = send_part(&part, outlet, REFUSALS_MAX, error);
    wb_memory_let_go(&held);
    free(part.operations);
    if (is_lost(r, outlet) && !wb_bug("poison_operation"))
        suspect_rest(window, outlet);
    return r;
}

static int died_of_it(int result, const wb_error *error, int64_t started)
{
    return result == WB_FATAL ||
           (wb_clock_monotonic() - started < DEATH_WITHIN && error->cause != WB_CAUSE_SERVER &&
            error->cause != WB_CAUSE_SENDING && error->native_code != CONNECTION_FORCED);
}

static void count_death(const wb_operation *operation, const wb_outlet *outlet)
{
    wb_suspicions_count_death(outlet->pipeline->suspicions, operation->id, operation->id_size,
                              outlet->confirmed > 0);
    char type[WB_TYPE_SIZE];
    wb_log_event(WB_LOG_WARNING, "the session was lost while one operation was sent alone",
                 { "endpoint", outlet->pipeline->endpoint }, { "message_id", operation->id },
                 { "type", wb_headers_type(operation->headers, operation->header_count, type) },
                 { "destination", operation->destination });
}

/* With the outbox what is given up is parked, and the sweeper tries it on a session of its own. */
static int are_deaths_dear(const wb_pipeline *p)
{
    return !p->outbox && p->recoverability.delivery_limit;
}

/* Who has little time, and tries again later, the sweeper: what others wait behind is asked for once. */
static int refusals_of_one(const wb_window *window, const wb_outlet *outlet)
{
    int is_hurried = outlet->until && !outlet->patience && window->count > 1;
    return is_hurried && !wb_bug("sweep_waits") ? 1 : REFUSALS_MAX;
}

static int send_alone(wb_window *window, wb_operation *operation, wb_outlet *outlet, wb_error *error)
{
    wb_suspicions *s = outlet->pipeline->suspicions;
    wb_window part = { &operation, 1, 1, window->arena };
    int64_t started = wb_clock_monotonic();
    if (is_done(operation))
        return WB_OK;
    if (wb_suspicions_is_deadly(s, operation->id, operation->id_size, are_deaths_dear(outlet->pipeline))) {
        refuse(window->arena, operation, WB_CAUSE_OTHER, "the session was lost each time it was sent");
        return WB_OK;
    }
    int r = send_part(&part, outlet, refusals_of_one(window, outlet), error);
    /* a delayed retry that is refused tells nothing of the copy for the error queue: one id */
    if (r == WB_OK && (operation->result == WB_OK || wb_bug("refused_is_cleared")))
        wb_suspicions_forget(s, operation->id, operation->id_size);
    else if (is_lost(r, outlet) && died_of_it(r, error, started))
        count_death(operation, outlet);
    return r;
}

/* The harmless first: what a connection confirmed before it died is what makes the death count.
 * One that is not confirmed keeps nobody else. */
static int send_one_by_one(wb_window *window, wb_outlet *outlet, wb_error *error)
{
    wb_suspicions *s = outlet->pipeline->suspicions;
    int all = WB_OK;
    for (int deaths = 0; deaths < 2; deaths++)
        for (size_t i = 0; i < window->count; i++) {
            wb_operation *operation = window->operations[i];
            if ((wb_suspicions_deaths(s, operation->id, operation->id_size) > 0) != deaths)
                continue;
            int r = send_alone(window, operation, outlet, error);
            if (r != WB_OK && r != WB_IN_DOUBT)
                return r;
            all = r != WB_OK ? r : all;
            if (r == WB_IN_DOUBT && is_time_up(outlet))
                return r;
            if (outlet->patience && is_time_up(outlet))
                return WB_RETRY; /* what is not sent by then is somebody else's */
        }
    return all;
}

int wb_window_send(wb_window *window, wb_outlet *outlet, wb_error *error)
{
    int r = wb_defer(window, outlet, error);
    if (r != WB_OK || !window->count)
        return r;
    if (is_suspected(window, outlet))
        return send_one_by_one(window, outlet, error);
    return send_together(window, outlet, error);
}

/* ---- what remains ------------------------------------------------------------------ */

const wb_operation *wb_find_refused(const wb_operation_list *list)
{
    for (const wb_operation_node *node = list->first; node; node = node->next)
        if (node->operation.result == WB_REJECT)
            return &node->operation;
    return NULL;
}

void wb_describe_refusal(const wb_operation *operation, char *text, size_t size)
{
    (void)snprintf(text, size, "could not dispatch to \"%s\": %s", operation->destination,
                   operation->reason ? operation->reason : "refused by the transport");
}

wb_mark wb_groups_mark(uint64_t batch, const wb_operation_group *groups, wb_buffer *bytes)
{
    size_t remaining = 0;
    wb_operations_encode_start(bytes);
    for (; groups; groups = groups->next)
        remaining += wb_operations_encode_group(bytes, groups->cause, groups->cause_size,
                                                &groups->operations);
    if (remaining)
        return (wb_mark){ batch, bytes->data, bytes->size };
    return (wb_mark){ batch, NULL, 0 };
}
