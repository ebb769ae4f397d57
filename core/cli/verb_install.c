/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <sysexits.h>

#include "core/cli/cli.h"
#include "core/endpoint/endpoint.h"

static const cli_option options[] = {
    CLI_OPTION_CONFIG,
    { 'e', "endpoint", "NAME", "this endpoint only" },
    { 'p', "print-sql", NULL, "print the SQL for the tables, and change nothing" },
    CLI_OPTION_END,
};

static int install_or_print(wb_endpoint *endpoint, const char *name, int print, wb_error *error)
{
    if (print) {
        const char *schema = wb_endpoint_schema(endpoint);
        (void)printf("-- endpoint \"%s\"\n%s\n", name, schema ? schema : "-- no persistence");
        return WB_OK;
    }
    int r = wb_endpoint_install(endpoint, error);
    if (r == WB_OK)
        (void)printf("endpoint \"%s\": installed\n", name);
    return r;
}

static int install_one(const wb_endpoint_setup *setup, int print)
{
    wb_endpoint *endpoint = NULL;
    wb_error error = { 0 };
    const char *name = setup->config->name;

    int r = wb_endpoint_create(setup, &endpoint, &error);
    if (r == WB_OK)
        r = install_or_print(endpoint, name, print, &error);
    wb_endpoint_destroy(endpoint);
    return r == WB_OK ? EX_OK
                      : cli_fail(wb_error_exit_code(&error), "endpoint \"%s\": %s", name, error.text);
}

static int run(const cli_values *values)
{
    wb_setup *setup = NULL;
    int code = cli_load(values, 0, &setup);
    if (code != EX_OK)
        return code;
    if (values->value['e']) {
        const wb_endpoint_setup *one = cli_endpoint(setup, values->value['e']);
        code = one ? install_one(one, values->value['p'] != NULL) : EX_USAGE;
    } else {
        for (size_t i = 0; i < setup->endpoint_count && code == EX_OK; i++)
            code = install_one(&setup->endpoints[i], values->value['p'] != NULL);
    }
    wb_setup_free(setup);
    return code;
}

const cli_verb cli_verb_install = {
    .name = "install",
    .summary = "make the queues, subscriptions and tables of the endpoints",
    .help = "May be run again at any time: what exists is left alone. Run it after an upgrade and\n"
            "whenever an endpoint handles new types. It needs more rights than running does.",
    .options = options,
    .run = run,
};
