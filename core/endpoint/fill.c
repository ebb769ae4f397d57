/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/endpoint/fill.h"

#include "core/base/clock.h"

/* A table that a migration renames is back in seconds; one that was dropped is for somebody to see. */
#define MISSING_PATIENCE (10 * WB_SECOND)

static void fill_delays(wb_pipeline *p, const wb_endpoint_setup *setup)
{
    const wb_endpoint_config *config = setup->config;
    p->origin.delays = setup->plan.delay_by;
    p->origin.expires = (setup->transport->capabilities & WB_CAP_EXPIRY) != 0;
    /* with mode none a commit that cannot store would run handlers again */
    p->stores_with_commit = setup->persistence && p->origin.delays == WB_DELAYS_BY_STORE &&
                            setup->plan.mode != WB_MODE_NONE &&
                            (setup->persistence->capabilities & WB_CAP_DELAY_WITH_COMMIT) != 0;
    p->store_breaker.after = config->delayed_delivery.store_breaker;
    p->fetch_breaker.after = config->delayed_delivery.fetch_breaker;
    p->dispatch_breaker.after = config->delayed_delivery.dispatch_breaker;
    p->stops_on_critical = config->delayed_delivery.on_circuit_open == WB_ON_CIRCUIT_OPEN_STOP;
}

static void fill_recoverability(wb_pipeline *p, const wb_endpoint_setup *setup)
{
    const wb_endpoint_config *config = setup->config;
    p->rate.after = (unsigned)config->recoverability.rate_limit_after;
    p->rate.wait = config->recoverability.rate_limit_wait;
    p->recoverability = (wb_recoverability){
        .immediate_retries = (unsigned)setup->plan.immediate_retries,
        .error_queue = setup->info.error_queue,
        .delayed_retries = (unsigned)setup->plan.delayed_retries,
        .delay_increment = config->recoverability.delay_increment,
        .delay_jitter = (unsigned)config->recoverability.delay_jitter,
        .on_failure = config->recoverability.on_failure,
    };
}

/* Where the process ends for a handler, nobody else is to end it sooner. */
static void fill_time_limits(wb_pipeline *p, const wb_endpoint_config *config)
{
    p->slow_handler = config->slow_handler;
    p->handler_timeout = config->handler_timeout;
    p->handler_time_limit = config->handler_timeout && !WB_CONFIG_ORIGIN(config, handler_time_limit).is_set
                                ? config->handler_timeout
                                : config->handler_time_limit;
}

void wb_fill_pipeline(wb_pipeline *p, const wb_endpoint_setup *setup)
{
    const wb_endpoint_config *config = setup->config;

    p->endpoint = config->name;
    p->mode = setup->plan.mode;
    p->outbox = setup->plan.outbox;
    if (setup->plan.by_position)
        p->positions = setup->plan.by_id ? WB_POSITIONS_BESIDE : WB_POSITIONS_ALONE;
    p->minds_sessions = p->outbox && (setup->persistence->capabilities & WB_CAP_CLAIM_WITH_COMMIT) != 0;
    p->transport_ops = setup->transport_ops;
    p->persistence_ops = setup->persistence_ops;
    p->apart_ops = setup->store_ops;
    p->origin = wb_origin_make(config->name, !setup->plan.send_only, config->body_max);
    p->origin.cannot_publish = !(setup->transport->capabilities & WB_CAP_PUBLISH);
    p->origin.bases = config->types;
    p->origin.base_count = config->type_count;
    if (config->failures.at.is_set) {
        p->failures = 1;
        p->failures_retention = config->failures.retention;
        p->failures_compress_over = config->failures.compress_over;
        p->origin.queue = setup->info.name;
        p->minds_sessions = 0; /* what comes is no control message of its own */
    }
    p->handlers = &setup->handlers;
    wb_hooks_init(&p->hooks, config, &setup->handlers);
    fill_recoverability(p, setup);
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
    fill_delays(p, setup);
    fill_time_limits(p, config);
    p->missing_patience = MISSING_PATIENCE;
    wb_pipeline_init(p);
}
