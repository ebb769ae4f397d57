/* SPDX-License-Identifier: Apache-2.0
 *
 * The program behind `waybill conformance`, which starts it with its own command line.
 */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "core/base/clock.h"
#include "core/cli/cli.h"
#include "conformance/kit.h"

#define DEFAULT_PATIENCE (20 * WB_SECOND)

#define CRASH_SERVER CLI_LONG_OPTION(1)

static const cli_option options[] = {
    CLI_OPTION_CONFIG,
    { 'e', "endpoint", "NAME", "the endpoint whose plugin is tried; default: the first" },
    { 'o', "only", "TEXT", "only the cases whose name contains this" },
    { 'p', "patience", "SECONDS", "how long to wait for what should come; default: 20" },
    { CRASH_SERVER, "crash-server", "COMMAND", "kills the server and starts it again; a shell command" },
    CLI_OPTION_END,
};

static const wb_endpoint_setup *choose(const wb_setup *setup, const char *name)
{
    if (name)
        return cli_endpoint(setup, name);
    return setup->endpoint_count ? &setup->endpoints[0] : NULL;
}

static int run_kit(const char *kind, const wb_endpoint_setup *endpoint, const wb_kit_options *kit_options)
{
    size_t failed;
    if (strcmp(kind, "transport") == 0)
        failed = wb_transport_kit(endpoint, kit_options, stdout);
    else if (!endpoint->persistence)
        return cli_fail(EX_USAGE, "endpoint \"%s\" has no persistence", endpoint->config->name);
    else
        failed = wb_persistence_kit(endpoint, kit_options, stdout);
    return failed ? EX_SOFTWARE : EX_OK;
}

static int read_patience(const char *text, int64_t *ret_patience)
{
    char *end = NULL;
    long seconds = strtol(text, &end, 10);
    if (end == text || *end || seconds < 1 || seconds > 3600)
        return -1;
    *ret_patience = seconds * WB_SECOND;
    return 0;
}

static int run(const cli_values *values)
{
    wb_setup *setup = NULL;
    const char *kind = values->arguments[0];
    wb_kit_options kit_options = { values->value[CRASH_SERVER], values->value['o'], DEFAULT_PATIENCE };

    if (strcmp(kind, "transport") != 0 && strcmp(kind, "persistence") != 0)
        return cli_fail(EX_USAGE, "there is no kit \"%s\": transport or persistence", kind);
    if (values->value['p'] && read_patience(values->value['p'], &kit_options.patience) < 0)
        return cli_fail(EX_USAGE, "--patience \"%s\" is not 1 to 3600 seconds", values->value['p']);
    (void)signal(SIGPIPE, SIG_IGN); /* as `run` does: some libraries write to what broke */
    int code = cli_load(values, WB_SETUP_PLUGINS_ONLY, &setup);
    if (code != EX_OK)
        return code;
    const wb_endpoint_setup *endpoint = choose(setup, values->value['e']);
    code = endpoint ? run_kit(kind, endpoint, &kit_options) : EX_USAGE;
    wb_setup_free(setup);
    return code;
}

static const cli_verb verb = {
    .name = "conformance",
    .arguments = "transport|persistence",
    .argument_min = 1,
    .argument_max = 1,
    .summary = "try whether the plugin an endpoint selects keeps what it promises",
    .help = "Prints TAP, one line a case; cases that the plugin's declared capabilities exclude are\n"
            "skipped and say why. Works on the real server, with queues and tables of its own: their\n"
            "names begin with the endpoint's. Exit code 0 when nothing failed, 70 otherwise.",
    .options = options,
    .run = run,
};

int main(int argc, char **argv)
{
    cli_values values;
    int code = cli_parse(&verb, argc, argv, &values);
    if (code < 0)
        code = verb.run(&values);
    if (fflush(stdout) != 0 || ferror(stdout))
        return cli_fail(EX_IOERR, "cannot write the output");
    return code;
}
