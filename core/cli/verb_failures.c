/* SPDX-License-Identifier: Apache-2.0
 *
 * failures: what an endpoint keeps of an error queue, seen and seen to while it runs or not. What is
 * done there is a file each (failures.h).
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "core/cli/describe.h"
#include "core/cli/failures.h"
#include "core/config/units.h"

#define OPTION_FAILURE CLI_LONG_OPTION(1)
#define OPTION_OF CLI_LONG_OPTION(2)
#define OPTION_QUEUE CLI_LONG_OPTION(3)
#define OPTION_REASON CLI_LONG_OPTION(4)
#define OPTION_GROUP CLI_LONG_OPTION(5)
#define OPTION_STATUS CLI_LONG_OPTION(6)
#define OPTION_FROM CLI_LONG_OPTION(7)
#define OPTION_BEFORE CLI_LONG_OPTION(8)
#define OPTION_SKIP CLI_LONG_OPTION(9)
#define OPTION_LIMIT CLI_LONG_OPTION(10)
#define OPTION_ALL CLI_LONG_OPTION(11)
#define OPTION_DRY_RUN CLI_LONG_OPTION(12)
#define OPTION_BODY CLI_LONG_OPTION(13)
/* 14: CLI_FAILURES_REMOVE_HEADER */
#define OPTION_FILE CLI_LONG_OPTION(15)

static const cli_option options[] = {
    CLI_OPTION_CONFIG,
    { 'e', "endpoint", "NAME", "who keeps them; default: the first in the file with a group failures" },
    { OPTION_FAILURE, "failure", "ID", "the failure with this id, as list shows it" },
    { 'i', "id", "ID", "messages with this id" },
    { 't', "type", "TYPE", "messages of this type" },
    { OPTION_OF, "of", "NAME", "messages that this endpoint could not handle" },
    { OPTION_QUEUE, "queue", "QUEUE", "messages that failed in this queue" },
    { OPTION_REASON, "reason", "TEXT", "messages with this in the reason" },
    { OPTION_GROUP, "group", "GROUP", "messages of this group: of one type and reason" },
    { OPTION_STATUS, "status", "STATUS", "failed (default), retrying, resolved, archived or any" },
    { OPTION_FROM, "failed-from", "TIME", "failed then or later, e.g. 2026-12-31T08:00:00Z" },
    { OPTION_BEFORE, "failed-before", "TIME", "failed before" },
    { OPTION_SKIP, "skip", "N", "not the first so many" },
    { OPTION_LIMIT, "limit", "N", "at most so many, in the order in which they failed" },
    { OPTION_ALL, "all", NULL, "retry, archive, discard: all, where nothing else says which" },
    { OPTION_DRY_RUN, "dry-run", NULL, "retry, edit-retry, archive, discard: say which, and change nothing" },
    { OPTION_BODY, "body", NULL, "show: the body alone, as it is" },
    { 'f', "body-file", "FILE", "edit-retry: the body is that of the file; - is standard input" },
    { 'H', "header", "NAME=VALUE", "edit-retry: a header, in place of one of that name; may be repeated" },
    { CLI_FAILURES_REMOVE_HEADER, "remove-header", "NAME", "edit-retry: without that header; may be repeated" },
    { OPTION_FILE, "file", "FILE", "export, import: that file; default, and -: the standard stream" },
    CLI_OPTION_JSON,
    CLI_OPTION_END,
};

static const struct deed {
    const char *name;
    int (*run)(cli_failures *f);
    int changes;
} deeds[] = { { "list", cli_failures_list, 0 },       { "group", cli_failures_group, 0 },
              { "show", cli_failures_show, 0 },       { "retry", cli_failures_retry, 1 },
              { "edit-retry", cli_failures_edit_retry, 1 },
              { "archive", cli_failures_archive, 1 }, { "discard", cli_failures_discard, 1 },
              { "export", cli_failures_export, 0 },   { "import", cli_failures_import, 0 } };

static const struct deed *find_deed(const char *name)
{
    for (size_t i = 0; i < sizeof deeds / sizeof deeds[0]; i++)
        if (strcmp(deeds[i].name, name) == 0)
            return &deeds[i];
    return NULL;
}

static int read_number(const char *option, const char *text, size_t *ret_number)
{
    char *end = NULL;
    if (!text)
        return EX_OK;
    errno = 0;
    const long long number = strtoll(text, &end, 10);
    if (end == text || *end || errno || number < 1)
        return cli_fail(EX_USAGE, "%s \"%s\" is not a number, 1 or more", option, text);
    *ret_number = (size_t)number;
    return EX_OK;
}

/* 0 is no time at all: what is not later than 1970 is the first moment after. */
static int read_time(const char *option, const char *text, int64_t *ret_time)
{
    if (text && wb_time_parse(text, ret_time) != WB_UNIT_OK)
        return cli_fail(EX_USAGE, "%s \"%s\" is not a time like 2026-12-31T08:00:00Z (UTC)", option, text);
    if (text && *ret_time < 1)
        *ret_time = 1;
    return EX_OK;
}

static int read_filter(const cli_values *v, cli_failed_filter *f)
{
    const char *status = v->value[OPTION_STATUS];
    *f = (cli_failed_filter){ .key = v->value[OPTION_FAILURE], .id = v->value['i'],
                              .type = v->value['t'],             .endpoint = v->value[OPTION_OF],
                              .queue = v->value[OPTION_QUEUE],   .reason = v->value[OPTION_REASON],
                              .group = v->value[OPTION_GROUP],   .status = WB_FAILED_WAITS };
    if (status && (f->status = cli_failed_status(status)) < 0)
        return cli_fail(EX_USAGE, "--status \"%s\" is not failed, retrying, resolved, archived or any", status);
    if (f->reason && !*f->reason)
        return cli_fail(EX_USAGE, "--reason is empty, which is a part of every reason");
    int code = read_number("--skip", v->value[OPTION_SKIP], &f->skip);
    if (code == EX_OK)
        code = read_number("--limit", v->value[OPTION_LIMIT], &f->limit);
    if (code == EX_OK)
        code = read_time("--failed-from", v->value[OPTION_FROM], &f->from);
    return code == EX_OK ? read_time("--failed-before", v->value[OPTION_BEFORE], &f->before) : code;
}

static int check_file(const cli_values *v, const struct deed *deed, const cli_failed_filter *f, int narrows)
{
    const int is_import = deed->run == cli_failures_import;
    if (v->value[OPTION_FILE] && !is_import && deed->run != cli_failures_export)
        return cli_fail(EX_USAGE, "only export and import take --file");
    if (is_import && (narrows || f->skip || f->limit || v->value[OPTION_STATUS] || v->value[OPTION_DRY_RUN]))
        return cli_fail(EX_USAGE, "import takes all of the file");
    return EX_OK;
}

static int check_edits(const cli_values *v, const struct deed *deed)
{
    const int are_given = v->value['f'] || v->value['H'] || v->value[CLI_FAILURES_REMOVE_HEADER];
    if (are_given == (deed->run == cli_failures_edit_retry))
        return EX_OK;
    return cli_fail(EX_USAGE, "%s", are_given ? "only edit-retry takes --body-file, --header and --remove-header"
                                              : "say what is edited: --body-file, --header, --remove-header");
}

/* What changes messages says which: a slip of the finger is not to retry all of them. */
static int check_usage(const cli_values *v, const struct deed *deed, cli_failed_filter *f)
{
    const int is_named = f->key || f->id;
    const int narrows = is_named || f->type || f->endpoint || f->queue || f->reason || f->group || f->from || f->before;
    if (deed->run == cli_failures_show && !is_named)
        return cli_fail(EX_USAGE, "say which: --failure or --id");
    if (deed->run == cli_failures_show && !v->value[OPTION_STATUS])
        f->status = WB_FAILED_ANY;
    if (deed->changes && !narrows && !v->value[OPTION_ALL])
        return cli_fail(EX_USAGE, "say which: --failure, --id, --group, --type, --of, --queue, --reason, --failed-from, "
                                  "--failed-before, or --all");
    if ((deed->run == cli_failures_retry || deed->run == cli_failures_edit_retry) && f->status != WB_FAILED_WAITS)
        return cli_fail(EX_USAGE, "only what is failed is retried: of what is retrying nobody knows yet whether it was handled; "
                                  "archived messages are there to be looked at");
    const int code = check_edits(v, deed);
    return code == EX_OK ? check_file(v, deed, f, narrows) : code;
}

/* ---- the endpoint ------------------------------------------------------------------------------ */

static const wb_endpoint_setup *choose(const wb_setup *setup, const char *name)
{
    const wb_endpoint_setup *chosen = name ? cli_endpoint(setup, name) : NULL;
    for (size_t i = 0; !name && !chosen && i < setup->endpoint_count; i++)
        if (setup->endpoints[i].config->failures.at.is_set)
            chosen = &setup->endpoints[i];
    if (chosen && chosen->config->failures.at.is_set)
        return chosen;
    if (chosen)
        (void)cli_fail(EX_USAGE, "endpoint \"%s\" in %s keeps no failed messages: it has no group failures", name, setup->config->path);
    else if (!name)
        (void)cli_fail(EX_USAGE, "no endpoint in %s keeps failed messages: none has a group failures", setup->config->path);
    return NULL;
}

static int open_and_do(cli_failures *f, int (*deed)(cli_failures *f))
{
    int r = wb_endpoint_create(f->setup, &f->endpoint, &f->error);
    if (r == WB_OK)
        r = wb_endpoint_open_storage(f->endpoint, &f->session, &f->error);
    if (r == WB_OK)
        f->ops = f->setup->persistence_ops->interface(f->session, WB_FAILED_INTERFACE);
    const int code = r == WB_OK ? deed(f) : cli_failures_fail(f);
    if (f->session)
        f->setup->persistence_ops->close(f->session);
    wb_endpoint_destroy(f->endpoint);
    return code;
}

static int run_on(cli_failures *f, const wb_setup *setup, const struct deed *deed)
{
    const cli_values *v = f->values;
    f->setup = choose(setup, v->value['e']);
    const int is_content = (deed->run == cli_failures_show && f->is_body) || deed->run == cli_failures_export;
    f->is_json = v->value['j'] && !is_content;
    f->outcomes = f->is_json ? json_array() : NULL;
    wb_arena_init(&f->arena, 64 * 1024);
    const int code = f->setup ? open_and_do(f, deed->run) : EX_USAGE;
    for (size_t i = 0; i < json_array_size(f->outcomes); i++)
        cli_print_element(f->shown++, json_incref(json_array_get(f->outcomes, i)));
    if (f->is_json && (code == EX_OK || code == EX_TEMPFAIL || code == EX_NOINPUT || f->shown))
        cli_print_end(f->shown);
    json_decref(f->outcomes);
    free(f->found);
    wb_arena_free(&f->arena);
    return code;
}

static int run(const cli_values *values)
{
    cli_failures f = { .values = values, .is_dry = values->value[OPTION_DRY_RUN] != NULL, .is_body = values->value[OPTION_BODY] != NULL,
                       .file = values->value[OPTION_FILE] };
    wb_setup *setup = NULL;
    const struct deed *deed = find_deed(values->arguments[0]);
    if (!deed)
        return cli_fail(EX_USAGE, "\"%s\" is not list, show, group, retry, edit-retry, archive, discard, export or import", values->arguments[0]);
    int code = read_filter(values, &f.filter);
    if (code == EX_OK)
        code = check_usage(values, deed, &f.filter);
    if (code == EX_OK)
        code = cli_load(values, WB_SETUP_WITHOUT_HANDLERS, &setup);
    if (code != EX_OK)
        return code;
    code = run_on(&f, setup, deed);
    wb_setup_free(setup);
    return code;
}

const cli_verb cli_verb_failures = {
    .name = "failures",
    .arguments = "list|show|group|retry|edit-retry|archive|discard|export|import",
    .argument_min = 1,
    .argument_max = 1,
    .summary = "see what failed, and see to it: an endpoint with a group failures keeps it",
    .help = "Safe while the endpoint runs, and beside others who do the same. A retry sends a message back\n"
            "to the queue in which it failed, with its id, once, whoever dies on the way; edited, with a new id.\n"
            "Exit code 66: there is no such message. 75: some were left alone, somebody else has seen to them.",
    .options = options,
    .repeated = (const char[]){ 'H', CLI_FAILURES_REMOVE_HEADER, 0 },
    .run = run,
};
