/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "core/cli/cli.h"
#include "core/cli/describe.h"

static const cli_option options[] = { CLI_OPTION_JSON, CLI_OPTION_END };

static int list_verbs(void)
{
    (void)printf("usage: waybill VERB [ARGUMENT...] [OPTION...]\n\n"
                 "Transactional messaging: runs endpoints and looks after them.\n\n");
    for (const cli_verb *const *verb = cli_verbs; *verb; verb++)
        (void)printf("  %-10s %s\n", (*verb)->name, (*verb)->summary);
    (void)printf("\nwaybill VERB --help says more about a verb, waybill help options about the\n"
                 "configuration file, waybill plugins --describe about plugins.\n");
    return EX_OK;
}

static int list_verbs_json(void)
{
    json_t *array = json_array();
    for (const cli_verb *const *verb = cli_verbs; *verb; verb++)
        json_array_append_new(array, json_pack("{s:s, s:s}", "name", (*verb)->name, "summary", (*verb)->summary));
    cli_print_json(array);
    return EX_OK;
}

static int explain(const cli_verb *verb, int is_json)
{
    char name[] = "help", option[] = "--help", json[] = "--help=json";
    char *arguments[] = { name, is_json ? json : option, NULL };
    if (verb->program)
        return cli_become(verb, arguments);
    if (is_json)
        cli_print_help_json(verb);
    else
        cli_print_help(verb);
    return EX_OK;
}

static void describe_metrics(int as_json)
{
    if (as_json)
        cli_print_json(cli_metrics_json());
    else
        cli_describe_metrics();
}

static int run(const cli_values *values)
{
    const char *topic = values->argument_count ? values->arguments[0] : NULL;
    const int is_json = values->value['j'] != NULL;
    if (!topic)
        return is_json ? list_verbs_json() : list_verbs();
    if (strcmp(topic, "options") == 0 && is_json) {
        cli_print_json(cli_sections_json());
        return EX_OK;
    }
    if (strcmp(topic, "options") == 0) {
        cli_describe_sections();
        return EX_OK;
    }
    if (strcmp(topic, "metrics") == 0) {
        describe_metrics(values->value['j'] != NULL);
        return EX_OK;
    }
    for (const cli_verb *const *verb = cli_verbs; *verb; verb++)
        if (strcmp((*verb)->name, topic) == 0)
            return explain(*verb, is_json);
    return cli_fail(EX_USAGE, "there is no help on \"%s\" (see: waybill help)", topic);
}

const cli_verb cli_verb_help = {
    .name = "help",
    .arguments = "[VERB|options|metrics]",
    .argument_max = 1,
    .summary = "explain a verb, the options of the configuration file, or metrics",
    .options = options,
    .run = run,
};
