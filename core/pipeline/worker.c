/* SPDX-License-Identifier: Apache-2.0
 *
 * The worker: the stages in their order, and what happens when one fails.
 */
#include "config.h"

#include "core/pipeline/worker.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/base/log.h"
#include "core/pipeline/misbehave.h"
#include "core/pipeline/stages.h"

#define FIRST_TAKE 8
#define ARENA_BLOCK (256 * 1024)

void wb_worker_init(wb_worker *w, wb_pipeline *pipeline, unsigned number)
{
    memset(w, 0, sizeof *w);
    w->pipeline = pipeline;
    w->number = number;
    w->held_max = pipeline->batch_max;
    w->held = wb_alloc_zero(w->held_max, sizeof *w->held);
    w->claims = wb_alloc_zero(w->held_max, sizeof *w->claims);
    w->claimed = wb_alloc_zero(w->held_max, sizeof *w->claimed);
    w->take = pipeline->batch_max < FIRST_TAKE ? pipeline->batch_max : FIRST_TAKE;
    wb_arena_init(&w->arena, ARENA_BLOCK);
    wb_arena_init(&w->recovered, ARENA_BLOCK);
    pthread_mutex_init(&w->transport_lock, NULL);
}

void wb_worker_free(wb_worker *w)
{
    for (size_t i = 0; i < w->mark_count; i++)
        free((void *)(uintptr_t)w->marks[i].remaining);
    free(w->held);
    free(w->claims);
    free(w->claimed);
    free(w->window);
    free(w->marks);
    free(w->settled);
    wb_buffer_free(&w->encoded);
    wb_arena_free(&w->arena);
    wb_arena_free(&w->recovered);
    pthread_mutex_destroy(&w->transport_lock);
}

static int commit_transport(wb_worker *w)
{
    int r;
    if (!wb_has_transport_transaction(w))
        return WB_OK;
    wb_crash_point("before_transport_commit");
    r = w->pipeline->transport_ops->commit(w->transport, &w->error);
    if (r == WB_NOT_CONNECTED || r == WB_IN_DOUBT)
        w->transport_broken = 1;
    if (r == WB_OK)
        wb_crash_point("after_transport_commit");
    return r;
}

/* Phase 1: one database transaction. What fails here after the claim may be the fault of a
 * message. */
static int run_transaction(wb_worker *w, size_t *ret_culprit)
{
    int r;
    *ret_culprit = WB_NOBODY;
    if ((r = wb_stage_handle(w, ret_culprit)) != WB_OK)
        return r;
    if (wb_has_transport_transaction(w) && (r = wb_stage_dispatch_inside(w, ret_culprit)) != WB_OK)
        return r;
    return wb_stage_commit(w, ret_culprit);
}

/* Phase 2: no database transaction. What fails here is nobody's fault: the messages run
 * again, and their claims say that they are duplicates. */
static int run_dispatch(wb_worker *w)
{
    int r;
    wb_misbehave_after_commit(w);
    if (wb_has_transport_transaction(w))
        return commit_transport(w);
    /* What was committed before goes out before, so that a key keeps its order. */
    if ((r = wb_stage_resume(w)) != WB_OK)
        return r;
    return wb_stage_dispatch(w);
}

static int adapt_prefetch(wb_worker *w)
{
    const wb_transport_ops *ops = w->pipeline->transport_ops;
    unsigned wanted = 2 * w->take;
    int r = WB_OK;
    if (!WB_HAS(ops, wb_transport_ops, set_prefetch) ||
        (wanted <= w->prefetch && wanted * 4 > w->prefetch))
        return WB_OK;
    w->prefetch = wanted;
    if ((r = ops->set_prefetch(w->transport, wanted, &w->error)) != WB_OK)
        w->transport_broken = 1;
    return r;
}

/* @return WB_NOT_CONNECTED when undoing showed that a session is lost, else `result`; a commit in
 * doubt stays one, so that it is reported as what it is. */
static int undo(wb_worker *w, int result)
{
    wb_error reason = w->error;
    int r = wb_stage_rollback(w);
    if (w->transaction_ended && w->pipeline->outbox && r == WB_OK)
        wb_repair_ended(w);
    w->error = reason;
    return r == WB_OK || result == WB_IN_DOUBT ? result : WB_NOT_CONNECTED;
}

static int run_stages(wb_worker *w)
{
    size_t culprit;
    int r;

    if ((r = wb_stage_suspect(w)) == WB_OK && (r = wb_stage_claim(w)) == WB_OK) {
        r = run_transaction(w, &culprit);
        if (r != WB_OK)
            return wb_isolate(w, undo(w, r), culprit);
        r = run_dispatch(w);
    }
    if (r != WB_OK) {
        r = undo(w, r);
        wb_batch_reset(w);
        wb_halve_after_abort(w, r);
        return r;
    }
    wb_batch_finish(w);
    return WB_OK;
}

static int run_batch(wb_worker *w)
{
    wb_batch_start(w);
    if (!wb_item_is_suspect(w, &w->held[0]))
        return run_stages(w);
    pthread_mutex_lock(&w->pipeline->suspect_lock);
    int r = run_stages(w);
    if (r == WB_OK) /* the record of the attempt must not wait for a batch that may not come */
        r = wb_stage_settle(w);
    pthread_mutex_unlock(&w->pipeline->suspect_lock);
    return r;
}

static int run_cycle(wb_worker *w)
{
    int r;
    if ((r = wb_worker_connect(w)) != WB_OK)
        return r;
    if ((r = wb_stage_receive(w)) != WB_OK)
        return r;
    if (w->held_count && (r = run_batch(w)) != WB_OK)
        return r;
    if (!w->pipeline->outbox && (r = wb_stage_settle(w)) != WB_OK)
        return r;
    return adapt_prefetch(w);
}

/* All is well again: forget the back-off, and say so if we complained. */
static void note_success(wb_worker *w)
{
    if (w->complained)
        wb_log_event(WB_LOG_INFO, "at work again", { "endpoint", w->pipeline->endpoint });
    w->complained = 0;
    w->pause = 0;
}

/* A failure that is not a lost connection (a lock timeout, a full disk) must neither spin nor
 * be a secret. */
static void note_failure(wb_worker *w, int result)
{
    w->error.result = result;
    if (result == WB_IN_DOUBT)
        wb_log_event(WB_LOG_WARNING, "outcome of a commit is unknown: the deduplication record decides",
                     { "endpoint", w->pipeline->endpoint }, { "reason", w->error.text });
    if (w->transport_broken || w->storage_broken || w->pipeline->stop)
        return;
    if (result != WB_ABORT)
        wb_worker_complain(w, "cannot go on and tries again");
    wb_clock_pause(10 * WB_MILLISECOND, &w->pipeline->stop);
}

static int is_connected(const wb_worker *w)
{
    return w->transport && (w->storage || !w->pipeline->persistence_ops) && !w->transport_broken &&
           !w->storage_broken;
}

/* With mode none nobody delivers again what is in hand. */
static void finish_held(wb_worker *w)
{
    int r = WB_OK;
    while (w->pipeline->mode == WB_MODE_NONE && w->held_count && r == WB_OK && is_connected(w))
        r = run_batch(w);
}

static void *worker_main(void *argument)
{
    wb_worker *w = argument;
    wb_pipeline *p = w->pipeline;
    int r = WB_OK;

    while (!p->stop && r != WB_FATAL) {
        r = run_cycle(w);
        if (r == WB_OK)
            note_success(w);
        else
            note_failure(w, r);
    }
    w->gave_up = r == WB_FATAL;
    if (w->gave_up)
        wb_log_event(WB_LOG_ERROR, "worker gives up", { "endpoint", p->endpoint },
                     { "reason", w->error.text });
    else
        finish_held(w);
    if (!w->gave_up && is_connected(w))
        (void)wb_stage_settle(w);
    wb_worker_disconnect(w);
    atomic_store(&w->ended, 1);
    return NULL;
}

int wb_worker_start(wb_worker *w)
{
    return pthread_create(&w->thread, NULL, worker_main, w);
}

void wb_worker_interrupt(wb_worker *w)
{
    pthread_mutex_lock(&w->transport_lock);
    if (w->transport)
        w->pipeline->transport_ops->interrupt(w->transport);
    pthread_mutex_unlock(&w->transport_lock);
}

void wb_worker_join(wb_worker *w)
{
    pthread_join(w->thread, NULL);
}
