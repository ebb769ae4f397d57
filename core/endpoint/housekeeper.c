/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/endpoint/housekeeper.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/message/ids.h"
#include "core/pipeline/stages.h"
#include "core/recover/attempts.h"

/* Rows a round sweeps at most, and so many that stayed in the round before beside them: they come
 * first again and must not keep the rest from being found. */
#define SWEEP_LIMIT 1000
#define STUCK_MAX 10000
/* Records a step of the clean-up deletes at most. */
#define CLEAN_UP_STEP 1000
/* A record of attempts that nobody has touched for so long is no use: whatever ends a process
 * time and again does it sooner. */
#define ATTEMPTS_KEPT (24 * 3600 * WB_SECOND)
/* The clean-up works for a tenth of the time, so that nobody notices it. */
#define PACE 9

typedef struct {
    wb_housekeeper *keeper;
    wb_transport_session *transport;
    wb_storage_session *storage;
    wb_arena arena;
    size_t limit; /* rows to visit at most */
    uint64_t *found;
    size_t found_count;
    wb_mark *marks;
    size_t mark_count;
    size_t stuck;
    wb_error error;
} housekeeping;

static int was_seen(const wb_housekeeper *keeper, uint64_t batch)
{
    for (size_t i = 0; i < keeper->seen_count; i++)
        if (keeper->seen[i] == batch)
            return 1;
    return 0;
}

static size_t count_operations(const wb_operation_group *groups)
{
    size_t count = 0;
    for (; groups; groups = groups->next)
        count += groups->operations.count;
    return count;
}

static int dispatch(housekeeping *round, const wb_operation_group *groups)
{
    const wb_pipeline *p = round->keeper->pipeline;
    size_t count = count_operations(groups), used = 0;
    wb_operation **window = wb_arena_alloc(&round->arena, count * sizeof *window);
    for (; groups; groups = groups->next)
        for (wb_operation_node *node = groups->operations.first; node; node = node->next)
            window[used++] = &node->operation;
    return p->transport_ops->send(round->transport, window, count,
                                  wb_clock_monotonic() + WB_DISPATCH_TIMEOUT, &round->error);
}

/* What could not be dispatched stays in the row, and is tried again in the next round. */
static void add_mark(housekeeping *round, uint64_t batch, const wb_operation_group *groups)
{
    wb_buffer encoded = { 0 };
    size_t remaining = 0;
    wb_mark *mark = &round->marks[round->mark_count++];

    wb_operations_encode_start(&encoded);
    for (; groups; groups = groups->next)
        remaining += wb_operations_encode_group(&encoded, groups->cause, groups->cause_size,
                                                &groups->operations);
    *mark = (wb_mark){ batch, NULL, 0 };
    if (remaining) {
        round->stuck++;
        mark->remaining = wb_arena_copy(&round->arena, encoded.data, encoded.size);
        mark->remaining_size = encoded.size;
        wb_log_event(WB_LOG_WARNING, "pending operations cannot be dispatched",
                     { "endpoint", round->keeper->pipeline->endpoint });
    }
    wb_buffer_free(&encoded);
}

static int visit(void *argument, const wb_pending *pending)
{
    housekeeping *round = argument;
    int failed;
    round->found[round->found_count++] = pending->batch;
    if (wb_attempts_is_older(pending->operations, pending->operations_size,
                             wb_batch_number_at(wb_clock_wall() - ATTEMPTS_KEPT)))
        round->marks[round->mark_count++] = (wb_mark){ pending->batch, NULL, 0 };
    if (!was_seen(round->keeper, pending->batch))
        return WB_OK;
    const char *bytes = wb_arena_copy(&round->arena, pending->operations, pending->operations_size);
    wb_operation_group *groups =
        wb_operations_decode(bytes, pending->operations_size, &round->arena, &failed);
    round->stuck += failed != 0;
    if (failed)
        return WB_OK; /* a record of attempts, or for a version that can read it */
    int r = dispatch(round, groups);
    if (r != WB_OK)
        return r;
    add_mark(round, pending->batch, groups);
    return WB_OK;
}

static int sweep(housekeeping *round)
{
    wb_housekeeper *keeper = round->keeper;
    const wb_pipeline *p = keeper->pipeline;
    uint64_t before = wb_batch_number_at(wb_clock_wall() - keeper->sweep_after);
    int r = p->persistence_ops->sweep(round->storage, before, round->limit, visit, round, &round->error);

    if (r == WB_OK && round->mark_count) {
        char count[24];
        (void)snprintf(count, sizeof count, "%zu", round->mark_count);
        wb_log_event(WB_LOG_INFO, "swept pending operations", { "endpoint", p->endpoint },
                     { "rows", count });
        r = p->persistence_ops->mark(round->storage, round->marks, round->mark_count, &round->error);
    }
    free(keeper->seen);
    keeper->seen = round->found;
    keeper->seen_count = round->found_count;
    keeper->stuck = round->stuck;
    round->found = NULL;
    return r;
}

static int clean_up(housekeeping *round)
{
    const wb_housekeeper *keeper = round->keeper;
    const wb_pipeline *p = keeper->pipeline;
    uint64_t before = wb_batch_number_at(wb_clock_wall() - keeper->retention);
    size_t deleted = CLEAN_UP_STEP;
    int r = WB_OK;

    while (r == WB_OK && deleted == CLEAN_UP_STEP && !p->stop) {
        int64_t started = wb_clock_monotonic();
        r = p->persistence_ops->clean_up(round->storage, before, CLEAN_UP_STEP, &deleted, &round->error);
        if (deleted == CLEAN_UP_STEP)
            wb_clock_pause(PACE * (wb_clock_monotonic() - started), &p->stop);
    }
    return r;
}

static int connect_and_work(housekeeping *round)
{
    const wb_pipeline *p = round->keeper->pipeline;
    int r;
    if ((r = p->persistence_ops->open(p->persistence, &round->storage, &round->error)) != WB_OK)
        return r;
    if ((r = p->transport_ops->open(p->transport, WB_SESSION_SEND, 0, &round->transport,
                                    &round->error)) != WB_OK)
        return r;
    if ((r = sweep(round)) != WB_OK)
        return r;
    return clean_up(round);
}

/* A failing round never stops the endpoint: the next one tries again. */
void wb_housekeeper_round(wb_housekeeper *keeper)
{
    const wb_pipeline *p = keeper->pipeline;
    housekeeping round = {
        .keeper = keeper,
        .limit = SWEEP_LIMIT + (keeper->stuck < STUCK_MAX ? keeper->stuck : STUCK_MAX),
    };
    wb_arena_init(&round.arena, 64 * 1024);
    round.found = wb_alloc(round.limit * sizeof *round.found);
    round.marks = wb_alloc(round.limit * sizeof *round.marks);
    int r = connect_and_work(&round);
    if (r != WB_OK)
        wb_log_event(WB_LOG_WARNING, "housekeeping failed; it is tried again", { "endpoint", p->endpoint },
                     { "class", wb_result_name(r) }, { "reason", round.error.text });
    if (round.storage)
        p->persistence_ops->close(round.storage);
    if (round.transport)
        p->transport_ops->close(round.transport);
    free(round.found);
    free(round.marks);
    wb_arena_free(&round.arena);
}

/* @return whether to go on. */
static int wait_for_round(wb_housekeeper *keeper)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t nanoseconds = until.tv_nsec + keeper->interval % WB_SECOND;
    until.tv_sec += (time_t)(keeper->interval / WB_SECOND + nanoseconds / WB_SECOND);
    until.tv_nsec = (long)(nanoseconds % WB_SECOND);
    pthread_mutex_lock(&keeper->lock);
    while (!keeper->pipeline->stop &&
           pthread_cond_timedwait(&keeper->wake, &keeper->lock, &until) != ETIMEDOUT)
        ;
    pthread_mutex_unlock(&keeper->lock);
    return !keeper->pipeline->stop;
}

static void *housekeeper_main(void *argument)
{
    wb_housekeeper *keeper = argument;
    while (wait_for_round(keeper))
        wb_housekeeper_round(keeper);
    atomic_store(&keeper->running, 0);
    return NULL;
}

int wb_housekeeper_start(wb_housekeeper *keeper)
{
    pthread_condattr_t attributes;
    pthread_mutex_init(&keeper->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&keeper->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    keeper->seen = NULL;
    keeper->seen_count = 0;
    keeper->stuck = 0;
    atomic_store(&keeper->running, 1);
    int code = pthread_create(&keeper->thread, NULL, housekeeper_main, keeper);
    if (code == 0)
        return 0;
    atomic_store(&keeper->running, 0);
    pthread_mutex_destroy(&keeper->lock);
    pthread_cond_destroy(&keeper->wake);
    return code;
}

void wb_housekeeper_wake(wb_housekeeper *keeper)
{
    pthread_mutex_lock(&keeper->lock);
    pthread_cond_signal(&keeper->wake);
    pthread_mutex_unlock(&keeper->lock);
}

int wb_housekeeper_has_ended(const wb_housekeeper *keeper)
{
    return !atomic_load(&keeper->running);
}

void wb_housekeeper_stop(wb_housekeeper *keeper)
{
    wb_housekeeper_wake(keeper);
    pthread_join(keeper->thread, NULL);
    free(keeper->seen);
    pthread_mutex_destroy(&keeper->lock);
    pthread_cond_destroy(&keeper->wake);
}
