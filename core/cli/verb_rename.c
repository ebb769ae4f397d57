/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "core/cli/cli.h"
#include "core/cli/remains.h"
#include "core/endpoint/renaming.h"

#define DRY_RUN CLI_LONG_OPTION(1)
#define FORCE CLI_LONG_OPTION(2)

static const cli_option options[] = {
    CLI_OPTION_CONFIG,
    { DRY_RUN, "dry-run", NULL, "say what would be done, and change nothing" },
    { FORCE, "force", NULL, "even with rows that wait, whose sends may name the old queue, without tables, or with two" },
    CLI_OPTION_END,
};

/* Whoever edits the file first has the new name there, else it is the old one. */
static const wb_endpoint_setup *find_setup(const wb_setup *setup, const char *former, const char *name)
{
    const wb_endpoint_setup *one = wb_setup_endpoint(setup, name), *other = wb_setup_endpoint(setup, former);
    if (!one != !other)
        return one ? one : other;
    (void)cli_fail(EX_USAGE, one ? "the configuration has both, \"%s\" and \"%s\": it is one endpoint, under one of its names"
                                 : "the configuration has neither \"%s\" nor \"%s\"",
                   former, name);
    return NULL;
}

/* What is under the old one is emptied and removed. */
static int check_name(const wb_config *config, const char *name)
{
    const wb_endpoint_config *user = wb_config_user_of(config, name);
    if (!wb_config_is_name(name))
        return cli_fail(EX_USAGE, "\"%s\" is no name of an endpoint: give one of 1 to %d printable ASCII characters without "
                                  "blanks, quotes, back-quotes and backslashes", name, WB_ENDPOINT_NAME_MAX);
    if (user)
        return cli_fail(EX_USAGE, "\"%s\" is an error queue or the audit queue of endpoint \"%s\", and no endpoint's: give the "
                                  "endpoint's names", name, user->name);
    return EX_OK;
}

static int check(const wb_endpoint_setup *setup)
{
    const char *name = setup->config->name;
    if (setup->plan.send_only)
        return cli_fail(EX_CONFIG, "endpoint \"%s\": it is send-only and has nothing that would be renamed", name);
    if (setup->config->failures.at.is_set)
        return cli_fail(EX_CONFIG, "endpoint \"%s\": what it keeps of an error queue stays under its name: install another one, and "
                                   "uninstall this when nothing is left", name);
    if (setup->plan.by_position && !setup->plan.by_id)
        return cli_fail(EX_CONFIG, "endpoint \"%s\": it knows messages by their positions alone, and what is moved gets new "
                                   "ones: set outbox.deduplication.by = [\"id\", \"position\"]", name);
    return cli_remains_check(setup);
}

static void print_plan(const wb_renaming *renaming)
{
    char text[CLI_REMAINS_SIZE];
    if (renaming->is_done) {
        (void)printf("endpoint \"%s\": is \"%s\" already\n", renaming->former, renaming->name);
        return;
    }
    (void)printf("endpoint \"%s\": %s\n", renaming->former, cli_remains_text(&renaming->remains, text));
    if (renaming->remains.has_tables && renaming->arrived.has_tables)
        (void)printf("would remove the tables of \"%s\", since \"%s\" has some\n", renaming->former, renaming->name);
    else if (renaming->remains.has_tables)
        (void)printf("would give its tables to \"%s\"\n", renaming->name);
    if (renaming->arrived.queue.is_installed)
        (void)printf("would take the queue of \"%s\", which is there: %s\n", renaming->name,
                     cli_remains_text(&renaming->arrived, text));
    (void)printf("would install \"%s\"\n", renaming->name);
    if (renaming->remains.queue.is_installed)
        (void)printf("would end the subscriptions of \"%s\", move what waits, and remove its queue\n", renaming->former);
}

static int refuse(const wb_renaming *renaming)
{
    if (renaming->arrived.queue.readers && !renaming->remains.queue.readers)
        return cli_remains_refuse(renaming->name, &renaming->arrived, "");
    return cli_remains_refuse(renaming->former, &renaming->remains,
                              "renames it with its rows, and what they send to the old name goes to the error queue");
}

/* The tables have the new name first of all, so it must not run under the old one again. */
static int fail(const wb_renaming *renaming, int result, const wb_error *error)
{
    return cli_fail(result == WB_REJECT ? EX_TEMPFAIL : wb_error_exit_code(error), "endpoint \"%s\": %s%s", renaming->former,
                    error->text,
                    renaming->is_begun ? "; a part is done: repeat the command, and install nothing under the old name" : "");
}

static void print_done(const wb_renaming *renaming)
{
    (void)printf("endpoint \"%s\": is \"%s\" now; %" PRIu64 " messages moved", renaming->former, renaming->name,
                 renaming->transferred.moved);
    if (renaming->transferred.failed)
        (void)printf(", %" PRIu64 " to the error queue", renaming->transferred.failed);
    (void)printf("\n");
}

static int rename_it(const wb_endpoint_setup *setup, wb_renaming *renaming, const cli_values *values)
{
    wb_error error = { 0 };
    int code = check(setup);
    if (code != EX_OK)
        return code;
    const int is_dry = values->value[DRY_RUN] != NULL;
    int r = is_dry ? wb_renaming_look(setup, renaming, &error) : wb_renaming_run(setup, renaming, &error);
    if (r != WB_OK)
        return fail(renaming, r, &error);
    if (is_dry)
        print_plan(renaming);
    if (renaming->is_refused)
        return refuse(renaming);
    if (!is_dry)
        print_done(renaming);
    return EX_OK;
}

static int run(const cli_values *values)
{
    wb_setup *setup = NULL;
    wb_renaming renaming = { .former = values->arguments[0], .name = values->arguments[1],
                             .is_forced = values->value[FORCE] != NULL };
    if (strcmp(renaming.former, renaming.name) == 0)
        return cli_fail(EX_USAGE, "the two names are the same");
    int code = cli_load(values, 0, &setup);
    if (code != EX_OK)
        return code;
    code = check_name(setup->config, renaming.former);
    if (code == EX_OK)
        code = check_name(setup->config, renaming.name);
    const wb_endpoint_setup *one = code == EX_OK ? find_setup(setup, renaming.former, renaming.name) : NULL;
    code = one ? rename_it(one, &renaming, values) : EX_USAGE;
    wb_setup_free(setup);
    return code;
}

const cli_verb cli_verb_rename = {
    .name = "rename",
    .arguments = "OLD NEW",
    .argument_min = 2,
    .argument_max = 2,
    .summary = "give an endpoint another name, with its messages and its deduplication",
    .help = "Stop the instances first. The configuration has the endpoint under either name, and under\n"
            "the new one afterwards. What dies in the middle is completed by the same command.\n"
            "Neither is an error or audit queue: what is under OLD is emptied and removed.\n"
            "Exit code 75: rows wait in its tables, or an instance runs under either name; 72: nothing\n"
            "is under OLD, or a queue that is not known to be the endpoint's.",
    .options = options,
    .run = run,
};
