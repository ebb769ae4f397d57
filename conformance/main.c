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

#include "conformance/kit.h"
#include "core/base/clock.h"
#include "core/cli/cli.h"

#define DEFAULT_PATIENCE (20 * WB_SECOND)

#define DEFAULT_TIME_LIMIT (300 * WB_SECOND)

#define CRASH_SERVER CLI_LONG_OPTION(1)
#define TIME_LIMIT CLI_LONG_OPTION(2)
#define BUSINESS CLI_LONG_OPTION(3)
#define EXCEPT CLI_LONG_OPTION(4)

static const cli_option options[] = {
    CLI_OPTION_CONFIG,
    { 'e', "endpoint", "NAME", "the endpoint whose plugin is tried; default: the first" },
    { 'o', "only", "TEXT", "only the cases whose name contains this; may be repeated" },
    { EXCEPT, "except", "TEXT", "not the cases whose name contains this; may be repeated" },
    { 'p', "patience", "SECONDS", "how long to wait for what should come; default: 20" },
    { TIME_LIMIT, "time-limit", "SECONDS", "how long a case may take before it has failed; default: 300" },
    { BUSINESS, "business", "FILE", "module that writes business data (waybill/sys/business.h), for a persistence" },
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

/* @return -1 to go on, otherwise the exit code. */
static int read_seconds(const char *option, const char *text, int64_t *ret_time)
{
    char *end = NULL;
    if (!text)
        return -1;
    long seconds = strtol(text, &end, 10);
    if (end == text || *end || seconds < 1 || seconds > 3600)
        return cli_fail(EX_USAGE, "%s \"%s\" is not 1 to 3600 seconds", option, text);
    *ret_time = seconds * WB_SECOND;
    return -1;
}

/* All that was given by an option that may be repeated, and NULL. @return NULL: it was not. */
static const char *const *collect(const cli_values *values, char letter, const char **texts)
{
    size_t count = 0;
    for (int i = 0; i < values->given_count; i++)
        if (values->given[i].letter == letter)
            texts[count++] = values->given[i].value;
    texts[count] = NULL;
    return count ? texts : NULL;
}

static int run(const cli_values *values)
{
    const char *only[CLI_GIVEN_MAX + 1], *except[CLI_GIVEN_MAX + 1];
    wb_setup *setup = NULL;
    const char *kind = values->arguments[0];
    wb_kit_options kit_options = { .crash_server = values->value[CRASH_SERVER],
                                   .only = collect(values, 'o', only),
                                   .except = collect(values, EXCEPT, except),
                                   .patience = DEFAULT_PATIENCE,
                                   .time_limit = DEFAULT_TIME_LIMIT };
    const char *business = values->value[BUSINESS];
    wb_error error = { 0 };
    int code;

    if (strcmp(kind, "transport") != 0 && strcmp(kind, "persistence") != 0)
        return cli_fail(EX_USAGE, "there is no kit \"%s\": transport or persistence", kind);
    if (business && strcmp(kind, "persistence") != 0)
        return cli_fail(EX_USAGE, "--business is for a persistence");
    if ((code = read_seconds("--patience", values->value['p'], &kit_options.patience)) >= 0 ||
        (code = read_seconds("--time-limit", values->value[TIME_LIMIT], &kit_options.time_limit)) >= 0)
        return code;
    if (business && wb_business_load(business, &kit_options.business, &error) != WB_OK)
        return cli_fail(EX_CONFIG, "%s", error.text);
    (void)signal(SIGPIPE, SIG_IGN); /* as `run` does: some libraries write to what broke */
    code = cli_load(values, WB_SETUP_PLUGINS_ONLY, &setup);
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
            "skipped and say why. What dies, exits or does not end in time has failed, and the next case\n"
            "goes on without it. Works on the real server, with queues and tables of its own: their\n"
            "names begin with the endpoint's. Exit code 0 when nothing failed, 70 otherwise.",
    .options = options,
    .repeated = (const char[]){ 'o', EXCEPT, 0 },
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
