/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <sysexits.h>

#include "core/base/json_text.h"
#include "core/cli/cli.h"
#include "core/cli/describe.h"
#include "core/cli/plan.h"
#include "core/config/units.h"
#include "core/endpoint/rehearsal.h"

static const cli_option options[] = { CLI_OPTION_CONFIG, CLI_OPTION_JSON, CLI_OPTION_END };

static void print_delays(const wb_plan *plan)
{
    if (plan->delay_by == WB_DELAYS_BY_NOBODY)
        (void)printf("  %-13s by nobody: messages that are due later are refused\n", "delays");
    else
        (void)printf("  %-13s by the %s\n", "delays", wb_delay_name(plan->delay_by));
}

static void print_retries(const wb_endpoint_setup *endpoint)
{
    const wb_plan *plan = &endpoint->plan;
    char increment[WB_UNIT_TEXT_SIZE];
    (void)printf("  %-13s %" PRId64 " immediate, %" PRId64 " delayed", "retries",
                 plan->immediate_retries, cli_plan_delayed_retries(endpoint));
    if (cli_plan_delayed_retries(endpoint))
        (void)printf(" (by the %s, %s more each time)", wb_delay_name(plan->delay_by),
                     wb_duration_format(endpoint->config->recoverability.delay_increment,
                                        increment));
    (void)printf("\n");
}

static void print_handlers(const wb_handler_set *handlers)
{
    for (size_t i = 0; i < handlers->count; i++)
        (void)printf("  %-13s %s%s%s from %s\n", i ? "" : "handlers", handlers->entries[i].type,
                     &handlers->entries[i] == handlers->other ? " (all other types, and none)" : "",
                     handlers->entries[i].batch ? " (batches)" : "", handlers->entries[i].module);
}

static void print_failures(const wb_endpoint_config *config)
{
    char retention[WB_UNIT_TEXT_SIZE];
    const char *const *further;
    const size_t count = wb_config_further_queues(config, &further);
    (void)printf("  %-13s from %s %s", "keeps failures", count ? "queues" : "queue", wb_config_queue(config));
    for (size_t i = 0; i < count; i++)
        (void)printf(", %s", further[i]);
    (void)printf(", for %s when they are done with\n", wb_duration_format(config->failures.retention, retention));
}

static void print_queue(const wb_endpoint_setup *endpoint)
{
    char retention[WB_UNIT_TEXT_SIZE];
    const wb_endpoint_config *config = endpoint->config;
    (void)printf("  %-13s %s\n", "mode", wb_mode_name(endpoint->plan.mode));
    if (!endpoint->plan.outbox)
        (void)printf("  %-13s off\n", "outbox");
    else if (endpoint->plan.by_id)
        (void)printf("  %-13s on, %sids are remembered for %s\n", "outbox",
                     endpoint->plan.by_position ? "positions for ever, and " : "",
                     wb_duration_format(config->outbox.retention, retention));
    else
        (void)printf("  %-13s on, positions are remembered for ever\n", "outbox");
    if (endpoint->store)
        (void)printf("  %-13s %s %s, has the ids of what is done with\n", "store", endpoint->store->name,
                     endpoint->store->version);
    print_retries(endpoint);
    (void)printf("  %-13s %s\n", "error queue", endpoint->info.error_queue);
    if (config->failures.at.is_set)
        print_failures(config);
    if (endpoint->info.audit_queue)
        (void)printf("  %-13s %s\n", "audit queue", endpoint->info.audit_queue);
    (void)printf("  %-13s %" PRId64 "\n", "workers", config->concurrency);
    print_handlers(&endpoint->handlers);
}

static void print_endpoint(const wb_endpoint_setup *endpoint)
{
    (void)printf("endpoint %s\n", endpoint->config->name);
    (void)printf("  %-13s %s %s\n", "transport", endpoint->transport->name,
                 endpoint->transport->version);
    if (endpoint->persistence)
        (void)printf("  %-13s %s %s\n", "persistence", endpoint->persistence->name,
                     endpoint->persistence->version);
    else
        (void)printf("  %-13s none\n", "persistence");
    if (endpoint->plan.send_only)
        (void)printf("  %-13s send-only, no queue\n", "mode");
    else
        print_queue(endpoint);
    (void)printf("  %-13s %s\n", "who sends", cli_plan_who_sends(&endpoint->plan));
    print_delays(&endpoint->plan);
    if (!cli_plan_can_expire(endpoint))
        (void)printf("  %-13s no: messages with a time to be received are refused\n", "expiry");
    if (endpoint->observer)
        (void)printf("  %-13s %s %s\n", "observer", endpoint->observer->name, endpoint->observer->version);
}

static void print_json(const wb_setup *setup, const wb_problems *problems)
{
    json_t *errors = json_array(), *warnings = json_array(), *endpoints = json_array();
    for (size_t i = 0; i < problems->count; i++)
        json_array_append_new(problems->items[i].level == WB_LOG_ERROR ? errors : warnings,
                              wb_json_text(problems->items[i].text));
    for (size_t i = 0; setup && i < setup->endpoint_count; i++)
        if (setup->endpoints[i].is_ready)
            json_array_append_new(endpoints, cli_plan_json(&setup->endpoints[i]));
    cli_print_json(json_pack("{s:b, s:o, s:o, s:o}", "ok", problems->error_count == 0, "errors",
                             errors, "warnings", warnings, "endpoints", endpoints));
}

static void print_text(const wb_setup *setup, const wb_problems *problems)
{
    wb_problems_print(problems, stderr);
    if (problems->error_count)
        return;
    for (size_t i = 0; i < setup->endpoint_count; i++)
        print_endpoint(&setup->endpoints[i]);
}

static int run(const cli_values *values)
{
    wb_problems problems = { 0 };
    wb_setup *setup = NULL;
    wb_error first;
    int result = wb_setup_load(cli_config_path(values), 0, &setup, &problems);
    if (setup && wb_setup_rehearse(setup, NULL, &problems, &first) != WB_OK)
        result = WB_FATAL;

    if (values->value['j'])
        print_json(setup, &problems);
    else
        print_text(setup, &problems);
    wb_setup_free(setup);
    wb_problems_free(&problems);
    return result == WB_OK ? EX_OK : EX_CONFIG;
}

const cli_verb cli_verb_check = {
    .name = "check",
    .summary = "check a configuration and print what its endpoints would do",
    .help = "Loads plugins and handler modules, reads every option, and negotiates between what\n"
            "is asked and what the plugins can do, and has these try their options. Connects to\n"
            "nothing. Reports all problems at once; exit code 78 when there is an error.",
    .options = options,
    .run = run,
};
