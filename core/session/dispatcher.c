/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/session/dispatcher.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/thread.h"
#include "core/plugin/instance.h"

/* Operations of one window. */
#define WINDOW_MAX 1000
/* Bytes that wait here at most. */
#define SIZE_MAX_HELD ((size_t)64 << 20)
/* A window that is not confirmed by then is tried again, or is the sweeper's. */
#define PATIENCE (10 * WB_SECOND)
/* Marks that fail so often keep others no longer. */
#define MARK_TRIES 5
#define PAUSE_MIN (50 * WB_MILLISECOND)
#define PAUSE_MAX (5 * WB_SECOND)
#define PARCEL_BLOCK 4096

wb_parcel *wb_parcel_new(void)
{
    wb_parcel *parcel = wb_alloc_zero(1, sizeof *parcel);
    wb_arena_init(&parcel->arena, PARCEL_BLOCK);
    return parcel;
}

void wb_parcel_free(wb_parcel *parcel)
{
    if (!parcel)
        return;
    wb_arena_free(&parcel->arena);
    free(parcel);
}

static wb_parcel *drop(wb_parcel *parcel)
{
    wb_parcel *next = parcel->next;
    wb_parcel_free(parcel);
    return next;
}

/* ---- the queue ------------------------------------------------------------------------- */

void wb_dispatcher_give(wb_dispatcher *d, wb_parcel *parcel)
{
    parcel->next = NULL;
    pthread_mutex_lock(&d->lock);
    int has_room = d->count < WB_DISPATCHER_PARCELS_MAX && d->size + parcel->size <= SIZE_MAX_HELD;
    if (has_room) {
        *(d->first ? &d->last->next : &d->first) = parcel;
        d->last = parcel;
        d->count++;
        d->size += parcel->size;
        pthread_cond_signal(&d->changed);
    }
    pthread_mutex_unlock(&d->lock);
    if (!has_room)
        wb_parcel_free(parcel);
}

/* As many as make a window, in their order. Waits for the first. @return 0: it is to end. */
static int take(wb_dispatcher *d)
{
    wb_parcel **at = &d->hand;
    size_t operations = 0;
    pthread_mutex_lock(&d->lock);
    d->is_busy = 0;
    while (!d->first && !d->is_stopping) {
        pthread_cond_broadcast(&d->changed); /* somebody may wait for that */
        pthread_cond_wait(&d->changed, &d->lock);
    }
    while (d->first && (operations == 0 || operations + d->first->operations.count <= WINDOW_MAX)) {
        wb_parcel *parcel = d->first;
        d->first = parcel->next;
        d->count--;
        d->size -= parcel->size;
        operations += parcel->operations.count;
        *at = parcel;
        at = &parcel->next;
        parcel->next = NULL;
    }
    d->is_busy = d->hand != NULL;
    pthread_mutex_unlock(&d->lock);
    return d->hand != NULL;
}

/* ---- connections ----------------------------------------------------------------------- */

static void close_outlet(wb_dispatcher *d)
{
    if (d->outlet.session)
        d->pipeline->transport_ops->close(d->outlet.session);
    d->outlet.session = NULL;
}

static void close_storage(wb_dispatcher *d)
{
    if (d->storage)
        d->pipeline->persistence_ops->close(d->storage);
    d->storage = NULL;
}

static int open_outlet(wb_dispatcher *d, wb_error *error)
{
    const wb_pipeline *p = d->pipeline;
    if (d->outlet.session)
        return WB_OK;
    d->outlet = (wb_outlet){ .pipeline = d->pipeline };
    int r = wb_transport_open(p->transport_ops, p->transport, WB_SESSION_SEND, 0, &d->outlet.session, error);
    wb_waiter_note(&d->broker, r, error, wb_clock_monotonic());
    return r;
}

static int open_storage(wb_dispatcher *d, wb_error *error)
{
    const wb_pipeline *p = d->pipeline;
    if (d->storage)
        return WB_OK;
    int r = wb_persistence_open(p->persistence_ops, p->persistence, &d->storage, error);
    wb_waiter_note(&d->database, r, error, wb_clock_monotonic());
    return r;
}

/* ---- a round --------------------------------------------------------------------------- */

static int is_out(const wb_parcel *parcel)
{
    for (const wb_operation_node *node = parcel->operations.first; node; node = node->next)
        if (node->operation.result != WB_OK)
            return 0;
    return 1;
}

static void fill_window(wb_dispatcher *d)
{
    wb_arena_reset(&d->arena);
    wb_window_clear(&d->window, &d->arena);
    for (const wb_parcel *parcel = d->hand; parcel; parcel = parcel->next)
        wb_window_add_list(&d->window, &parcel->operations);
    wb_window_keep_undone(&d->window);
}

static void add_mark(wb_dispatcher *d, uint64_t batch)
{
    if (d->mark_count == d->mark_max) {
        const size_t most = d->mark_max ? 2 * d->mark_max : 64;
        d->marks = wb_realloc(d->marks, most * sizeof *d->marks);
        d->mark_max = most; /* not before: this is where it may be left for want of memory */
    }
    d->marks[d->mark_count++] = (wb_mark){ batch, NULL, 0 };
}

static void log_refused(const wb_dispatcher *d, const wb_parcel *parcel)
{
    char reason[1200];
    wb_describe_refusal(wb_find_refused(&parcel->operations), reason, sizeof reason);
    wb_log_event(WB_LOG_WARNING, "what a session sent is refused: the sweeper tries it again",
                 { "endpoint", d->pipeline->endpoint }, { "reason", reason });
}

/* Of what was refused the rest may be out: the row shrinks to what is not. If that fails more is sent
 * once more. */
static void leave_refused(wb_dispatcher *d, const wb_parcel *parcel)
{
    wb_error ignored;
    wb_operation_group group = { parcel->id, parcel->id_size, parcel->operations, NULL };
    wb_mark rest = wb_groups_mark(parcel->batch, &group, &d->bytes);
    log_refused(d, parcel);
    if (d->storage)
        (void)d->pipeline->persistence_ops->mark(d->storage, &rest, 1, &ignored);
}

/* What others may have swept before it is confirmed is theirs. */
static int is_too_old(const wb_dispatcher *d, const wb_parcel *parcel)
{
    return wb_clock_monotonic() - parcel->numbered > d->pipeline->sweep_after / 4 * 3;
}

/* Also what has waited here while those before it were tried, or for a connection: the broker may be back by now. */
static void forget_old(wb_dispatcher *d)
{
    wb_parcel **at = &d->hand;
    while (*at) {
        if (is_too_old(d, *at))
            *at = drop(*at);
        else
            at = &(*at)->next;
    }
}

/* What is sent is marked, what is refused is left to the sweeper, and the rest is tried again. */
static void conclude(wb_dispatcher *d)
{
    wb_parcel **at = &d->hand;
    while (*at) {
        int refused = wb_find_refused(&(*at)->operations) != NULL;
        int sent = is_out(*at) || wb_bug("session_marked_unsent") || (refused && wb_bug("session_refused_marked"));
        if (sent)
            add_mark(d, (*at)->batch);
        if (refused)
            leave_refused(d, *at);
        if (sent || refused || is_too_old(d, *at))
            *at = drop(*at);
        else
            at = &(*at)->next;
    }
}

static int mark(wb_dispatcher *d, wb_error *error)
{
    if (!d->mark_count)
        return WB_OK;
    wb_crash_point("session_before_mark");
    int r = d->pipeline->persistence_ops->mark(d->storage, d->marks, d->mark_count, error);
    if (r == WB_OK) {
        d->mark_count = 0;
        wb_crash_point("session_after_mark");
    } else if (r == WB_NOT_CONNECTED || r == WB_IN_DOUBT) {
        close_storage(d);
    }
    return r;
}

/* A bug that the crash suite must catch. */
static void mark_all(wb_dispatcher *d)
{
    wb_error ignored;
    for (const wb_parcel *parcel = d->hand; parcel; parcel = parcel->next)
        add_mark(d, parcel->batch);
    (void)mark(d, &ignored);
}

/* When the sweeper may send the first of them itself. */
static int64_t choose_end(const wb_dispatcher *d)
{
    int64_t end = wb_clock_monotonic() + PATIENCE;
    for (const wb_parcel *parcel = d->hand; parcel; parcel = parcel->next)
        if (parcel->numbered + d->pipeline->sweep_after < end)
            end = parcel->numbered + d->pipeline->sweep_after;
    return end;
}

static int send(wb_dispatcher *d, wb_error *error)
{
    fill_window(d);
    if (!d->window.count)
        return WB_OK;
    if (wb_bug("mark_before_confirm"))
        mark_all(d);
    d->outlet.storage = d->storage;
    d->outlet.storage_failed = 0;
    d->outlet.patience = PATIENCE;
    d->outlet.until = choose_end(d);
    wb_crash_point("session_before_dispatch");
    int r = wb_window_send(&d->window, &d->outlet, error);
    wb_crash_point("session_after_dispatch");
    if (d->outlet.storage_failed)
        close_storage(d);
    else if (r != WB_OK && r != WB_IN_DOUBT && r != WB_RETRY)
        close_outlet(d);
    return r;
}

/* The connections that a round needs are opened in its course; marks go when there are some. */
static int run_round(wb_dispatcher *d, wb_error *error)
{
    int r = open_storage(d, error);
    int sent = r == WB_OK && d->hand ? open_outlet(d, error) : r;
    forget_old(d);
    if (r != WB_OK)
        return r;
    if (sent == WB_OK) {
        sent = send(d, error);
        conclude(d);
    }
    r = d->storage ? mark(d, error) : WB_OK;
    return sent != WB_OK ? sent : r;
}

static void back_off(wb_dispatcher *d)
{
    d->pause = d->pause ? (d->pause < PAUSE_MAX / 2 ? 2 * d->pause : PAUSE_MAX) : PAUSE_MIN;
    wb_clock_pause(d->pause, &d->is_stopping); /* sessions go on when the endpoint's workers stop */
}

/* What is not marked is sent once more, with the same id. */
static void forget(wb_dispatcher *d)
{
    while (d->hand)
        d->hand = drop(d->hand);
    d->mark_count = 0;
}

static void dispatch(void *argument)
{
    wb_dispatcher *d = argument;
    wb_error error = { 0 };
    unsigned failures = 0; /* of marks alone */
    while (d->hand || d->mark_count) {
        int r = run_round(d, &error);
        if (r == WB_OK)
            d->pause = 0;
        if (!d->hand && !d->mark_count)
            return;
        if (!d->hand && ++failures == MARK_TRIES)
            break;
        if (d->is_stopping && r != WB_OK)
            break;
        back_off(d);
    }
    forget(d);
}

static void *dispatcher_main(void *argument)
{
    wb_dispatcher *d = argument;
    while (take(d))
        if (wb_memory_try(dispatch, d) < 0) {
            forget(d);
            back_off(d);
        }
    close_outlet(d);
    close_storage(d);
    wb_waiter_leave(&d->broker);
    wb_waiter_leave(&d->database);
    return NULL;
}

/* ---- start and stop ---------------------------------------------------------------------- */

/* Signals are the program's. */
static int start_thread(wb_dispatcher *d)
{
    sigset_t before;
    wb_thread_block(&before);
    int code = pthread_create(&d->thread, NULL, dispatcher_main, d);
    wb_thread_unblock(&before);
    return code;
}

int wb_dispatcher_start(wb_dispatcher *d, wb_pipeline *pipeline)
{
    pthread_condattr_t attributes;
    *d = (wb_dispatcher){ .pipeline = pipeline,
                          .broker = { .dependency = &pipeline->broker },
                          .database = { .dependency = &pipeline->database } };
    pthread_mutex_init(&d->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&d->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    wb_arena_init(&d->arena, 64 * 1024);
    int code = start_thread(d);
    d->is_started = code == 0;
    return code;
}

static void wait_until_idle(wb_dispatcher *d, int64_t patience)
{
    const int64_t until = wb_clock_monotonic() + patience;
    const struct timespec at = { .tv_sec = until / WB_SECOND, .tv_nsec = until % WB_SECOND };
    int code = 0;
    while ((d->first || d->is_busy) && code == 0)
        code = pthread_cond_timedwait(&d->changed, &d->lock, &at);
}

static void join(wb_dispatcher *d, int64_t patience)
{
    pthread_mutex_lock(&d->lock);
    wait_until_idle(d, patience);
    d->is_stopping = 1;
    while (d->first) {
        wb_parcel *parcel = d->first;
        d->first = parcel->next;
        wb_parcel_free(parcel);
    }
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
    pthread_join(d->thread, NULL);
}

void wb_dispatcher_stop(wb_dispatcher *d, int64_t patience)
{
    if (d->is_started)
        join(d, patience);
    wb_window_free(&d->window);
    wb_arena_free(&d->arena);
    wb_buffer_free(&d->bytes);
    free(d->marks);
    pthread_cond_destroy(&d->changed);
    pthread_mutex_destroy(&d->lock);
}
