/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/pipeline/pipeline.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/arena.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/message/ids.h"

void wb_pipeline_init(wb_pipeline *p)
{
    p->suspicions = wb_alloc(sizeof *p->suspicions);
    wb_suspicions_init(p->suspicions);
}

void wb_pipeline_free(wb_pipeline *p)
{
    if (p->suspicions)
        wb_suspicions_free(p->suspicions);
    free(p->suspicions);
    p->suspicions = NULL;
}

int64_t wb_pipeline_now(const wb_pipeline *p)
{
    int64_t offset = atomic_load(&p->time_offset);
    return offset ? wb_clock_steady() + offset : wb_clock_wall();
}

int wb_pipeline_ask_time(wb_pipeline *p, wb_storage_session *storage, wb_error *error)
{
    int64_t wall;
    if (!WB_HAS(p->persistence_ops, wb_persistence_ops, clock))
        return WB_OK;
    int r = p->persistence_ops->clock(storage, &wall, error);
    if (r != WB_OK)
        return r;
    int64_t offset = wall - wb_clock_steady();
    atomic_store(&p->time_offset, offset ? offset : 1);
    return WB_OK;
}

uint64_t wb_pipeline_batch_number(const wb_pipeline *p)
{
    return wb_batch_number(wb_pipeline_now(p));
}

int wb_pipeline_store_row(const wb_pipeline *p, wb_storage_session *storage, uint64_t number,
                          const void *bytes, size_t size, wb_error *error)
{
    const wb_persistence_ops *ops = p->persistence_ops;
    wb_begin begin = { .struct_size = sizeof begin, .batch = number };
    wb_commit commit = { .struct_size = sizeof commit,
                         .batch = number,
                         .operations = bytes,
                         .operations_size = size,
                         .failed_item = SIZE_MAX };
    int r = ops->begin(storage, &begin, error);
    return r == WB_OK ? ops->commit(storage, &commit, error) : r;
}

/* A row is swept once it is older than sweep_after: so its number lies that much before the
 * time it is due. */
static uint64_t number_due_in(const wb_pipeline *p, int64_t pause)
{
    return wb_batch_number(wb_pipeline_now(p) + pause - p->sweep_after);
}

int wb_pipeline_park(const wb_pipeline *p, wb_storage_session *storage, const wb_parked *parked,
                     uint64_t *ret_number, wb_error *error)
{
    wb_buffer bytes = { 0 };
    int64_t pause = wb_parked_pause(p->park_time, parked->tries);
    uint64_t number = number_due_in(p, pause);
    int level = parked->tries == 1 ? WB_LOG_WARNING : WB_LOG_DEBUG;
    char count[12], seconds[24];
    wb_parked_encode(&bytes, parked);
    int r = wb_pipeline_store_row(p, storage, number, bytes.data, bytes.size, error);
    wb_buffer_free(&bytes);
    if (r != WB_OK)
        return r;
    if (ret_number)
        *ret_number = number;
    (void)snprintf(count, sizeof count, "%" PRIu32, parked->tries);
    (void)snprintf(seconds, sizeof seconds, "%" PRId64, pause / WB_SECOND);
    wb_log_event(level, "operations parked: they cannot be dispatched", { "endpoint", p->endpoint },
                 { "tries", count }, { "next_try_in_s", seconds }, { "reason", parked->reason });
    return WB_OK;
}
