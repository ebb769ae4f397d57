/* SPDX-License-Identifier: Apache-2.0
 *
 * The worker: the stages in their order, and what happens when one fails.
 */
#include "config.h"

#include "core/pipeline/worker.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/base/log.h"
#include "core/pipeline/apart.h"
#include "core/pipeline/batch.h"
#include "core/pipeline/distrust.h"
#include "core/pipeline/marks.h"
#include "core/pipeline/misbehave.h"
#include "core/pipeline/pace.h"
#include "core/pipeline/scout.h"
#include "core/pipeline/stages.h"
#include "core/pipeline/suspect.h"

#define ARENA_BLOCK (256 * 1024)
/* A handler that takes longer keeps nobody else's messages waiting. */
#define RELEASE_AFTER (1 * WB_SECOND)
/* A claim that took longer and was not to be had is another transaction's, of a slow handler or of a frozen process. */
#define LONG_CLAIM (500 * WB_MILLISECOND)
/* Between two looks whether the scout is done. */
#define SCOUT_WAIT (20 * WB_MILLISECOND)
/* Who waits for a turn looks this often whether attempts are limited no longer. */
#define RATE_PAUSE (50 * WB_MILLISECOND)
/* So long a stop waits for what a handler may have committed to be made good. */
#define STOPPING_REPAIR (2 * WB_SECOND)
#define STOPPING_PAUSE (50 * WB_MILLISECOND)
/* A suspect waits so long for the batches beside it, and looks so often whether they are done. */
#define OTHERS_WAIT (100 * WB_MILLISECOND)
#define OTHERS_PAUSE (1 * WB_MILLISECOND)

/* What it did since it was asked last was this. */
static void lap(wb_worker *w, wb_time what)
{
    const int64_t now = wb_clock_monotonic();
    wb_tally_lap(&w->tally, what, now - w->lapped);
    w->lapped = now;
}

static int timed_settle(wb_worker *w, int (*settle)(wb_worker *w, wb_error *error), wb_error *error)
{
    const int is_work = w->settled_count || w->mark_count || w->record;
    int r = settle(w, error);
    if (is_work)
        lap(w, WB_TIME_ACKNOWLEDGE);
    return r;
}

/* ---- a batch ---------------------------------------------------------------------- */

/* What passes: the connection may be gone, or break in between; a deadlock, a full disk. A stop
 * does not wait long for it. */
static int may_pass(const wb_worker *w, int result, int64_t *until)
{
    if (result == WB_OK || result == WB_FATAL || result == WB_REJECT)
        return 0;
    if (w->pipeline->stop && !*until)
        *until = wb_clock_monotonic() + STOPPING_REPAIR;
    return !*until || wb_clock_monotonic() < *until;
}

static void wait_to_repair(wb_worker *w, int result, wb_error *error)
{
    error->result = result;
    if (result == WB_RETRY)
        wb_pace_complain(w, "cannot look after what a handler may have committed, and tries again", error);
    wb_pace_back_off(w);
    if (w->pipeline->stop)
        wb_clock_pause(STOPPING_PAUSE, NULL);
}

static void tell_unrepaired(const wb_worker *w, const wb_error *error)
{
    if (w->transaction_ended)
        wb_log_event(WB_LOG_ERROR, "a handler ended the transaction: messages of its batch may be lost",
                     { "endpoint", w->pipeline->endpoint }, { "reason", error->text });
    else
        wb_log_event(WB_LOG_WARNING, "a batch failed, and whether a handler committed it is not known",
                     { "endpoint", w->pipeline->endpoint }, { "reason", error->text });
}

/* What a handler committed behind our back is made good before anything else, and while its
 * messages are in hand. */
static int repair(wb_worker *w)
{
    wb_error error = { 0 };
    int64_t until = 0;
    int r;
    for (;;) {
        r = wb_stage_connect_storage(w, &error);
        if (r == WB_OK)
            r = wb_stage_repair(w, &error);
        if (!may_pass(w, r, &until))
            break;
        wait_to_repair(w, r, &error);
    }
    if (r != WB_OK)
        tell_unrepaired(w, &error);
    return r;
}

/* @return WB_NOT_CONNECTED when undoing showed that a session is lost, else `result`; a commit in
 * doubt stays one, so that it is reported as what it is. A session that was lost to a handler that
 * ended the transaction, and is there again, hides no longer what that handler did. */
static int undo(wb_worker *w, int result)
{
    int r = wb_stage_rollback(w);
    w->storage_lost = w->storage_broken;
    if (w->may_have_ended && w->pipeline->outbox) {
        int repaired = repair(w);
        if (w->transaction_ended)
            r = repaired;
    }
    wb_tally_note(&w->tally, WB_TALLY_ROLLED_BACK, 1);
    if (r == WB_OK || result == WB_IN_DOUBT || result == WB_FATAL)
        return result;
    /* what the handler did is known, and need not be made good: nothing hides it */
    return w->transaction_ended && !w->pipeline->outbox && !w->transport_broken ? result : WB_NOT_CONNECTED;
}

/* Phase 1: one database transaction. What fails here may be the fault of a message. */
static int run_transaction(wb_worker *w, wb_item **ret_culprit, wb_error *error)
{
    int r = wb_stage_handle(w, ret_culprit, error);
    wb_thread_put_back(&w->own);
    lap(w, WB_TIME_HANDLE);
    if (r != WB_OK)
        return r;
    if (wb_has_transport_transaction(w->pipeline) &&
        (r = wb_stage_dispatch_inside(w, ret_culprit, error)) != WB_OK)
        return r;
    r = wb_stage_commit(w, ret_culprit, error);
    lap(w, WB_TIME_COMMIT);
    return r;
}

/* Phase 2: no database transaction. What fails here is nobody's fault: the messages run
 * again, and their claims say that they are duplicates. */
static int run_dispatch(wb_worker *w, wb_error *error)
{
    int r;
    wb_misbehave_after_commit(w);
    if (wb_has_transport_transaction(w->pipeline))
        r = wb_stage_commit_transport(w, error);
    /* What was committed before goes out before, so that a key keeps its order. */
    else if ((r = wb_stage_resume(w, error)) == WB_OK)
        r = wb_stage_dispatch(w, error);
    lap(w, WB_TIME_DISPATCH);
    return r;
}

/* One that came before may have ended the process, and do so again. With a transaction of the transport's
 * nothing is left of the batch before. */
static int may_end_process(const wb_worker *w)
{
    for (size_t i = 0; i < w->batch_size; i++)
        if (wb_item_is_open(w->batch[i]) && w->batch[i]->incoming->delivery_count)
            return w->pipeline->mode != WB_MODE_NONE;
    return 0;
}

static int claim(wb_worker *w, wb_error *error)
{
    const int64_t since = wb_clock_monotonic();
    int r = wb_stage_claim(w, error);
    w->claim_took = r == WB_OK ? 0 : wb_clock_monotonic() - since;
    return r;
}

/* Before any message is looked at: what fails here is no message's fault, unless the database
 * refuses an id for good. */
static int begin_batch(wb_worker *w, wb_item **ret_culprit, wb_error *error)
{
    int r;
    *ret_culprit = NULL;
    w->claim_took = 0;
    if ((may_end_process(w) && (r = wb_stage_settle_for_good(w, error)) != WB_OK) ||
        (r = wb_stage_suspect(w, error)) != WB_OK || (r = wb_stage_witness(w, error)) != WB_OK ||
        (r = claim(w, error)) != WB_OK)
        return r;
    lap(w, WB_TIME_CLAIM);
    return timed_settle(w, wb_stage_settle, error); /* the marks rode along, or nothing was to be claimed */
}

/* Whose claim it was is not known of a batch: each tries by itself then, and the one that waits in vain leaves others
 * as much time as it took. Where locks are not waited for that long, the second failure in a row says as much. */
static void make_way(wb_worker *w)
{
    if (w->claim_took < LONG_CLAIM && !w->pause)
        return;
    if (w->batch_size > 1)
        wb_batch_run_alone(w);
    else
        wb_item_pause(w->batch[0], wb_clock_monotonic() + w->claim_took + 2 * w->pause);
}

static int fail_before_handling(wb_worker *w, int result, const wb_error *error)
{
    result = undo(w, result);
    if (result == WB_REJECT)
        return wb_stage_isolate(w, result, w->batch_size == 1 ? w->batch[0] : NULL, error);
    wb_batch_rerun(w);
    if (result == WB_RETRY)
        make_way(w);
    if (result == WB_ABORT && w->batch_size > 1)
        w->take = (unsigned)(w->batch_size + 1) / 2;
    return result;
}

/* In a transport transaction the database may have committed: its messages run again. What was committed
 * may not even be tried, for resuming comes before: whoever gets it sends it. */
static int fail_dispatch(wb_worker *w, int result)
{
    if (!wb_bug("resume_keeps_underway"))
        wb_underway_give_up(&w->pipeline->underway, w);
    result = undo(w, result);
    wb_batch_run_alone(w);
    wb_batch_finish(w);
    return result;
}

/* Whether nothing of the batch is committed when the transport's transaction is not: the database
 * is part of it, or there is none. */
static int is_undone(const wb_worker *w)
{
    return wb_has_transport_transaction(w->pipeline) &&
           (w->pipeline->mode == WB_MODE_TRANSACTION_SCOPE || !w->storage);
}

/* What a server's trouble is measured by: somebody's work was committed. */
static int has_handled(const wb_worker *w)
{
    for (size_t i = 0; i < w->batch_size; i++)
        if (w->batch[i]->verdict == WB_VERDICT_OPEN &&
            (w->batch[i]->state == WB_ITEM_COMMITTED || w->batch[i]->state == WB_ITEM_SENT))
            return 1;
    return 0;
}

/* No transaction of the batch's own: what fails is no message's fault, and all of it runs again. */
static int run_controls(wb_worker *w, wb_error *error)
{
    int r;
    if ((r = wb_stage_sessions(w, error)) != WB_OK || (r = wb_stage_resume(w, error)) != WB_OK ||
        (r = wb_stage_dispatch(w, error)) != WB_OK) {
        wb_batch_finish(w);
        return r;
    }
    wb_batch_finish(w);
    w->progressed = 1;
    return wb_stage_settle(w, error);
}

static int finish_batch(wb_worker *w, wb_error *error)
{
    int handled = has_handled(w);
    wb_tally_observe(&w->tally, WB_HISTOGRAM_BATCH, (int64_t)w->batch_size);
    int r = run_dispatch(w, error);
    if (r != WB_OK && is_undone(w)) {
        error->result = r;
        return wb_stage_isolate(w, undo(w, r), NULL, error);
    }
    if (r != WB_OK)
        return fail_dispatch(w, r);
    atomic_fetch_add(&w->pipeline->successes, (uint64_t)handled);
    wb_distrust_found(w);
    if (handled)
        wb_rate_succeeded(&w->pipeline->rate, w->pipeline->endpoint);
    wb_batch_finish(w);
    w->progressed = 1;
    return WB_OK;
}

/* Those that were handled before another one failed, where nothing undoes that, leave. @return `failed`, or why they
 * cannot. */
static int finish_handled(wb_worker *w, int failed)
{
    wb_error error = { 0 };
    wb_item *culprit;
    size_t count = 0;
    for (size_t i = 0; i < w->batch_size; i++)
        count += w->batch[i]->state == WB_ITEM_HANDLED;
    if (!count || w->transport_broken)
        return failed;
    int r = wb_stage_commit(w, &culprit, &error);
    if (r == WB_OK)
        r = finish_batch(w, &error);
    return r == WB_OK ? failed : r;
}

static int run_batch(wb_worker *w, wb_error *error)
{
    wb_item *culprit;
    if (wb_item_is_control(w->batch[0]))
        return run_controls(w, error);
    int r = begin_batch(w, &culprit, error);
    if (r != WB_OK)
        return fail_before_handling(w, r, error);
    r = run_transaction(w, &culprit, error);
    if (r == WB_OK)
        return finish_batch(w, error);
    error->result = r;
    return finish_handled(w, wb_stage_isolate(w, undo(w, r), culprit, error));
}

static int makes_attempt(const wb_worker *w)
{
    for (size_t i = 0; i < w->batch_size; i++)
        if (wb_item_is_open(w->batch[i]) && !w->batch[i]->is_discarded &&
            !wb_item_is_control(w->batch[i]))
            return 1;
    return 0;
}

/* Whether an attempt may be made: where they are limited, one at a time, and not too soon after the
 * last one. A stop, or a critical error, does not wait for that: what is in hand is given back; but for
 * mode none, where that would lose it. */
static int has_turn(wb_worker *w)
{
    wb_pipeline *p = w->pipeline;
    int64_t wait;
    if (!makes_attempt(w))
        return 1;
    while (!p->stop && !p->is_critical && (wait = wb_rate_take_turn(&p->rate, w)) > 0) {
        atomic_store(&w->beat, wb_clock_monotonic());
        w->take = 1;
        wb_clock_pause(wait < RATE_PAUSE ? wait : RATE_PAUSE, &p->stop);
    }
    return !(p->stop || p->is_critical) || !wb_rate_is_limited(&p->rate) || p->mode == WB_MODE_NONE;
}

static void await_others(void)
{
    int64_t until = wb_clock_monotonic() + OTHERS_WAIT;
    while (wb_suspect_others() && wb_clock_monotonic() < until)
        wb_clock_pause(OTHERS_PAUSE, NULL);
}

/* Any handler may end the process: the attempt would be the suspect's, and one that is being moved would come again. */
static void enter(wb_worker *w)
{
    if (wb_bug("suspect_beside_others"))
        return;
    if (w->has_suspect_lock) {
        await_others();
    } else if (!wb_suspect_is_last_delivery(w->pipeline, w->batch[0])) { /* that is to be gone before anybody ends it */
        wb_suspect_enter();
        w->has_entered = 1;
    }
}

static void leave_batch(wb_worker *w)
{
    if (w->has_entered)
        wb_suspect_exit();
    if (w->has_suspect_lock)
        wb_suspect_unlock();
    w->has_entered = w->has_suspect_lock = 0;
}

/* The record of a suspect's attempt must not wait for a batch that may not come, and the next suspect may
 * begin when it is gone; and without outbox nothing remembers what was handled but the acknowledgement. */
static int settle_chosen(wb_worker *w, int is_suspect, wb_error *error)
{
    if (is_suspect || w->record)
        return timed_settle(w, wb_stage_settle_for_good, error);
    return w->pipeline->outbox ? WB_OK : timed_settle(w, wb_stage_settle, error);
}

static int run_chosen(wb_worker *w, wb_error *error)
{
    int is_suspect = w->has_suspect_lock, r = WB_OK;
    if (has_turn(w)) {
        enter(w);
        r = run_batch(w, error);
    }
    wb_rate_give_turn(&w->pipeline->rate, w);
    if (r == WB_OK)
        r = settle_chosen(w, is_suspect, error);
    leave_batch(w);
    return r;
}

/* ---- a cycle ---------------------------------------------------------------------- */

static int adapt_prefetch(wb_worker *w, wb_error *error)
{
    const wb_transport_ops *ops = w->pipeline->transport_ops;
    unsigned wanted = wb_batch_prefetch(w);
    int r = WB_OK;
    if (!WB_HAS(ops, wb_transport_ops, set_prefetch) || w->refuses_more ||
        wanted == w->prefetch || (wanted > 1 && wanted < w->prefetch && wanted * 4 > w->prefetch))
        return WB_OK;
    w->prefetch = wanted;
    if ((r = ops->set_prefetch(w->transport, wanted, error)) != WB_OK)
        w->transport_broken = 1;
    return r;
}

/* For others beside what waits; less is wanted when a batch is done. */
static int make_room(wb_worker *w, wb_error *error)
{
    return wb_batch_prefetch(w) > w->prefetch ? adapt_prefetch(w, error) : WB_OK;
}

static int may_receive(const wb_worker *w)
{
    return !w->pipeline->stop || w->refuses_more;
}

/* Nothing runs: what is done and not told. */
static int settle_rest(wb_worker *w, wb_error *error)
{
    return timed_settle(w, w->record ? wb_stage_settle_for_good : wb_stage_settle, error);
}

static int run_cycle(wb_worker *w, wb_error *error)
{
    int r;
    w->lapped = wb_clock_monotonic();
    atomic_store(&w->beat, w->lapped);
    w->progressed = w->storage_lost = 0;
    if (!wb_scout_lets_receive(w)) {
        wb_batch_note_empty(w);
        wb_clock_pause(SCOUT_WAIT, &w->pipeline->stop);
        return WB_OK;
    }
    if ((r = wb_stage_connect(w, error)) != WB_OK)
        return r;
    if (!wb_batch_choose(w, w->owes_turn ? WB_BATCH_FRESH : WB_BATCH_ANY)) {
        if (may_receive(w) && ((r = make_room(w, error)) != WB_OK || (r = wb_stage_receive(w, error)) != WB_OK))
            return r;
        lap(w, WB_TIME_RECEIVE);
        if (!wb_batch_choose(w, WB_BATCH_FRESH) && !wb_batch_choose(w, WB_BATCH_ANY))
            return settle_rest(w, error);
    }
    w->owes_turn = w->batch[0]->paused_until != 0;
    if ((r = run_chosen(w, error)) != WB_OK)
        return r;
    return adapt_prefetch(w, error);
}

/* Whose turn it is to ask paces it then, and the dependency's lines tell. */
static int waits_for_server(const wb_worker *w, int result)
{
    return result == WB_NOT_CONNECTED && (w->broker.waits || w->database.waits || w->apart.server.waits);
}

/* A failure that is not a lost connection (a lock timeout, a full disk) must neither spin nor
 * be a secret. */
static void note_failure(wb_worker *w, int result, wb_error *error)
{
    wb_error ignored;
    error->result = result;
    if (result == WB_IN_DOUBT)
        wb_log_event(WB_LOG_WARNING,
                     w->pipeline->outbox ? "outcome of a commit is unknown: the deduplication record decides"
                                         : "outcome of a commit is unknown",
                     { "endpoint", w->pipeline->endpoint }, { "reason", error->text });
    if (w->transport_broken || w->storage_broken || w->storage_lost || result == WB_FATAL ||
        w->pipeline->stop || waits_for_server(w, result))
        return;
    if (result != WB_ABORT)
        wb_pace_complain(w, "cannot go on and tries again", error);
    if (adapt_prefetch(w, &ignored) == WB_OK) /* what is set aside makes room for others */
        wb_pace_back_off(w);
}

static int work(wb_worker *w, wb_error *error)
{
    if (w->pipeline->is_critical)
        return wb_error_set(error, WB_FATAL, WB_CAUSE_OTHER, 0, "a circuit breaker opened: a critical error");
    int r = run_cycle(w, error);
    if (r != WB_OK)
        note_failure(w, r, error);
    else if (w->progressed || !w->held_count)
        wb_pace_go_on(w);
    return r;
}

/* ---- the end ---------------------------------------------------------------------- */

static int is_connected(const wb_worker *w)
{
    return w->transport && (w->storage || !w->pipeline->persistence_ops) && !w->transport_broken &&
           !w->storage_broken;
}

/* Ask for no more, so that what was handed out is handled instead of given back. */
static void refuse_more(wb_worker *w)
{
    const wb_transport_ops *ops = w->pipeline->transport_ops;
    wb_error ignored;
    if (!WB_HAS(ops, wb_transport_ops, stop_receiving))
        return;
    if (ops->stop_receiving(w->transport, &ignored) == WB_OK)
        w->refuses_more = 1;
    else
        w->transport_broken = 1;
}

static int may_go_on(const wb_worker *w, int64_t until)
{
    return is_connected(w) && wb_clock_monotonic() < until &&
           (!wb_rate_is_limited(&w->pipeline->rate) || w->pipeline->mode == WB_MODE_NONE);
}

/* Until nothing in hand can run, something fails, or the time is up. */
static void drain(wb_worker *w)
{
    wb_error error = { 0 };
    int64_t until = wb_clock_monotonic() + w->pipeline->drain_time;
    if (is_connected(w))
        refuse_more(w);
    while (may_go_on(w, until) && work(w, &error) == WB_OK && (w->progressed || wb_batch_can_run(w)))
        ;
    if (is_connected(w))
        (void)settle_rest(w, &error);
}

static void give_up(wb_worker *w)
{
    wb_log_event(WB_LOG_ERROR, "worker gives up", { "endpoint", w->pipeline->endpoint },
                 { "reason", w->error.text });
    wb_scout_end(w);
}

/* Modules may close what they have in the worker's connections, so these go last. */
static void leave(wb_worker *w)
{
    wb_hooks_worker_close(&w->pipeline->hooks, &w->kept);
    wb_stage_disconnect(w);
    wb_waiter_leave(&w->broker);
    wb_waiter_leave(&w->database);
    wb_waiter_leave(&w->apart.server);
    atomic_store(&w->ended, 1);
}

/* A handler or a hook ended the thread, in somebody's program (call.h): the transaction goes with its session,
 * and what is in hand comes back. */
static void on_exit_of_thread(void *argument)
{
    wb_worker *w = argument;
    w->gave_up = 1;
    (void)wb_error_set(&w->error, WB_FATAL, WB_CAUSE_OTHER, 0, "a module ended the worker's thread");
    wb_overtime_end(&w->overtime);
    wb_rate_give_turn(&w->pipeline->rate, w);
    leave_batch(w);
    w->storage_broken = 1;
    give_up(w);
    leave(w);
}

static void work_to_the_end(wb_worker *w)
{
    int r = wb_hooks_worker_open(&w->pipeline->hooks, &w->kept, &w->error);
    while (!w->pipeline->stop && r != WB_FATAL)
        r = work(w, &w->error);
    w->gave_up = r == WB_FATAL;
    if (w->gave_up)
        give_up(w);
    else
        drain(w);
    leave(w);
}

/* Who cancels the thread, a handler or who knows its number, would end it anywhere. */
static void *worker_main(void *argument)
{
    wb_worker *w = argument;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    wb_thread_remember(&w->own);
    pthread_cleanup_push(on_exit_of_thread, w);
    work_to_the_end(w);
    pthread_cleanup_pop(0);
    return NULL;
}

/* ---- life ------------------------------------------------------------------------- */

static void init_costs(wb_worker *w)
{
    size_t count = w->pipeline->handlers ? w->pipeline->handlers->count : 0;
    w->costs = wb_alloc((count + 1) * sizeof *w->costs);
    for (size_t i = 0; i < count; i++)
        w->costs[i] = -1;
}

void wb_worker_init(wb_worker *w, wb_pipeline *pipeline, unsigned number)
{
    memset(w, 0, sizeof *w);
    w->pipeline = pipeline;
    w->number = number;
    w->broker.dependency = &pipeline->broker;
    w->database.dependency = &pipeline->database;
    wb_apart_init(&w->apart, &pipeline->apart_server);
    atomic_store(&w->beat, wb_clock_monotonic());
    wb_arena_init(&w->arena, ARENA_BLOCK);
    wb_arena_init(&w->recovered, ARENA_BLOCK);
    pthread_mutex_init(&w->transport_lock, NULL);
    wb_overtime_init(&w->overtime);
    /* memory may be out from here on: what is there is freed then by wb_worker_free() */
    w->contexts = wb_contexts_take(pipeline->endpoint ? pipeline->endpoint : "");
    w->take = 1;
    w->held_max = pipeline->batch_max + WB_ASIDE_MAX + (pipeline->minds_sessions ? WB_CONTROLS_ASIDE_MAX : 0);
    w->slots = wb_alloc_zero(w->held_max, sizeof *w->slots);
    w->free_slots = wb_alloc_zero(w->held_max, sizeof *w->free_slots);
    w->held = wb_alloc_zero(w->held_max, sizeof *w->held);
    w->batch = wb_alloc_zero(w->held_max, sizeof *w->batch);
    w->claims = wb_alloc_zero(w->held_max, sizeof *w->claims);
    w->claimed = wb_alloc_zero(w->held_max, sizeof *w->claimed);
    w->positions = wb_alloc_zero(w->held_max, sizeof *w->positions);
    for (size_t i = 0; i < w->held_max; i++)
        w->free_slots[w->free_count++] = &w->slots[i];
    init_costs(w);
    wb_kept_init(&w->kept, pipeline->handlers, w->contexts);
}

void wb_worker_free(wb_worker *w)
{
    wb_marks_clear(w);
    wb_contexts_give_back(w->contexts);
    free(w->slots);
    free(w->free_slots);
    free(w->held);
    free(w->batch);
    free(w->claims);
    free(w->positions);
    free(w->claimed);
    free(w->costs);
    wb_kept_free(&w->kept);
    free(w->marks);
    free(w->settled);
    wb_apart_free(&w->apart);
    wb_window_free(&w->window);
    wb_buffer_free(&w->encoded);
    wb_arena_free(&w->arena);
    wb_arena_free(&w->recovered);
    pthread_mutex_destroy(&w->transport_lock);
    wb_overtime_free(&w->overtime);
}

/* What the system gives a thread follows ulimit -s, which the transports' promise to read
 * every message they get must not depend on. More than that is left as it is. */
int wb_worker_start(wb_worker *w)
{
    pthread_attr_t attributes;
    size_t size = 0;
    int code = pthread_attr_init(&attributes);
    if (code != 0)
        return code;
    (void)pthread_attr_getstacksize(&attributes, &size);
    if (size < WB_WORKER_STACK)
        code = pthread_attr_setstacksize(&attributes, WB_WORKER_STACK);
    if (code == 0)
        code = pthread_create(&w->thread, &attributes, worker_main, w);
    (void)pthread_attr_destroy(&attributes);
    return code;
}

void wb_worker_interrupt(wb_worker *w)
{
    pthread_mutex_lock(&w->transport_lock);
    if (w->transport)
        w->pipeline->transport_ops->interrupt(w->transport);
    pthread_mutex_unlock(&w->transport_lock);
}

int wb_worker_is_alive(const wb_worker *w, int64_t now)
{
    return wb_overtime_since(&w->overtime) ? !wb_overtime_is_beyond(&w->overtime, w->pipeline, now)
                                           : now - atomic_load(&w->beat) < WB_STUCK_AFTER;
}

static void release_prefetched(wb_worker *w, int64_t since, int64_t now)
{
    const wb_transport_ops *ops = w->pipeline->transport_ops;
    if (since == w->released_for || now - since < RELEASE_AFTER ||
        !WB_HAS(ops, wb_transport_ops, release_prefetched))
        return;
    w->released_for = since;
    pthread_mutex_lock(&w->transport_lock);
    if (w->transport)
        ops->release_prefetched(w->transport);
    pthread_mutex_unlock(&w->transport_lock);
}

void wb_worker_look_after(wb_worker *w)
{
    int64_t since = wb_overtime_since(&w->overtime), now = wb_clock_monotonic();
    wb_overtime_look(&w->overtime, w->pipeline, w->number, now);
    if (since)
        release_prefetched(w, since, now);
}

void wb_worker_join(wb_worker *w)
{
    pthread_join(w->thread, NULL);
}
