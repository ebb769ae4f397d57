/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <sysexits.h>

#include "core/cli/cli.h"
#include "core/endpoint/endpoint.h"

#define SQL_API CLI_LONG_OPTION(1)
#define PRINT_SQL CLI_LONG_OPTION(2)

static const cli_option options[] = {
    CLI_OPTION_CONFIG,
    { 'e', "endpoint", "NAME", "this endpoint only" },
    { PRINT_SQL, "print-sql", NULL, "print the SQL for the tables, and change nothing" },
    { SQL_API, "sql-api", NULL, "make also what programs send messages with in SQL" },
    { 'r', "reset-positions", NULL, "forget how far partitions are done with: their topics were made anew" },
    CLI_OPTION_END,
};

/* The interface claims ids as the outbox does, and what it sends is sent by instances that run. */
static int check_sql_api(const wb_endpoint_setup *setup)
{
    const char *name = setup->config->name;
    const char *processor = setup->config->session.processor_endpoint;
    if (setup->plan.send_only && processor)
        return cli_fail(EX_CONFIG, "endpoint \"%s\": it is send-only and uses the tables of its processor: install the "
                                   "SQL interface of endpoint \"%s\"", name, processor);
    if (setup->plan.send_only || !setup->plan.outbox)
        return cli_fail(EX_CONFIG, "endpoint \"%s\": --sql-api wants an endpoint with an input queue and outbox.enabled = "
                                   "true (--endpoint NAME chooses one)", name);
    if (!(setup->persistence->capabilities & WB_CAP_WRITTEN))
        return cli_fail(EX_CONFIG, "endpoint \"%s\": the persistence \"%s\" has no interface in SQL", name,
                        setup->persistence->name);
    return EX_OK;
}

static int reset(wb_endpoint *endpoint, const char *name, wb_error *error)
{
    size_t count = 0;
    int r = wb_endpoint_reset_positions(endpoint, &count, error);
    if (r == WB_OK)
        (void)printf("endpoint \"%s\": positions of %zu partitions forgotten\n", name, count);
    return r;
}

static int install_or_print(wb_endpoint *endpoint, const char *name, const cli_values *values, wb_error *error)
{
    if (values->value[PRINT_SQL]) {
        const char *schema = wb_endpoint_schema(endpoint);
        const char *store = wb_endpoint_dedup_store_schema(endpoint);
        (void)printf("-- endpoint \"%s\"\n%s\n", name, schema ? schema : "-- no persistence");
        if (store)
            (void)printf("-- endpoint \"%s\", in its deduplication store\n%s\n", name, store);
        return WB_OK;
    }
    int r = wb_endpoint_install(endpoint, error);
    if (r == WB_OK)
        (void)printf("endpoint \"%s\": installed\n", name);
    return r == WB_OK && values->value['r'] ? reset(endpoint, name, error) : r;
}

static int install_one(const wb_endpoint_setup *setup, const cli_values *values)
{
    wb_endpoint *endpoint = NULL;
    wb_error error = { 0 };
    const char *name = setup->config->name;

    int r = wb_endpoint_create(setup, &endpoint, &error);
    if (r == WB_OK)
        r = install_or_print(endpoint, name, values, &error);
    wb_endpoint_destroy(endpoint);
    return r == WB_OK ? EX_OK
                      : cli_fail(wb_error_exit_code(&error), "endpoint \"%s\": %s", name, error.text);
}

static int check_reset(const cli_values *values)
{
    return values->value['r'] && values->value[PRINT_SQL]
               ? cli_fail(EX_USAGE, "--print-sql changes nothing, and --reset-positions does: one of them")
               : EX_OK;
}

static int install_as_asked(const wb_endpoint_setup *setup, const cli_values *values)
{
    int code = check_reset(values);
    if (code == EX_OK && values->value[SQL_API])
        code = check_sql_api(setup);
    return code == EX_OK ? install_one(setup, values) : code;
}

static int run(const cli_values *values)
{
    wb_setup *setup = NULL;
    int code = cli_load(values, values->value[SQL_API] ? WB_SETUP_SQL_API : 0, &setup);
    if (code != EX_OK)
        return code;
    if (values->value['e']) {
        const wb_endpoint_setup *one = cli_endpoint(setup, values->value['e']);
        code = one ? install_as_asked(one, values) : EX_USAGE;
    } else {
        for (size_t i = 0; i < setup->endpoint_count && code == EX_OK; i++)
            code = install_as_asked(&setup->endpoints[i], values);
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
