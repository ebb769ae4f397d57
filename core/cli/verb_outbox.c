/* SPDX-License-Identifier: Apache-2.0
 *
 * outbox: the tables of an endpoint's outbox, seen and looked after, also while the endpoint runs.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "core/cli/describe.h"
#include "core/cli/outbox.h"
#include "core/cli/waiting.h"
#include "core/config/units.h"
#include "core/message/ids.h"
#include "core/pipeline/pipeline.h"

#define OPTION_OLDER_THAN CLI_LONG_OPTION(1)
#define OPTION_EXACT CLI_LONG_OPTION(2)
#define OPTION_LIMIT CLI_LONG_OPTION(3)
#define OPTION_AFTER CLI_LONG_OPTION(4)
#define OPTION_PARKED CLI_LONG_OPTION(5)
#define OPTION_DRY_RUN CLI_LONG_OPTION(6)
#define OPTION_FORCE CLI_LONG_OPTION(7)

static const cli_option options[] = {
    CLI_OPTION_CONFIG,
    { 'e', "endpoint", "NAME", "whose outbox; default: the first in the file" },
    { OPTION_EXACT, "exact", NULL, "stats, cleanup --dry-run: count all, however long it takes" },
    { OPTION_OLDER_THAN, "older-than", "DURATION",
      "pending: such rows; sweep: default sweep_after; cleanup: default retention" },
    { OPTION_PARKED, "parked", NULL, "pending: parked rows alone; sweep: those that are not due yet, too" },
    { OPTION_LIMIT, "limit", "N", "pending: at most so many rows" },
    { OPTION_AFTER, "after", "BATCH", "pending: rows behind this one, to go on after --limit" },
    { OPTION_DRY_RUN, "dry-run", NULL, "cleanup: say how many records it would remove" },
    { OPTION_FORCE, "force", NULL, "cleanup: even what is younger than the retention" },
    CLI_OPTION_JSON,
    CLI_OPTION_END,
};

static const struct deed {
    const char *name;
    int (*run)(cli_outbox *o);
    const char *takes; /* the keys of the options that not all have */
    int is_about_records; /* wants the deduplication store, too */
} deeds[] = {
    { "stats", cli_outbox_stats, (const char[]){ OPTION_EXACT, 0 }, 1 },
    { "pending", cli_outbox_pending,
      (const char[]){ OPTION_OLDER_THAN, OPTION_PARKED, OPTION_LIMIT, OPTION_AFTER, 0 }, 0 },
    { "sweep", cli_outbox_sweep, (const char[]){ OPTION_OLDER_THAN, OPTION_PARKED, 0 }, 0 },
    { "cleanup", cli_outbox_cleanup,
      (const char[]){ OPTION_OLDER_THAN, OPTION_EXACT, OPTION_DRY_RUN, OPTION_FORCE, 0 }, 1 },
};

/* ---- what deeds share -------------------------------------------------------------------- */

int cli_outbox_fail(const cli_outbox *o)
{
    return cli_fail(wb_error_exit_code(&o->error), "endpoint \"%s\": %s", o->setup->config->name, o->error.text);
}

void cli_outbox_print_json(json_t *value)
{
    (void)json_dumpf(value, stdout, CLI_JSON);
    (void)putchar('\n');
    json_decref(value);
}

json_t *cli_outbox_batch_json(uint64_t batch)
{
    return batch ? cli_waiting_time_json(wb_batch_number_time(batch)) : json_null();
}

/* ---- the command line ---------------------------------------------------------------------- */

static const struct deed *find_deed(const char *name)
{
    for (size_t i = 0; i < sizeof deeds / sizeof deeds[0]; i++)
        if (strcmp(deeds[i].name, name) == 0)
            return &deeds[i];
    return NULL;
}

static const char *name_of(char key)
{
    size_t i = 0;
    while (options[i].letter != key)
        i++;
    return options[i].name;
}

static int check_options(const cli_values *values, const struct deed *deed)
{
    for (char key = OPTION_OLDER_THAN; key <= OPTION_FORCE; key++)
        if (values->value[(int)key] && !strchr(deed->takes, key))
            return cli_fail(EX_USAGE, "--%s is not for outbox %s", name_of(key), deed->name);
    if (deed->run == cli_outbox_cleanup && values->value[OPTION_EXACT] && !values->value[OPTION_DRY_RUN])
        return cli_fail(EX_USAGE, "--exact goes with --dry-run");
    return EX_OK;
}

static int read_number(const char *option, const char *text, uint64_t *ret_number)
{
    char *end = NULL;
    if (!text)
        return EX_OK;
    errno = 0;
    *ret_number = strtoull(text, &end, 10);
    if (end == text || *end || errno || strchr(text, '-') || *ret_number == 0)
        return cli_fail(EX_USAGE, "%s \"%s\" is not a number, 1 or more", option, text);
    return EX_OK;
}

static int read_age(cli_outbox *o, const char *text)
{
    o->older_than = -1;
    if (text && (wb_duration_parse(text, &o->older_than) != WB_UNIT_OK || o->older_than < 0))
        return cli_fail(EX_USAGE, "--older-than \"%s\" is not a duration like 10s, 2h or 7d", text);
    return EX_OK;
}

static int read_options(cli_outbox *o, const cli_values *values)
{
    uint64_t limit = 0;
    o->is_json = values->value['j'] != NULL;
    o->is_exact = values->value[OPTION_EXACT] != NULL;
    o->is_parked = values->value[OPTION_PARKED] != NULL;
    o->is_dry = values->value[OPTION_DRY_RUN] != NULL;
    o->is_forced = values->value[OPTION_FORCE] != NULL;
    int code = read_number("--limit", values->value[OPTION_LIMIT], &limit);
    o->limit = limit < SIZE_MAX ? (size_t)limit : SIZE_MAX - 1;
    if (code == EX_OK)
        code = read_number("--after", values->value[OPTION_AFTER], &o->after);
    return code == EX_OK ? read_age(o, values->value[OPTION_OLDER_THAN]) : code;
}

/* ---- the tables ------------------------------------------------------------------------------ */

/* What was stored while it was on is still there. */
static void warn_of_none(const cli_outbox *o)
{
    if (!o->setup->plan.outbox)
        (void)fprintf(stderr, "waybill: endpoint \"%s\" has no outbox: this is what was stored before\n",
                      o->setup->config->name);
}

static int open_and_do(cli_outbox *o, const struct deed *deed)
{
    int code;
    if (!o->setup->persistence || !(o->setup->persistence->capabilities & WB_CAP_OUTBOX))
        return cli_fail(EX_CONFIG, "endpoint \"%s\" has no persistence that could keep an outbox",
                        o->setup->config->name);
    warn_of_none(o);
    int r = wb_endpoint_create(o->setup, &o->endpoint, &o->error);
    if (r == WB_OK)
        r = wb_endpoint_open_storage(o->endpoint, &o->session, &o->error);
    if (r == WB_OK && o->store.ops && deed->is_about_records)
        r = wb_endpoint_open_dedup_store(o->endpoint, &o->store.session, &o->error);
    if (r == WB_OK) {
        o->pipeline = wb_endpoint_pipeline(o->endpoint);
        o->now = wb_pipeline_now(o->pipeline);
    }
    code = r == WB_OK ? deed->run(o) : cli_outbox_fail(o);
    if (o->store.session)
        o->store.ops->close(o->store.session);
    if (o->session)
        o->ops->close(o->session);
    wb_endpoint_destroy(o->endpoint);
    return code;
}

static int run(const cli_values *values)
{
    cli_outbox o = { .is_json = 0 };
    wb_setup *setup = NULL;
    const struct deed *deed = find_deed(values->arguments[0]);
    if (!deed)
        return cli_fail(EX_USAGE, "\"%s\" is not stats, pending, sweep or cleanup", values->arguments[0]);
    int code = check_options(values, deed);
    if (code == EX_OK)
        code = read_options(&o, values);
    if (code == EX_OK)
        code = cli_load(values, WB_SETUP_WITHOUT_HANDLERS, &setup);
    if (code != EX_OK)
        return code;
    o.setup = values->value['e'] ? cli_endpoint(setup, values->value['e']) : &setup->endpoints[0];
    o.ops = o.setup ? o.setup->persistence_ops : NULL;
    o.store.ops = o.setup ? o.setup->store_ops : NULL;
    code = o.setup ? open_and_do(&o, deed) : EX_USAGE;
    wb_setup_free(setup);
    return code;
}

const cli_verb cli_verb_outbox = {
    .name = "outbox",
    .arguments = "stats|pending|sweep|cleanup",
    .argument_min = 1,
    .argument_max = 1,
    .summary = "see and look after what an endpoint's outbox keeps",
    .help = "Safe while the endpoint runs.\n"
            "stats    how much is kept, how old it is, what is pending\n"
            "pending  the rows with operations that were not dispatched yet, oldest first\n"
            "sweep    dispatch now what nobody came back for, as the sweeper does\n"
            "cleanup  remove now what is older than the retention, in small steps\n"
            "Exit code 75: some rows were parked or left; another instance cleans up.",
    .options = options,
    .run = run,
};
