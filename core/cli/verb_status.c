/* SPDX-License-Identifier: Apache-2.0
 *
 * waybill status: ask the process that runs with this configuration how it is, and print it.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "core/base/printable.h"
#include "core/cli/cli.h"
#include "core/cli/describe.h"
#include "core/http/ask.h"

static const cli_option options[] = { CLI_OPTION_CONFIG, CLI_OPTION_JSON, CLI_OPTION_END };

/* ---- printed ----------------------------------------------------------------------------- */

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

static json_int_t number_of(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

/* What was answered is of another process: a line of its is no line of ours. */
static void print_text(const char *before, const char *text, const char *behind)
{
    char printable[400];
    (void)wb_printable_copy(text, strlen(text), printable, sizeof printable);
    (void)printf("%s%s%s", before, printable, behind);
}

static void print_mean(const json_t *endpoint, const char *name, const char *what)
{
    const json_t *sum = json_object_get(endpoint, name);
    const json_int_t count = number_of(sum, "count");
    if (count)
        (void)printf("  %s %.3f s on average", what, json_real_value(json_object_get(sum, "sum")) / (double)count);
}

static void print_messages(const json_t *endpoint)
{
    const char *name;
    json_t *number;
    (void)printf(" ");
    json_object_foreach(json_object_get(endpoint, "messages"), name, number)
    {
        print_text(" ", name, "=");
        (void)printf("%" PRId64, (int64_t)json_integer_value(number));
    }
    (void)printf("\n");
}

static void print_rest(const json_t *endpoint)
{
    const json_t *pending = json_object_get(endpoint, "pending"), *workers = json_object_get(endpoint, "workers");
    (void)printf("  workers %" PRId64, (int64_t)number_of(workers, "working"));
    if (number_of(workers, "missing"))
        (void)printf(" (%" PRId64 " missing)", (int64_t)number_of(workers, "missing"));
    if (json_is_integer(json_object_get(endpoint, "queue_messages")))
        (void)printf("  queue %" PRId64, (int64_t)number_of(endpoint, "queue_messages"));
    print_mean(endpoint, "critical_time_seconds", "critical time");
    print_mean(endpoint, "handler_seconds", "handlers");
    if (json_is_object(pending) && (number_of(pending, "rows") || number_of(pending, "parked")))
        (void)printf("  pending rows %" PRId64 ", parked %" PRId64, (int64_t)number_of(pending, "rows"),
                     (int64_t)number_of(pending, "parked"));
    (void)printf("\n");
}

static void print_endpoint(const json_t *endpoint)
{
    const char *reason = text_of(endpoint, "reason");
    print_text("", text_of(endpoint, "name"), ": ");
    print_text("", text_of(endpoint, "state"), *reason ? " (" : "");
    print_text("", reason, *reason ? ")\n" : "\n");
    print_messages(endpoint);
    print_rest(endpoint);
}

static void print_status(const json_t *status)
{
    size_t i;
    json_t *endpoint;
    print_text("waybill ", text_of(status, "version"), ": ");
    print_text("", text_of(status, "state"), ", since ");
    print_text("", text_of(status, "started"), "\n");
    if (json_is_true(json_object_get(status, "stale")))
        (void)printf("nobody has looked at them for %" PRId64 " s: the process does not mind its endpoints\n",
                     (int64_t)number_of(status, "age_seconds"));
    json_array_foreach(json_object_get(status, "endpoints"), i, endpoint) print_endpoint(endpoint);
}

/* ---- asked ------------------------------------------------------------------------------- */

static int show(const wb_buffer *text, int as_json)
{
    json_t *status = json_loadb((const char *)text->data, text->size, 0, NULL);
    if (!json_is_object(status) || !json_is_string(json_object_get(status, "state"))) {
        json_decref(status);
        return cli_fail(EX_PROTOCOL, "what answers there is no waybill");
    }
    const int is_running = strcmp(text_of(status, "state"), "running") == 0 && !json_is_true(json_object_get(status, "stale"));
    if (as_json)
        cli_print_json(json_incref(status));
    else
        print_status(status);
    json_decref(status);
    return is_running ? EX_OK : EX_TEMPFAIL;
}

static int ask(const wb_config *config, int as_json)
{
    wb_buffer text = { 0 };
    wb_error error = { 0 };
    unsigned status = 0;
    int code;
    if (!config->http.listen)
        return cli_fail(EX_CONFIG, "%s has no group http: write http = { listen = \"127.0.0.1:9464\"; };", config->path);
    int r = wb_http_ask(&config->http, "/status", &status, &text, &error);
    if (r != WB_OK)
        code = cli_fail(r == WB_NOT_CONNECTED ? EX_UNAVAILABLE : EX_PROTOCOL, "%s", error.text);
    else if (status == 401)
        code = cli_fail(EX_NOPERM, "the process that answers has another token");
    else if (status != 200)
        code = cli_fail(EX_PROTOCOL, "the answer is %u", status);
    else
        code = show(&text, as_json);
    wb_buffer_free(&text);
    return code;
}

/* Nothing is loaded that the configuration names: who asks need not be able to run it. */
static int run(const cli_values *values)
{
    wb_problems problems = { 0 };
    wb_config *config = wb_config_load(cli_config_path(values), &problems);
    int code = EX_CONFIG;
    if (!config || problems.error_count)
        wb_problems_print(&problems, stderr);
    else
        code = ask(config, values->value['j'] != NULL);
    wb_config_free(config);
    wb_problems_free(&problems);
    return code;
}

const cli_verb cli_verb_status = {
    .name = "status",
    .summary = "ask the process that runs how its endpoints are",
    .help = "Asks where the group http of the configuration says that waybill run listens. Exit code: 0 all endpoints run, 75 one\n"
            "does not, or not as it should; 69 nobody answers.",
    .options = options,
    .run = run,
};
