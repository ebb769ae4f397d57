/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <sysexits.h>

#include "core/base/host.h"
#include "core/cli/cli.h"
#include "core/cli/progress.h"
#include "core/endpoint/endpoint.h"
#include "core/endpoint/subscribed.h"

#define SQL_API CLI_LONG_OPTION(1)
#define PRINT_SQL CLI_LONG_OPTION(2)
#define UNSUBSCRIBE CLI_LONG_OPTION(3)

static const cli_option options[] = {
    CLI_OPTION_CONFIG,
    { 'e', "endpoint", "NAME", "this endpoint only" },
    { PRINT_SQL, "print-sql", NULL, "print the SQL for the tables, and change nothing" },
    { SQL_API, "sql-api", NULL, "make also what programs send messages with in SQL" },
    { UNSUBSCRIBE, "unsubscribe", NULL, "end what it subscribed to earlier and no module handles any more" },
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

/* ---- what is subscribed to, and handled by nobody ------------------------------------------ */

static void list(const char *name, const wb_subscribed *unhandled, const char *what)
{
    for (size_t i = 0; i < unhandled->count; i++)
        (void)printf("endpoint \"%s\": %s \"%s\", which no module handles any more\n", name, what, unhandled->types[i]);
}

static int tell_unhandled(const wb_endpoint_setup *setup, wb_endpoint *endpoint, int is_over, wb_error *error)
{
    const wb_pipeline *p = wb_endpoint_pipeline(endpoint);
    const char *name = setup->config->name;
    wb_subscribed unhandled;
    wb_arena arena;
    wb_arena_init(&arena, 4096);
    int r = wb_subscribed_find(setup, p, 0, &arena, &unhandled, error);
    if (r == WB_OK && is_over)
        r = wb_subscribed_end(setup, p, &unhandled, error);
    if (r == WB_OK)
        list(name, &unhandled, is_over ? "unsubscribed from" : "still subscribed to");
    if (r == WB_OK && unhandled.count && !is_over)
        (void)printf("endpoint \"%s\": waybill install --unsubscribe ends that\n", name);
    wb_arena_free(&arena);
    return r;
}

/* What ends by itself, as where a group reads topics, needs no record. */
static int check_unsubscribe(const wb_endpoint_setup *setup)
{
    if (!wb_subscribed_can_end(setup) || wb_subscribed_is_known(setup))
        return EX_OK;
    return cli_fail(EX_UNAVAILABLE, "endpoint \"%s\": nobody knows what it subscribed to: the broker does not tell, and there "
                                    "is no persistence that keeps a record", setup->config->name);
}

static int install_or_print(const wb_endpoint_setup *setup, wb_endpoint *endpoint, const cli_values *values, wb_error *error)
{
    const char *name = setup->config->name;
    if (values->value[PRINT_SQL]) {
        const char *schema = wb_endpoint_schema(endpoint);
        const char *store = wb_endpoint_dedup_store_schema(endpoint);
        (void)printf("-- endpoint \"%s\"\n%s\n", name, schema ? schema : "-- no persistence");
        if (store)
            (void)printf("-- endpoint \"%s\", in its deduplication store\n%s\n", name, store);
        return WB_OK;
    }
    cli_progress_begin("subscribing", "types", 0, 0);
    wb_host_watch_progress(cli_progress_tell);
    int r = wb_endpoint_install(endpoint, error);
    cli_progress_end();
    if (r == WB_OK)
        (void)printf("endpoint \"%s\": installed\n", name);
    if (r == WB_OK)
        r = tell_unhandled(setup, endpoint, values->value[UNSUBSCRIBE] != NULL, error);
    return r == WB_OK && values->value['r'] ? reset(endpoint, name, error) : r;
}

static int install_one(const wb_endpoint_setup *setup, const cli_values *values)
{
    wb_endpoint *endpoint = NULL;
    wb_error error = { 0 };
    const char *name = setup->config->name;

    int r = wb_endpoint_create(setup, &endpoint, &error);
    if (r == WB_OK)
        r = install_or_print(setup, endpoint, values, &error);
    wb_endpoint_destroy(endpoint);
    return r == WB_OK ? EX_OK
                      : cli_fail(wb_error_exit_code(&error), "endpoint \"%s\": %s", name, error.text);
}

static int check_printing(const cli_values *values)
{
    const char *changes = values->value['r'] ? "reset-positions" : values->value[UNSUBSCRIBE] ? "unsubscribe" : NULL;
    return changes && values->value[PRINT_SQL]
               ? cli_fail(EX_USAGE, "--print-sql changes nothing, and --%s does: one of them", changes)
               : EX_OK;
}

static int install_as_asked(const wb_endpoint_setup *setup, const cli_values *values)
{
    int code = check_printing(values);
    if (code == EX_OK && values->value[SQL_API])
        code = check_sql_api(setup);
    if (code == EX_OK && values->value[UNSUBSCRIBE])
        code = check_unsubscribe(setup);
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
            "whenever an endpoint handles new types. It needs more rights than running does. Says what was\n"
            "subscribed to by an earlier one and is handled no more.",
    .options = options,
    .run = run,
};
