/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/cli/plan.h"

#include "core/base/json_text.h"
#include "core/recover/recoverability.h"

const char *cli_plan_who_sends(const wb_plan *plan)
{
    if (plan->send_only)
        return "the caller";
    if (plan->outbox)
        return "the outbox, after the commit";
    if (plan->joined)
        return "the transaction shared with the business data";
    if (plan->mode == WB_MODE_SENDS_ATOMIC)
        return "the transport, in the transaction of the receive";
    return "the worker, after the handler";
}

int cli_plan_can_expire(const wb_endpoint_setup *endpoint)
{
    return (endpoint->transport->capabilities & WB_CAP_EXPIRY) != 0;
}

int64_t cli_plan_delayed_retries(const wb_endpoint_setup *endpoint)
{
    int is_blocked = endpoint->config->recoverability.on_failure == WB_ON_MESSAGE_FAILURE_BLOCK;
    return is_blocked ? 0 : endpoint->plan.delayed_retries;
}

static json_t *handlers_json(const wb_handler_set *handlers)
{
    json_t *array = json_array();
    for (size_t i = 0; i < handlers->count; i++)
        json_array_append_new(array, json_pack("{s:o, s:b, s:o}", "type",
                                               wb_json_text(handlers->entries[i].type), "batch",
                                               handlers->entries[i].batch != NULL, "module",
                                               wb_json_text(handlers->entries[i].module)));
    return array;
}

/* NULL: it keeps none. */
static json_t *failures_json(const wb_endpoint_config *config)
{
    const char *const *further;
    const size_t count = wb_config_further_queues(config, &further);
    json_t *array = config->failures.at.is_set ? json_array() : NULL;
    if (array)
        json_array_append_new(array, wb_json_text(wb_config_queue(config)));
    for (size_t i = 0; array && i < count; i++)
        json_array_append_new(array, wb_json_text(further[i]));
    return array;
}

json_t *cli_plan_json(const wb_endpoint_setup *endpoint)
{
    const wb_endpoint_config *config = endpoint->config;
    const wb_plan *plan = &endpoint->plan;
    return json_pack("{s:o, s:o, s:o*, s:o*, s:o*, s:b, s:b, s:s, s:b, s:b, s:I, s:I, s:s, s:o*, s:o*, s:o*, s:I, s:s, s:b, s:o}", "name",
                     wb_json_text(config->name), "transport", wb_json_text(endpoint->transport->name), "persistence",
                     wb_json_text(endpoint->persistence ? endpoint->persistence->name : NULL), "deduplication_store",
                     wb_json_text(endpoint->store ? endpoint->store->name : NULL), "observer",
                     wb_json_text(endpoint->observer ? endpoint->observer->name : NULL), "by_id", plan->by_id, "by_position",
                     plan->by_position, "mode",
                     wb_mode_name(plan->mode), "outbox", plan->outbox, "send_only",
                     plan->send_only, "immediate_retries", (json_int_t)plan->immediate_retries,
                     "delayed_retries", (json_int_t)cli_plan_delayed_retries(endpoint), "delay_by",
                     wb_delay_name(plan->delay_by), "error_queue", wb_json_text(endpoint->info.error_queue),
                     "audit_queue", wb_json_text(endpoint->info.audit_queue),
                     "failures_from", failures_json(config),
                     "concurrency", (json_int_t)config->concurrency, "who_sends", cli_plan_who_sends(plan),
                     "expiry", cli_plan_can_expire(endpoint),
                     "handlers", handlers_json(&endpoint->handlers));
}
