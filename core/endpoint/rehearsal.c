/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/endpoint/rehearsal.h"

#include "core/base/host.h"
#include "core/pipeline/hooks.h"
#include "core/plugin/instance.h"

static void report(wb_endpoint_setup *endpoint, const char *kind, const wb_plugin_choice *choice,
                   const wb_error *error, wb_problems *problems)
{
    endpoint->is_ready = 0;
    wb_problems_add(problems, WB_LOG_ERROR, choice->at, "endpoint \"%s\": %s \"%s\": %s",
                    endpoint->config->name, kind, choice->plugin, error->text);
}

static void rehearse_transport(wb_endpoint_setup *endpoint, wb_problems *problems)
{
    wb_host_instance host;
    wb_transport *transport = NULL;
    wb_error error = { 0 };
    wb_host_init(&host, endpoint->config->name, endpoint->transport->name);
    if (wb_transport_create(endpoint->transport, &host.host, &endpoint->info, endpoint->transport_config, &transport,
                            &error) == WB_OK)
        endpoint->transport_ops->destroy(transport);
    else
        report(endpoint, "transport", &endpoint->config->transport, &error, problems);
}

static void rehearse_persistence(wb_endpoint_setup *endpoint, const char *group, const wb_plugin *plugin,
                                 const wb_plugin_choice *choice, const wb_endpoint_info *info, const void *config,
                                 wb_problems *problems)
{
    const wb_persistence_ops *ops = plugin->ops;
    wb_host_instance host;
    wb_persistence *persistence = NULL;
    wb_error error = { 0 };
    wb_host_init(&host, endpoint->config->name, plugin->name);
    if (wb_persistence_create(plugin, &host.host, info, config, &persistence, &error) == WB_OK)
        ops->destroy(persistence);
    else
        report(endpoint, group, choice, &error, problems);
}

static void rehearse_modules(wb_endpoint_setup *endpoint, wb_problems *problems)
{
    const size_t errors_before = problems->error_count;
    wb_hooks hooks;
    wb_hooks_init(&hooks, endpoint->config, &endpoint->handlers);
    wb_hooks_check(&hooks, problems);
    wb_hooks_free(&hooks);
    if (problems->error_count != errors_before)
        endpoint->is_ready = 0;
}

int wb_setup_rehearse(wb_setup *setup, wb_problems *problems)
{
    size_t errors_before = problems->error_count;
    for (size_t i = 0; i < setup->endpoint_count; i++) {
        wb_endpoint_setup *endpoint = &setup->endpoints[i];
        if (!endpoint->is_ready)
            continue;
        rehearse_transport(endpoint, problems);
        if (endpoint->persistence)
            rehearse_persistence(endpoint, "persistence", endpoint->persistence, &endpoint->config->persistence,
                                 &endpoint->info, endpoint->persistence_config, problems);
        if (endpoint->store)
            rehearse_persistence(endpoint, "outbox.deduplication.store", endpoint->store, &endpoint->config->outbox.store,
                                 &endpoint->store_info, endpoint->store_config, problems);
        rehearse_modules(endpoint, problems);
    }
    return problems->error_count == errors_before ? WB_OK : WB_FATAL;
}

int wb_setup_check_modules(const wb_endpoint_setup *setup, wb_error *error)
{
    wb_hooks hooks;
    wb_hooks_init(&hooks, setup->config, &setup->handlers);
    int r = wb_hooks_approve(&hooks, error);
    wb_hooks_free(&hooks);
    return r;
}
