/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/endpoint/setup.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/config/units.h"
#include "core/endpoint/subscribed.h"
#include "core/endpoint/subscriptions.h"
#include "core/failures/ingest.h"
#include "core/negotiate/rules.h"
#include "core/plugin/capability.h"
#include "core/plugin/loader.h"
#include "core/recover/recoverability.h"
#include "core/recover/retry_copy.h"

/* Plugins whose instances could share a transaction name what on; longer is nobody's. */
#define RESOURCE_SIZE 4096

/* How late a commit comes, at most, that servers, networks and proxies held up. */
#define COMMITS_LATE (60 * WB_SECOND)

/* The options that are about an input queue; refused for a send-only endpoint. */
#define INPUT_OPTION_COUNT 21

typedef struct {
    wb_setup *setup;
    wb_endpoint_setup *endpoint;
    uint32_t flags;
    wb_problems *problems;
} loading;

static const void *load_plugin(const loading *l, uint32_t kind, const wb_plugin_choice *choice,
                               const wb_plugin **ret_plugin, const char **ret_path)
{
    const void *values = NULL;
    wb_error error;

    if (!choice->plugin)
        return NULL;
    if (wb_plugin_load(l->setup->config, kind, choice->plugin, ret_plugin, ret_path, &error) !=
        WB_OK) {
        wb_problems_add(l->problems, WB_LOG_ERROR, choice->at, "endpoint \"%s\": %s",
                        l->endpoint->config->name, error.text);
        return NULL;
    }
    (void)wb_plugin_configure(l->setup->config, l->endpoint->config, choice, *ret_plugin,
                              l->problems, &values);
    return values;
}

static void load_plugins(const loading *l)
{
    wb_endpoint_setup *endpoint = l->endpoint;
    endpoint->transport_config =
        load_plugin(l, WB_PLUGIN_TRANSPORT, &endpoint->config->transport, &endpoint->transport,
                    &endpoint->transport_path);
    endpoint->persistence_config =
        load_plugin(l, WB_PLUGIN_PERSISTENCE, &endpoint->config->persistence,
                    &endpoint->persistence, &endpoint->persistence_path);
    endpoint->store_config = load_plugin(l, WB_PLUGIN_PERSISTENCE, &endpoint->config->outbox.store,
                                         &endpoint->store, &endpoint->store_path);
    endpoint->observer_config =
        load_plugin(l, WB_PLUGIN_OBSERVER, &endpoint->config->observer, &endpoint->observer, NULL);
    if (endpoint->store)
        endpoint->store_ops = endpoint->store->ops;
    if (endpoint->observer)
        endpoint->observer_ops = endpoint->observer->ops;
    if (endpoint->transport)
        endpoint->transport_ops = endpoint->transport->ops;
    if (endpoint->persistence)
        endpoint->persistence_ops = endpoint->persistence->ops;
}

static const char *transport_resource(const wb_endpoint_setup *endpoint, char *buffer)
{
    const wb_transport_ops *ops = endpoint->transport_ops;
    return WB_HAS(ops, wb_transport_ops, shared_resource) && endpoint->transport_config &&
                   ops->shared_resource(endpoint->transport_config, buffer, RESOURCE_SIZE) == WB_OK
               ? buffer
               : NULL;
}

static const char *persistence_resource(const wb_persistence_ops *ops, const void *config, char *buffer)
{
    return ops && WB_HAS(ops, wb_persistence_ops, shared_resource) && config &&
                   ops->shared_resource(config, buffer, RESOURCE_SIZE) == WB_OK
               ? buffer
               : NULL;
}

static size_t find_input_settings(const wb_endpoint_config *config,
                                  wb_input_setting settings[INPUT_OPTION_COUNT])
{
    const wb_input_setting all[INPUT_OPTION_COUNT] = {
        { "handlers", WB_CONFIG_ORIGIN(config, handler_list) },
        { "commands", WB_CONFIG_ORIGIN(config, commands) },
        { "concurrency", WB_CONFIG_ORIGIN(config, concurrency) },
        { "transaction_mode", WB_CONFIG_ORIGIN(config, transaction_mode) },
        { "batch_max", WB_CONFIG_ORIGIN(config, batch_max) },
        { "batch_time", WB_CONFIG_ORIGIN(config, batch_time) },
        { "slow_handler", WB_CONFIG_ORIGIN(config, slow_handler) },
        { "handler_timeout", WB_CONFIG_ORIGIN(config, handler_timeout) },
        { "handler_time_limit", WB_CONFIG_ORIGIN(config, handler_time_limit) },
        { "on_endpoint_failure", WB_CONFIG_ORIGIN(config, on_endpoint_failure) },
        { "immediate_retries", WB_CONFIG_ORIGIN(config, recoverability.immediate_retries) },
        { "delayed_retries", WB_CONFIG_ORIGIN(config, recoverability.delayed_retries) },
        { "delay_increment", WB_CONFIG_ORIGIN(config, recoverability.delay_increment) },
        { "delay_jitter", WB_CONFIG_ORIGIN(config, recoverability.delay_jitter) },
        { "rate_limit_after", WB_CONFIG_ORIGIN(config, recoverability.rate_limit_after) },
        { "rate_limit_wait", WB_CONFIG_ORIGIN(config, recoverability.rate_limit_wait) },
        { "on_failure", WB_CONFIG_ORIGIN(config, recoverability.on_failure) },
        { "error_queue", WB_CONFIG_ORIGIN(config, recoverability.error_queue) },
        { "audit.queue", WB_CONFIG_ORIGIN(config, audit.queue) },
        { "outbox.deduplication.store", config->outbox.store.at },
        { "recoverability.types", config->recoverability.type_count ? config->recoverability.types_at[0]
                                                                    : (wb_conf_origin){ 0 } },
    };
    size_t count = 0;
    for (size_t i = 0; i < INPUT_OPTION_COUNT; i++)
        if (all[i].at.is_set)
            settings[count++] = all[i];
    return count;
}

/* A number that a type asks for, in place of the endpoint's, unless that asks, too. */
static void ask_for(int64_t number, wb_conf_origin at, int64_t *number_asked, wb_conf_origin *asked_at)
{
    if (number <= 0 || (asked_at->is_set && *number_asked > 0))
        return;
    *number_asked = number;
    *asked_at = at;
}

/* Those of a type are refused as those of the endpoint are, where nobody can. */
static void add_retries_of_types(const wb_endpoint_config *config, wb_negotiation_input *input)
{
    const int is_none = input->mode == WB_MODE_NONE;
    const int nobody_delays = is_none || wb_rule_delay_by(input) == WB_DELAYS_BY_NOBODY ||
                              (input->by_at.is_set && !input->by_id);
    for (size_t i = 0; i < config->recoverability.type_count; i++) {
        const wb_type_policy *type = &config->recoverability.types[i];
        const wb_conf_origin at = config->recoverability.types_at[i];
        if (is_none)
            ask_for(type->immediate_retries, at, &input->immediate_retries, &input->immediate_retries_at);
        if (nobody_delays)
            ask_for(type->delayed_retries, at, &input->delayed_retries, &input->delayed_retries_at);
    }
}

/* Those of a plugin, which may be built for a later version; NULL: none. */
static uint64_t known_capabilities(const wb_plugin *plugin)
{
    return plugin ? wb_capabilities_known(plugin->capabilities) : 0;
}

static wb_negotiation_input make_input(const wb_endpoint_setup *endpoint)
{
    const wb_endpoint_config *config = endpoint->config;
    const char *const *further;
    return (wb_negotiation_input){
        .at = config->at,
        .mode = config->transaction_mode,
        .mode_at = WB_CONFIG_ORIGIN(config, transaction_mode),
        .outbox = config->outbox.enabled,
        .outbox_at = WB_CONFIG_ORIGIN(config, outbox.enabled),
        .by_id = config->outbox.by_id,
        .by_position = config->outbox.by_position,
        .by_at = WB_CONFIG_ORIGIN(config, outbox.by),
        .immediate_retries = config->recoverability.immediate_retries,
        .immediate_retries_at = WB_CONFIG_ORIGIN(config, recoverability.immediate_retries),
        .delayed_retries = config->recoverability.delayed_retries,
        .delayed_retries_at = WB_CONFIG_ORIGIN(config, recoverability.delayed_retries),
        .delays_by = config->delayed_delivery.by,
        .delays_by_at = WB_CONFIG_ORIGIN(config, delayed_delivery.by),
        .send_only = config->send_only,
        .send_only_at = WB_CONFIG_ORIGIN(config, send_only),
        .session_at = config->session.at,
        .processor_at = WB_CONFIG_ORIGIN(config, session.processor_endpoint),
        .handler_count = config->handler_count + (config->failures.at.is_set != 0),
        .queue_count = 1 + wb_config_further_queues(config, &further),
        .queues_at = WB_CONFIG_ORIGIN(config, failures.from),
        .transport = { endpoint->transport->name, known_capabilities(endpoint->transport), NULL,
                       config->transport.at },
        .persistence = { endpoint->persistence ? endpoint->persistence->name : NULL,
                         known_capabilities(endpoint->persistence), NULL,
                         config->persistence.at },
        .store = { endpoint->store ? endpoint->store->name : NULL, known_capabilities(endpoint->store),
                   NULL, config->outbox.store.at },
    };
}

static int plugins_are_known(const wb_endpoint_setup *endpoint)
{
    return endpoint->transport && (endpoint->persistence || !endpoint->config->persistence.node) &&
           (endpoint->store || !endpoint->config->outbox.store.node);
}

static int options_are_right(const wb_endpoint_setup *endpoint)
{
    return endpoint->transport_config &&
           (endpoint->persistence_config || !endpoint->config->persistence.node);
}

/* What a transaction could be shared on is unknown while an option is wrong. */
static void report_conflicts(const loading *l, const wb_negotiation *negotiation)
{
    for (size_t i = 0; i < negotiation->conflict_count; i++) {
        const wb_conflict *conflict = &negotiation->conflicts[i];
        if (conflict->kind == WB_CONFLICT_SCOPE_NOT_SHARED && !options_are_right(l->endpoint))
            continue;
        wb_problems_add(l->problems, WB_LOG_ERROR, conflict->at, "endpoint \"%s\": %s",
                        l->endpoint->config->name, conflict->text);
    }
}

/* Needs to know what both plugins can do, but not that all their options are right: a
 * wrong option hides no conflict. */
static void negotiate(const loading *l)
{
    char resources[3][RESOURCE_SIZE];
    wb_input_setting settings[INPUT_OPTION_COUNT];
    wb_endpoint_setup *endpoint = l->endpoint;
    wb_negotiation_input input = make_input(endpoint);
    wb_negotiation *negotiation = wb_alloc(sizeof *negotiation);
    wb_memory_held held;

    wb_memory_hold(&held, free, negotiation);
    add_retries_of_types(endpoint->config, &input);
    input.transport.shared_resource = transport_resource(endpoint, resources[0]);
    input.persistence.shared_resource = persistence_resource(endpoint->persistence_ops, endpoint->persistence_config,
                                                             resources[1]);
    input.store.shared_resource = persistence_resource(endpoint->store_ops, endpoint->store_config, resources[2]);
    input.input_settings = settings;
    input.input_setting_count = find_input_settings(endpoint->config, settings);
    endpoint->is_planned = wb_negotiate(&input, negotiation) == WB_OK && !endpoint->config->has_errors;
    report_conflicts(l, negotiation);
    endpoint->plan = negotiation->plan;
    wb_memory_let_go(&held);
    free(negotiation);
}

static int64_t most_retries(const wb_endpoint_config *config, int64_t of_others)
{
    return wb_recover_most_retries(of_others, config->recoverability.types, config->recoverability.type_count);
}

static int64_t longest_span(const wb_endpoint_setup *endpoint)
{
    const wb_endpoint_config *config = endpoint->config;
    return wb_recover_span(most_retries(config, endpoint->plan.delayed_retries), config->recoverability.delay_increment,
                           config->recoverability.delay_jitter);
}

/* A second copy of a message may be handled while the first one still waits for a retry: whoever has forgotten
 * the id by then handles it twice. */
static void warn_of_retention(const loading *l)
{
    const wb_endpoint_config *config = l->endpoint->config;
    char span[WB_UNIT_TEXT_SIZE];
    int64_t longest = longest_span(l->endpoint);
    if (!l->endpoint->plan.outbox || config->outbox.retention >= longest)
        return;
    wb_problems_add(l->problems, WB_LOG_WARNING, WB_CONFIG_ORIGIN(config, outbox.retention),
                    "endpoint \"%s\": ids are forgotten sooner than the last delayed retry of a message may come, %s after "
                    "its first attempt: such a message may be handled twice; set \"retention\" to more than that, and to "
                    "more than messages wait in the error queue",
                    config->name, wb_duration_format(longest, span));
}

/* Whoever closes the id of a session leaves a record like any other: a commit that comes when that is forgotten is no longer
 * kept from being made. It may come late by what servers and networks hold things up. */
static void warn_of_sessions(const loading *l)
{
    const wb_endpoint_config *config = l->endpoint->config;
    const int64_t needed = config->session.maximum_commit_duration + COMMITS_LATE;
    char kept[WB_UNIT_TEXT_SIZE], wanted[WB_UNIT_TEXT_SIZE];
    if (!config->session.at.is_set || !l->endpoint->plan.outbox || l->endpoint->plan.send_only || /* then they are its processor's */
        config->outbox.retention >= needed)
        return;
    wb_problems_add(l->problems, WB_LOG_WARNING, WB_CONFIG_ORIGIN(config, outbox.retention),
                    "endpoint \"%s\": ids are forgotten after %s, also that of a session which was closed because it was not committed "
                    "within \"maximum_commit_duration\": a commit that comes later still takes effect, though somebody may have "
                    "been told that it never will; set \"retention\" to %s or more",
                    config->name, wb_duration_format(config->outbox.retention, kept), wb_duration_format(needed, wanted));
}

/* What comes again elsewhere was acknowledged there before its handler ran. */
static void warn_of_timeout(const loading *l)
{
    const wb_endpoint_config *config = l->endpoint->config;
    if (!l->endpoint->is_planned || l->endpoint->plan.mode != WB_MODE_NONE || !config->handler_timeout)
        return;
    wb_problems_add(l->problems, WB_LOG_WARNING, WB_CONFIG_ORIGIN(config, handler_timeout),
                    "endpoint \"%s\": with transaction_mode = \"none\" what is in hand when the program ends for "
                    "handler_timeout is lost: the message whose handler hangs, and others that were received with it; leave "
                    "handler_timeout out, or choose another mode",
                    config->name);
}

static const char **list_derived(wb_arena *arena, const wb_endpoint_config *config)
{
    const char **derived = wb_arena_alloc(arena, (config->type_count + 1) * sizeof *derived);
    for (size_t i = 0; i < config->type_count; i++)
        derived[i] = config->types[i].list;
    return derived;
}

static int is_listed(const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return 1;
    return 0;
}

static void list_error_queues(wb_arena *arena, const wb_endpoint_config *config, wb_endpoint_info *info)
{
    const char **queues = wb_arena_alloc(arena, (config->recoverability.type_count + 1) * sizeof *queues);
    size_t count = 0;
    for (size_t i = 0; i < config->recoverability.type_count; i++) {
        const char *queue = config->recoverability.types[i].error_queue;
        if (queue && strcmp(queue, config->recoverability.error_queue) != 0 && !is_listed(queues, count, queue))
            queues[count++] = queue;
    }
    info->error_queues = queues;
    info->error_queue_count = count;
}

/* Of one that has more than its transport can receive from the negotiation has said so. */
static void list_queues(wb_endpoint_setup *endpoint)
{
    wb_endpoint_info *info = &endpoint->info;
    if (endpoint->transport && (endpoint->transport->capabilities & WB_CAP_QUEUES) && !endpoint->plan.send_only)
        info->queue_count = wb_config_further_queues(endpoint->config, &info->queues);
}

/* No endpoint's name has a blank. */
static void fill_store_info(wb_arena *arena, wb_endpoint_setup *endpoint)
{
    static const char suffix[] = " dedup";
    const size_t size = strlen(endpoint->config->name);
    char *name = wb_arena_alloc(arena, size + sizeof suffix);
    memcpy(name, endpoint->config->name, size);
    memcpy(name + size, suffix, sizeof suffix);
    endpoint->store_info = endpoint->info;
    endpoint->store_info.queues = NULL;
    endpoint->store_info.queue_count = 0;
    endpoint->store_info.name = name;
    endpoint->store_info.delays = WB_DELAYS_BY_NOBODY;
    endpoint->store_info.positions = 0;
    endpoint->store_info.subscriptions = 0;
}

static void fill_info(wb_arena *arena, wb_endpoint_setup *endpoint, uint32_t flags, wb_problems *handler_problems)
{
    const wb_endpoint_config *config = endpoint->config;
    endpoint->info = (wb_endpoint_info){
        .struct_size = sizeof(wb_endpoint_info),
        .name = wb_config_queue(config),
        .error_queue = endpoint->plan.send_only ? NULL : config->recoverability.error_queue,
        .mode = endpoint->plan.mode,
        .outbox = endpoint->plan.outbox,
        .concurrency = (uint32_t)config->concurrency,
        .batch_max = (uint32_t)config->batch_max,
        .body_max = config->body_max,
        .headers_max = WB_INCOMING_HEADERS_MAX + WB_PLATFORM_HEADERS_MAX,
        .headers_size_max = WB_INCOMING_HEADERS_SIZE_MAX + (config->failures.at.is_set ? WB_FAILURE_HEADERS_SIZE_MAX : 0),
        .derived = list_derived(arena, config),
        .derived_count = config->type_count,
        .delays = endpoint->plan.delay_by,
        .positions = endpoint->plan.by_position,
        .audit_queue = endpoint->plan.send_only ? NULL : config->audit.queue,
    };
    if (!endpoint->plan.send_only)
        list_error_queues(arena, config, &endpoint->info);
    wb_subscriptions_make(arena, config, &endpoint->handlers, handler_problems, &endpoint->info.types,
                          &endpoint->info.type_count);
    endpoint->info.subscriptions = wb_subscribed_is_recorded(endpoint);
    endpoint->persistence_info = endpoint->info;
    endpoint->persistence_info.name = config->name;
    list_queues(endpoint); /* behind the copy: the transport's affair */
    endpoint->observer_info = endpoint->persistence_info;
    endpoint->persistence_info.failures = config->failures.at.is_set;
    endpoint->persistence_info.sql_api = (flags & WB_SETUP_SQL_API) != 0;
    fill_store_info(arena, endpoint);
    if (endpoint->plan.send_only && config->session.processor_endpoint)
        endpoint->persistence_info.name = config->session.processor_endpoint;
}

static int load_handlers(const loading *l)
{
    wb_endpoint_setup *endpoint = l->endpoint;
    const wb_conf_origin at = endpoint->config->failures.at;
    return at.is_set ? wb_handlers_take(l->setup->config, endpoint->config, &wb_failures_module, WB_FAILURES_MODULE, at,
                                        &endpoint->handlers, l->problems)
                     : wb_handlers_load(l->setup->config, endpoint->config, &endpoint->handlers, l->problems);
}

/* What an endpoint that keeps failures needs, and what it has no use for. Several failures may have one message's id,
 * by which delayed messages are known. */
static void check_failures(const loading *l)
{
    const wb_endpoint_setup *endpoint = l->endpoint;
    const wb_endpoint_config *config = endpoint->config;
    const uint64_t wanted = WB_CAP_FAILED | WB_CAP_CLAIM_WITH_COMMIT;
    const char *fault = NULL;
    if (!config->failures.at.is_set)
        return;
    if (config->handler_count)
        fault = "has a handler of its own: remove \"handlers\"";
    else if (config->send_only)
        fault = "receives from an error queue: remove \"send_only\"";
    else if (!config->outbox.enabled)
        fault = "retries by its outbox: write outbox = { enabled = true; };";
    else if (most_retries(config, config->recoverability.delayed_retries) > 0)
        fault = "has no delayed retries, in which two failures of one message would be one: remove \"delayed_retries\"";
    else if (endpoint->persistence && (endpoint->persistence->capabilities & wanted) != wanted)
        fault = "needs a persistence that keeps failed messages: use pgsql, mysql or sqlite";
    if (fault)
        wb_problems_add(l->problems, WB_LOG_ERROR, config->failures.at, "endpoint \"%s\": an endpoint with a group \"failures\" %s",
                        config->name, fault);
}

static void load_endpoint(const loading *l)
{
    size_t errors_before = l->problems->error_count;
    wb_endpoint_setup *endpoint = l->endpoint;

    int has_handlers = 0;
    load_plugins(l);
    /* after the persistence: modules may need the symbols of its client library */
    if (!(l->flags & (WB_SETUP_WITHOUT_HANDLERS | WB_SETUP_PLUGINS_ONLY)))
        has_handlers = load_handlers(l) == WB_OK;
    if (plugins_are_known(endpoint) && !(l->flags & WB_SETUP_PLUGINS_ONLY))
        negotiate(l);
    check_failures(l);
    warn_of_retention(l);
    warn_of_sessions(l);
    warn_of_timeout(l);
    fill_info(&l->setup->config->arena, endpoint, l->flags, has_handlers ? l->problems : NULL);
    endpoint->is_ready =
        !endpoint->config->has_errors && l->problems->error_count == errors_before;
}

static void load_endpoints(wb_setup *setup, uint32_t flags, wb_problems *problems)
{
    wb_config *config = setup->config;
    setup->endpoints = wb_alloc_zero(config->endpoint_count, sizeof *setup->endpoints);
    setup->endpoint_count = config->endpoint_count;
    for (size_t i = 0; i < setup->endpoint_count; i++) {
        setup->endpoints[i].config = &config->endpoints[i];
        load_endpoint(&(loading){ setup, &setup->endpoints[i], flags, problems });
    }
}

static void release_setup(void *setup)
{
    wb_setup_free(setup);
}

int wb_setup_load(const char *path, uint32_t flags, wb_setup **ret_setup, wb_problems *problems)
{
    wb_memory_held held;
    *ret_setup = NULL;
    wb_setup *setup = wb_alloc_zero(1, sizeof *setup);
    wb_memory_hold(&held, release_setup, setup);
    setup->config = wb_config_load(path, problems);
    if (setup->config)
        load_endpoints(setup, flags, problems);
    wb_memory_let_go(&held);
    if (!setup->config) {
        wb_setup_free(setup);
        return WB_FATAL;
    }
    *ret_setup = setup;
    return problems->error_count ? WB_FATAL : WB_OK;
}

void wb_setup_free(wb_setup *setup)
{
    if (!setup)
        return;
    for (size_t i = 0; i < setup->endpoint_count; i++)
        wb_handlers_free(&setup->endpoints[i].handlers);
    free(setup->endpoints);
    wb_config_free(setup->config);
    free(setup);
}

const wb_endpoint_setup *wb_setup_endpoint(const wb_setup *setup, const char *name)
{
    for (size_t i = 0; i < setup->endpoint_count; i++)
        if (strcmp(setup->endpoints[i].config->name, name) == 0)
            return &setup->endpoints[i];
    return NULL;
}
