/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/pipeline/pipeline.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/base/clock.h"
#include "core/base/crash.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/message/ids.h"
#include "core/recover/retry_copy.h"

static int64_t now_of(const void *clock)
{
    return wb_bug("delay_by_host") ? wb_clock_wall() : wb_pipeline_now(clock);
}

void wb_pipeline_init(wb_pipeline *p)
{
    p->suspicions = wb_alloc(sizeof *p->suspicions);
    wb_suspicions_init(p->suspicions);
    wb_underway_init(&p->underway);
    wb_alarm_init(&p->alarm);
    p->store_breaker.what = "storing delayed messages";
    p->fetch_breaker.what = "fetching delayed messages that are due";
    p->dispatch_breaker.what = "sending delayed messages that are due";
    p->origin.now = now_of;
    p->origin.clock = p;
    wb_dependency_init(&p->broker, WB_DEPENDENCY_BROKER);
    wb_dependency_init(&p->database, WB_DEPENDENCY_DATABASE);
    wb_dependency_init(&p->apart_server, WB_DEPENDENCY_APART);
}

void wb_pipeline_free(wb_pipeline *p)
{
    if (!p->suspicions)
        return;
    wb_suspicions_free(p->suspicions);
    free(p->suspicions);
    p->suspicions = NULL;
    wb_underway_free(&p->underway);
    wb_alarm_free(&p->alarm);
    wb_dependency_free(&p->broker);
    wb_dependency_free(&p->database);
    wb_dependency_free(&p->apart_server);
}

wb_recoverability wb_pipeline_policy(const wb_pipeline *p, const char *type)
{
    wb_recoverability policy = p->recoverability;
    for (size_t i = 0; type && i < p->type_policy_count; i++) {
        const wb_type_policy *own = &p->type_policies[i];
        if (strcmp(own->type, type) != 0)
            continue;
        if (own->immediate_retries >= 0)
            policy.immediate_retries = (unsigned)own->immediate_retries;
        if (own->delayed_retries >= 0)
            policy.delayed_retries = (unsigned)own->delayed_retries;
        if (own->error_queue)
            policy.error_queue = own->error_queue;
    }
    return policy;
}

int64_t wb_pipeline_retry_span(const wb_pipeline *p)
{
    const int64_t most =
        wb_recover_most_retries(p->recoverability.delayed_retries, p->type_policies, p->type_policy_count);
    return wb_recover_span(most, p->recoverability.delay_increment, p->recoverability.delay_jitter);
}

static int64_t now_by(int64_t offset)
{
    return offset ? wb_clock_steady() + offset : wb_clock_wall();
}

int64_t wb_pipeline_now(const wb_pipeline *p)
{
    return now_by(atomic_load(&p->time_offset));
}

int64_t wb_pipeline_due_now(const wb_pipeline *p)
{
    return now_by(wb_bug("delay_by_host") ? 0 : atomic_load(&p->due_offset));
}

int64_t wb_pipeline_host_ahead(const wb_pipeline *p)
{
    const int64_t offset = wb_bug("delay_by_database") || wb_bug("delay_by_host") ? 0 : atomic_load(&p->due_offset);
    if (!offset)
        return 0;
    const int64_t now = now_by(offset); /* the first: whoever is kept in between makes it late, not early */
    return wb_clock_wall() - now;
}

void wb_pipeline_set_time(wb_pipeline *p, int64_t wall, int64_t asked)
{
    int64_t most = wall - asked, least = wall - wb_clock_steady();
    atomic_store(&p->time_offset, most ? most : 1);
    atomic_store(&p->due_offset, least ? least : -1);
}

int wb_pipeline_ask_time(wb_pipeline *p, wb_storage_session *storage, wb_error *error)
{
    int64_t wall, asked = wb_clock_steady();
    if (!WB_HAS(p->persistence_ops, wb_persistence_ops, clock))
        return WB_OK;
    int r = p->persistence_ops->clock(storage, &wall, error);
    if (r == WB_OK)
        wb_pipeline_set_time(p, wall, asked);
    return r;
}

uint64_t wb_pipeline_batch_number(const wb_pipeline *p)
{
    return wb_batch_number(wb_pipeline_now(p));
}

/* With a claim: nothing is stored if somebody else has it. Its record is one of today, whenever the
 * row is due. */
static int store_row(const wb_pipeline *p, wb_storage_session *storage, const wb_pending *row,
                     wb_claim *claim, wb_error *error)
{
    const wb_persistence_ops *ops = p->persistence_ops;
    wb_begin begin = { .struct_size = sizeof begin,
                       .batch = claim ? wb_pipeline_batch_number(p) : row->batch,
                       .claims = claim,
                       .claim_count = claim ? 1 : 0 };
    wb_commit commit = { .struct_size = sizeof commit,
                         .batch = row->batch,
                         .operations = row->operations,
                         .operations_size = row->operations_size,
                         .failed_item = SIZE_MAX };
    int r = ops->begin(storage, &begin, error);
    if (r == WB_OK && claim && claim->duplicate_of)
        return ops->rollback(storage, error);
    return r == WB_OK ? ops->commit(storage, &commit, error) : r;
}

int wb_pipeline_store_row(const wb_pipeline *p, wb_storage_session *storage, uint64_t number,
                          const void *bytes, size_t size, wb_error *error)
{
    const wb_pending row = { .struct_size = sizeof row, .batch = number, .operations = bytes, .operations_size = size };
    return store_row(p, storage, &row, NULL, error);
}

/* A row is swept once it is older than sweep_after: so its number lies that much before the
 * time it is due. */
static uint64_t number_due_in(const wb_pipeline *p, int64_t pause)
{
    return wb_batch_number_drawn(wb_pipeline_now(p) + pause - p->sweep_after);
}

static void log_parked(const wb_pipeline *p, const wb_parked *parked, int64_t pause)
{
    int level = parked->tries == 1 ? WB_LOG_WARNING : WB_LOG_DEBUG;
    char count[12], seconds[24];
    (void)snprintf(count, sizeof count, "%" PRIu32, parked->tries);
    (void)snprintf(seconds, sizeof seconds, "%" PRId64, pause / WB_SECOND);
    wb_log_event(level, "operations parked: they cannot be dispatched", { "endpoint", p->endpoint },
                 { "tries", count }, { "next_try_in_s", seconds }, { "reason", parked->reason });
}

/* Two processes may read one row, and neither be able to dispatch it: who parks it claims it as a
 * message's id is claimed. What no message's id is by chance: the number is known to nobody outside
 * of the database. */
static size_t make_id(uint64_t row, char *id)
{
    static const char prefix[] = "\0parked ";
    memcpy(id, prefix, sizeof prefix - 1);
    return sizeof prefix - 1 + (size_t)snprintf(id + sizeof prefix - 1, 17, "%016" PRIx64, row);
}

int wb_pipeline_park(const wb_pipeline *p, wb_storage_session *storage, const wb_parked *parked, uint64_t row,
                     wb_parking *ret_parking, wb_error *error)
{
    char id[32];
    wb_claim claim = { .id = id, .id_size = make_id(row, id) };
    wb_buffer bytes = { 0 };
    int64_t pause = wb_parked_pause(p->park_time, parked->tries);
    wb_parked_encode(&bytes, parked);
    const wb_pending parked_row = { .struct_size = sizeof parked_row, .batch = number_due_in(p, pause),
                                    .operations = bytes.data, .operations_size = bytes.size };
    int r = store_row(p, storage, &parked_row, row && !wb_bug("parked_twice") ? &claim : NULL, error);
    wb_buffer_free(&bytes);
    if (r != WB_OK)
        return r;
    int was_done = claim.duplicate_of != 0;
    if (ret_parking)
        *ret_parking = (wb_parking){ parked_row.batch, was_done };
    if (!was_done)
        log_parked(p, parked, pause);
    return WB_OK;
}
