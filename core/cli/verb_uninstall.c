/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <sysexits.h>

#include "core/cli/cli.h"
#include "core/cli/remains.h"
#include "core/endpoint/removal.h"

#define DRY_RUN CLI_LONG_OPTION(1)
#define FORCE CLI_LONG_OPTION(2)
#define ERROR_QUEUES CLI_LONG_OPTION(3)

static const cli_option options[] = {
    CLI_OPTION_CONFIG,
    { 'e', "endpoint", "NAME", "this endpoint only" },
    { DRY_RUN, "dry-run", NULL, "say what would be removed, and change nothing" },
    { FORCE, "force", NULL, "even with what waits: it is lost" },
    { ERROR_QUEUES, "error-queues", NULL, "also its error queues, each if it is empty; others may use them" },
    CLI_OPTION_END,
};

static void print_plan(const wb_endpoint_setup *setup, const wb_remains *remains, const cli_values *values)
{
    char text[CLI_REMAINS_SIZE];
    const char *name = setup->config->name;
    (void)printf("endpoint \"%s\": %s\n", name, cli_remains_text(remains, text));
    if (remains->queue.is_installed)
        (void)printf("would remove: queue \"%s\" (transport %s), and its subscriptions\n", name, setup->transport->name);
    if (remains->queue.is_installed && setup->info.error_queue && setup->info.delays == WB_DELAYS_BY_TRANSPORT)
        (void)printf("what the transport still delays to it is not counted, and would go to queue \"%s\" when it is due\n",
                     setup->info.error_queue);
    if (values->value[ERROR_QUEUES] && setup->info.error_queue)
        (void)printf("would remove, if empty: queue \"%s\"\n", setup->info.error_queue);
    for (size_t i = 0; values->value[ERROR_QUEUES] && i < setup->info.error_queue_count; i++)
        (void)printf("would remove, if empty: queue \"%s\"\n", setup->info.error_queues[i]);
    if (remains->has_tables)
        (void)printf("would remove: the tables of \"%s\" (persistence %s), its deduplication records with them\n", name,
                     setup->persistence->name);
    if (setup->store)
        (void)printf("would remove: its records in the deduplication store (persistence %s)\n", setup->store->name);
}

static int is_refused(const wb_remains *remains, const cli_values *values)
{
    return remains->queue.readers || ((remains->queue.messages || wb_removal_rows(remains)) && !values->value[FORCE]);
}

static int look_and_remove(const wb_endpoint_setup *setup, wb_endpoint *endpoint, const cli_values *values, int *ret_code,
                           wb_error *error)
{
    const char *name = setup->config->name;
    const uint32_t flags = (values->value[FORCE] ? WB_UNINSTALL_MESSAGES : 0) |
                           (values->value[ERROR_QUEUES] ? WB_UNINSTALL_ERROR_QUEUES : 0);
    wb_remains remains;
    int r = wb_removal_look(setup, endpoint, &remains, error);
    if (r != WB_OK)
        return r;
    if (values->value[DRY_RUN])
        print_plan(setup, &remains, values);
    if (is_refused(&remains, values))
        *ret_code = cli_remains_refuse(name, &remains, "removes it with what waits, which is lost");
    if (*ret_code != EX_OK || values->value[DRY_RUN])
        return WB_OK;
    r = wb_removal_run(endpoint, flags, error);
    if (r == WB_OK)
        (void)printf("endpoint \"%s\": uninstalled\n", name);
    return r;
}

static int uninstall(const wb_endpoint_setup *setup, const cli_values *values)
{
    wb_endpoint *endpoint = NULL;
    wb_error error = { 0 };
    int code = cli_remains_check(setup);
    if (code != EX_OK)
        return code;
    int r = wb_endpoint_create(setup, &endpoint, &error);
    if (r == WB_OK)
        r = look_and_remove(setup, endpoint, values, &code, &error);
    wb_endpoint_destroy(endpoint);
    if (r == WB_OK)
        return code;
    return cli_fail(r == WB_REJECT ? EX_TEMPFAIL : wb_error_exit_code(&error), "endpoint \"%s\": %s", setup->config->name,
                    error.text);
}

static int run(const cli_values *values)
{
    wb_setup *setup = NULL;
    int code = cli_load(values, WB_SETUP_WITHOUT_HANDLERS, &setup);
    if (code != EX_OK)
        return code;
    if (values->value['e']) {
        const wb_endpoint_setup *one = cli_endpoint(setup, values->value['e']);
        code = one ? uninstall(one, values) : EX_USAGE;
    } else {
        for (size_t i = 0; i < setup->endpoint_count && code == EX_OK; i++)
            code = uninstall(&setup->endpoints[i], values);
    }
    wb_setup_free(setup);
    return code;
}

const cli_verb cli_verb_uninstall = {
    .name = "uninstall",
    .summary = "remove the queues, subscriptions and tables of the endpoints",
    .help = "Stop the instances first. Refuses while anything waits: messages in the queue, delayed,\n"
            "written or pending ones. What others use stays: error and audit queues, exchanges and\n"
            "topics of events. May be run again at any time.\n"
            "Exit code 75: something waits, or an instance runs.",
    .options = options,
    .run = run,
};
