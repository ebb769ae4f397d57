/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/endpoint/endpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/base/clock.h"
#include "core/base/host.h"
#include "core/base/log.h"
#include "core/endpoint/housekeeper.h"
#include "core/endpoint/limits.h"
#include "core/pipeline/worker.h"

/* A worker's place: empty before its thread was started and after it was joined. */
typedef struct {
    wb_worker worker;
    int is_taken;
} seat;

struct wb_endpoint {
    const wb_endpoint_setup *setup;
    wb_host_instance transport_host;
    wb_host_instance persistence_host;
    wb_pipeline pipeline;
    seat *seats;
    unsigned seat_count; /* 0 until the endpoint was started */
    wb_housekeeper housekeeper;
    int has_housekeeper;
    int result;      /* WB_OK, or the class of `failure` while seats are empty for it */
    wb_error failure; /* why the first of those who gave up did */
};

static void fill_pipeline(wb_endpoint *e)
{
    const wb_endpoint_setup *setup = e->setup;
    const wb_endpoint_config *config = setup->config;
    wb_pipeline *p = &e->pipeline;

    p->endpoint = config->name;
    p->mode = setup->plan.mode;
    p->outbox = setup->plan.outbox;
    p->transport_ops = setup->transport_ops;
    p->persistence_ops = setup->persistence_ops;
    p->origin = wb_origin_make(config->name, !setup->plan.send_only, config->body_max);
    p->origin.bases = config->types;
    p->origin.base_count = config->type_count;
    p->handlers = &setup->handlers;
    p->recoverability.immediate_retries = (unsigned)setup->plan.immediate_retries;
    p->recoverability.error_queue = setup->info.error_queue;
    p->audit_queue = setup->info.audit_queue;
    p->type_policies = config->recoverability.types;
    p->type_policy_count = config->recoverability.type_count;
    p->batch_max = (unsigned)config->batch_max;
    p->batch_time = config->batch_time;
    p->body_max = config->body_max;
    p->ordered = (setup->transport->capabilities & WB_CAP_ORDER_PER_KEY) != 0;
    p->sweep_after = config->outbox.sweep_after;
    p->park_time = config->outbox.cleanup_interval;
    p->drain_time = config->shutdown_timeout / 2;
    wb_pipeline_init(p);
}

static int create_instances(wb_endpoint *e, wb_error *error)
{
    const wb_endpoint_setup *setup = e->setup;
    wb_pipeline *p = &e->pipeline;
    wb_host_init(&e->transport_host, setup->config->name, setup->transport->name);
    int r = p->transport_ops->create(&e->transport_host.host, &setup->info, setup->transport_config,
                                     &p->transport, error);
    if (r != WB_OK || !p->persistence_ops)
        return r;
    wb_host_init(&e->persistence_host, setup->config->name, setup->persistence->name);
    return p->persistence_ops->create(&e->persistence_host.host, &setup->info,
                                      setup->persistence_config, &p->persistence, error);
}

int wb_endpoint_create(const wb_endpoint_setup *setup, wb_endpoint **ret_endpoint, wb_error *error)
{
    wb_endpoint *e = wb_alloc_zero(1, sizeof *e);
    e->setup = setup;
    fill_pipeline(e);
    int r = create_instances(e, error);
    if (r == WB_OK)
        *ret_endpoint = e;
    else
        wb_endpoint_destroy(e);
    return r;
}

void wb_endpoint_destroy(wb_endpoint *e)
{
    if (!e)
        return;
    wb_pipeline *p = &e->pipeline;
    if (p->persistence)
        p->persistence_ops->destroy(p->persistence);
    if (p->transport)
        p->transport_ops->destroy(p->transport);
    wb_pipeline_free(p);
    free(e->seats);
    free(e);
}

int wb_endpoint_install(wb_endpoint *e, wb_error *error)
{
    const wb_pipeline *p = &e->pipeline;
    int r = p->transport_ops->install(p->transport, error);
    if (r == WB_OK && p->persistence_ops)
        r = p->persistence_ops->install(p->persistence, error);
    return r;
}

const char *wb_endpoint_schema(wb_endpoint *e)
{
    const wb_pipeline *p = &e->pipeline;
    return p->persistence_ops ? p->persistence_ops->schema(p->persistence) : NULL;
}

int wb_endpoint_verify(wb_endpoint *e, wb_error *error)
{
    const wb_pipeline *p = &e->pipeline;
    int r = p->transport_ops->verify(p->transport, error);
    if (r == WB_OK && p->persistence_ops)
        r = p->persistence_ops->verify(p->persistence, error);
    if (r == WB_OK && !e->setup->plan.send_only)
        r = wb_limits_apply(&e->pipeline, error);
    return r;
}

/* @return WB_OK, or WB_FATAL and the seat stays empty. */
static int fill_seat(wb_endpoint *e, unsigned number, wb_error *error)
{
    seat *place = &e->seats[number];
    wb_worker_init(&place->worker, &e->pipeline, number);
    int code = wb_worker_start(&place->worker);
    if (code == 0) {
        place->is_taken = 1;
        return WB_OK;
    }
    wb_worker_free(&place->worker);
    return wb_error_set(error, WB_FATAL, WB_CAUSE_OTHER, code, "could not start a worker: %s",
                        strerror(code));
}

static int fill_seats(wb_endpoint *e, wb_error *error)
{
    int r = WB_OK;
    for (unsigned i = 0; i < e->seat_count && r == WB_OK; i++)
        if (!e->seats[i].is_taken)
            r = fill_seat(e, i, error);
    return r;
}

/* Joins a thread that is about to return, or that the caller waits for. */
static void clear_seat(wb_endpoint *e, seat *place)
{
    wb_worker_join(&place->worker);
    if (place->worker.gave_up && e->result == WB_OK) {
        e->result = WB_FATAL;
        e->failure = place->worker.error;
    }
    wb_worker_free(&place->worker);
    place->is_taken = 0;
}

static int start_housekeeper(wb_endpoint *e, wb_error *error)
{
    const wb_endpoint_config *config = e->setup->config;
    e->housekeeper = (wb_housekeeper){ .pipeline = &e->pipeline,
                                       .interval = config->outbox.cleanup_interval,
                                       .retention = config->outbox.retention };
    int code = wb_housekeeper_start(&e->housekeeper);
    if (code != 0)
        return wb_error_set(error, WB_FATAL, WB_CAUSE_OTHER, code, "could not start the housekeeper: %s",
                            strerror(code));
    e->has_housekeeper = 1;
    return WB_OK;
}

int wb_endpoint_start(wb_endpoint *e, wb_error *error)
{
    char workers[12];
    int r;
    if (e->setup->plan.send_only)
        return WB_OK;
    (void)snprintf(workers, sizeof workers, "%u", (unsigned)e->setup->config->concurrency);
    wb_log_event(WB_LOG_INFO, "endpoint starts", { "endpoint", e->pipeline.endpoint },
                 { "transport", e->setup->transport->name },
                 { "persistence", e->setup->persistence ? e->setup->persistence->name : NULL },
                 { "mode", wb_mode_name(e->pipeline.mode) }, { "outbox", e->pipeline.outbox ? "on" : "off" },
                 { "workers", workers });
    e->seat_count = (unsigned)e->setup->config->concurrency;
    e->seats = wb_alloc_zero(e->seat_count, sizeof *e->seats);
    r = fill_seats(e, error);
    if (r == WB_OK && e->pipeline.outbox)
        r = start_housekeeper(e, error);
    return r;
}

int wb_endpoint_look(wb_endpoint *e, wb_error *error)
{
    for (unsigned i = 0; i < e->seat_count; i++) {
        seat *place = &e->seats[i];
        if (place->is_taken && atomic_load(&place->worker.ended))
            clear_seat(e, place);
        else if (place->is_taken)
            wb_worker_look_after(&place->worker);
    }
    if (e->result != WB_OK)
        *error = e->failure;
    return e->result;
}

unsigned wb_endpoint_missing(const wb_endpoint *e)
{
    unsigned missing = 0;
    for (unsigned i = 0; i < e->seat_count; i++)
        missing += !e->seats[i].is_taken;
    return missing;
}

int wb_endpoint_restart(wb_endpoint *e)
{
    wb_error_clear(&e->failure);
    e->result = fill_seats(e, &e->failure);
    return e->result;
}

void wb_endpoint_stop(wb_endpoint *e)
{
    wb_pipeline *p = &e->pipeline;
    atomic_store(&p->stop, 1);
    for (unsigned i = 0; i < e->seat_count; i++)
        if (e->seats[i].is_taken)
            wb_worker_interrupt(&e->seats[i].worker);
    if (e->has_housekeeper)
        wb_housekeeper_wake(&e->housekeeper);
}

int wb_endpoint_has_ended(const wb_endpoint *e)
{
    for (unsigned i = 0; i < e->seat_count; i++)
        if (e->seats[i].is_taken && !atomic_load(&e->seats[i].worker.ended))
            return 0;
    return wb_housekeeper_has_ended(&e->housekeeper);
}

int wb_endpoint_join(wb_endpoint *e, wb_error *error)
{
    for (unsigned i = 0; i < e->seat_count; i++)
        if (e->seats[i].is_taken)
            clear_seat(e, &e->seats[i]);
    if (e->has_housekeeper)
        wb_housekeeper_stop(&e->housekeeper);
    e->has_housekeeper = 0;
    if (e->result != WB_OK)
        *error = e->failure;
    return e->result;
}

const wb_origin *wb_endpoint_origin(const wb_endpoint *e)
{
    return &e->pipeline.origin;
}

int wb_endpoint_open_sender(wb_endpoint *e, wb_transport_session **ret_session, wb_error *error)
{
    return e->pipeline.transport_ops->open(e->pipeline.transport, WB_SESSION_SEND, 0, ret_session, error);
}
