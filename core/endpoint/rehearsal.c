/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/endpoint/rehearsal.h"

#include <pthread.h>
#include <string.h>

#include "core/base/host.h"
#include "core/base/log_line.h"
#include "core/base/log_sink.h"
#include "core/pipeline/hooks.h"
#include "core/plugin/instance.h"
#include "core/plugin/loader.h"

#define FIELDS_SIZE 512

/* All endpoints, one after the other. */
typedef struct {
    wb_problems *problems;
    wb_error *first; /* that failed */
} rehearsal;

/* One instance. */
typedef struct {
    wb_host_instance host; /* first: what the plugin takes for its host is ours */
    const rehearsal *all;
    wb_endpoint_setup *endpoint;
    const char *group;
    const wb_plugin *plugin;
    const wb_plugin_choice *choice;
} attempt;

/* A plugin may have threads, which may warn. */
static pthread_mutex_t problems_lock = PTHREAD_MUTEX_INITIALIZER;

static void note_warning(const wb_host *host, int level, const char *text, const wb_field *fields, size_t count)
{
    const attempt *a = (const attempt *)host;
    char values[FIELDS_SIZE];
    if (level > WB_LOG_WARNING)
        return;
    wb_fields_describe(fields, count, NULL, values, sizeof values);
    pthread_mutex_lock(&problems_lock);
    wb_problems_add(a->all->problems, WB_LOG_WARNING, wb_plugin_place(a->choice, text), "endpoint \"%s\": %s \"%s\": %s%s",
                    a->endpoint->config->name, a->group, a->plugin->name, text, values);
    pthread_mutex_unlock(&problems_lock);
}

static attempt begin(const rehearsal *all, wb_endpoint_setup *endpoint, const char *group, const wb_plugin *plugin,
                     const wb_plugin_choice *choice)
{
    attempt a = { .all = all, .endpoint = endpoint, .group = group, .plugin = plugin, .choice = choice };
    wb_host_init(&a.host, endpoint->config->name, plugin->name);
    a.host.host.log = note_warning;
    return a;
}

static void fail(wb_endpoint_setup *endpoint, const rehearsal *all, const wb_error *error)
{
    endpoint->is_ready = 0;
    if (all->first->result == WB_OK)
        *all->first = *error;
}

static void report(const attempt *a, const wb_error *error)
{
    fail(a->endpoint, a->all, error);
    wb_problems_add(a->all->problems, WB_LOG_ERROR, wb_plugin_place(a->choice, error->text), "endpoint \"%s\": %s \"%s\": %s",
                    a->endpoint->config->name, a->group, a->plugin->name, error->text);
}

static void try_transport(const rehearsal *all, wb_endpoint_setup *endpoint)
{
    attempt a = begin(all, endpoint, "transport", endpoint->transport, &endpoint->config->transport);
    wb_transport *transport = NULL;
    wb_error error = { 0 };
    if (wb_transport_create(a.plugin, &a.host.host, &endpoint->info, endpoint->transport_config, &transport, &error) == WB_OK)
        endpoint->transport_ops->destroy(transport);
    else
        report(&a, &error);
}

/* One that is to keep delayed messages says whether it can in this mode. */
static void try_persistence(const rehearsal *all, wb_endpoint_setup *endpoint)
{
    attempt a = begin(all, endpoint, "persistence", endpoint->persistence, &endpoint->config->persistence);
    wb_persistence *persistence = NULL;
    wb_error error = { 0 };
    int r = wb_persistence_create(a.plugin, &a.host.host, &endpoint->persistence_info, endpoint->persistence_config,
                                  &persistence, &error);
    if (r == WB_OK && endpoint->plan.delay_by == WB_DELAYS_BY_STORE)
        r = wb_persistence_keep_delayed(a.plugin, persistence, endpoint->plan.mode, &error);
    if (r != WB_OK)
        report(&a, &error);
    if (persistence)
        endpoint->persistence_ops->destroy(persistence);
}

static void try_store(const rehearsal *all, wb_endpoint_setup *endpoint)
{
    attempt a = begin(all, endpoint, "outbox.deduplication.store", endpoint->store, &endpoint->config->outbox.store);
    wb_persistence *store = NULL;
    wb_error error = { 0 };
    if (wb_persistence_create(a.plugin, &a.host.host, &endpoint->store_info, endpoint->store_config, &store, &error) == WB_OK)
        endpoint->store_ops->destroy(store);
    else
        report(&a, &error);
}

static void try_observer(const rehearsal *all, wb_endpoint_setup *endpoint)
{
    attempt a = begin(all, endpoint, "observer", endpoint->observer, &endpoint->config->observer);
    wb_observer *observer = NULL;
    wb_error error = { 0 };
    if (wb_observer_create(a.plugin, &a.host.host, &endpoint->observer_info, endpoint->observer_config, &observer, &error) ==
        WB_OK)
        endpoint->observer_ops->destroy(observer);
    else
        report(&a, &error);
}

static void try_modules(const rehearsal *all, wb_endpoint_setup *endpoint)
{
    wb_error error = { 0 };
    wb_hooks hooks;
    wb_hooks_init(&hooks, endpoint->config, &endpoint->handlers);
    if (wb_hooks_check(&hooks, all->problems, &error) != WB_OK)
        fail(endpoint, all, &error);
    wb_hooks_free(&hooks);
}

static void try_endpoint(const rehearsal *all, wb_endpoint_setup *endpoint)
{
    if (endpoint->transport_config)
        try_transport(all, endpoint);
    if (endpoint->persistence_config)
        try_persistence(all, endpoint);
    if (endpoint->store_config)
        try_store(all, endpoint);
    if (endpoint->observer_config)
        try_observer(all, endpoint);
    try_modules(all, endpoint);
}

/* It is made, with its owner, by who runs the endpoints. */
static void try_log_file(const rehearsal *all, const wb_config *config)
{
    int code = config->log_file ? wb_log_sink_try(config->log_file) : 0;
    if (code == 0)
        return;
    wb_problems_add(all->problems, WB_LOG_ERROR, config->log_file_at, "option \"log_file\": cannot write to \"%s\": %s",
                    config->log_file, strerror(code));
    if (all->first->result == WB_OK)
        (void)wb_error_set(all->first, WB_FATAL, WB_CAUSE_CONFIG, code, "cannot write to the log file \"%s\": %s",
                           config->log_file, strerror(code));
}

int wb_setup_rehearse(wb_setup *setup, const char *name, wb_problems *problems, wb_error *error)
{
    const rehearsal all = { problems, error };
    wb_error_clear(error);
    try_log_file(&all, setup->config);
    for (size_t i = 0; i < setup->endpoint_count; i++) {
        wb_endpoint_setup *endpoint = &setup->endpoints[i];
        if (endpoint->is_planned && (!name || strcmp(endpoint->config->name, name) == 0))
            try_endpoint(&all, endpoint);
    }
    return error->result;
}
