/* SPDX-License-Identifier: Apache-2.0
 *
 * delayed: what waits in the delayed message store of an endpoint, seen and changed while pollers
 * run. Cancelled is what was never sent, or the answer says otherwise.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "core/base/arena.h"
#include "core/base/clock.h"
#include "core/cli/cli.h"
#include "core/cli/describe.h"
#include "core/cli/waiting.h"
#include "core/cli/when.h"
#include "core/config/units.h"
#include "core/endpoint/endpoint.h"

#define OPTION_DELAY CLI_LONG_OPTION(1)
#define OPTION_AT CLI_LONG_OPTION(2)
#define OPTION_RETRIES CLI_LONG_OPTION(3)
#define OPTION_FROM CLI_LONG_OPTION(4)
#define OPTION_BEFORE CLI_LONG_OPTION(5)
#define OPTION_LIMIT CLI_LONG_OPTION(6)
#define OPTION_ALL CLI_LONG_OPTION(7)
#define OPTION_BODY CLI_LONG_OPTION(8)

/* Messages changed in one call, which is one transaction. */
#define LOT 500
/* One that meets a poller's (a deadlock, a lock) is tried again, for so long. */
#define PATIENCE (10 * WB_SECOND)
#define PAUSE (20 * WB_MILLISECOND)

static const cli_option options[] = {
    CLI_OPTION_CONFIG,
    { 'e', "endpoint", "NAME", "whose store; default: the first in the file" },
    { 'i', "id", "ID", "messages with this id" },
    { 'd', "to", "QUEUE", "messages to this destination (of an event its type)" },
    { OPTION_RETRIES, "retries", "N", "messages that had so many delayed retries" },
    { OPTION_FROM, "due-from", "TIME", "messages due then or later, e.g. 2026-12-31T08:00:00Z" },
    { OPTION_BEFORE, "due-before", "TIME", "messages due before" },
    { OPTION_LIMIT, "limit", "N", "at most so many, earliest due first" },
    { OPTION_ALL, "all", NULL, "cancel, reschedule: all that match, not just one" },
    { OPTION_DELAY, "delay", "DURATION", "reschedule: due so much later than now, e.g. 10s, 2h, 7d; 0s: now" },
    { OPTION_AT, "at", "TIME", "reschedule: due then" },
    { OPTION_BODY, "body", NULL, "show: the body alone, as it is" },
    CLI_OPTION_JSON,
    CLI_OPTION_END,
};

typedef struct job {
    const cli_values *values;
    const wb_endpoint_setup *setup;
    wb_storage_session *session;
    const wb_delayed_ops *ops;
    wb_delayed_filter filter;
    int64_t retries; /* -1: any */
    size_t limit;    /* of those that are wanted; 0: none */
    cli_when when;   /* of reschedule */
    int64_t now;     /* the database's */
    wb_error error;
    /* what was found; it lives in the arena */
    wb_arena arena;
    wb_delayed *found;
    size_t count, capacity;
    json_t *json; /* an array, or NULL: for people */
} job;

static int fail(const job *j)
{
    return cli_fail(wb_error_exit_code(&j->error), "endpoint \"%s\": %s", j->setup->config->name, j->error.text);
}

/* ---- what is wanted ------------------------------------------------------------------ */

typedef struct search {
    job *j;
    size_t count;
    void (*take)(job *j, const wb_delayed *message);
} search;

static int is_full(const search *s)
{
    return s->j->limit && s->count == s->j->limit;
}

/* The store knows nothing of a number of retries, and counts those that are not wanted, too. */
static int look_at(void *argument, const wb_delayed *message)
{
    search *s = argument;
    if (s->j->retries >= 0 && (int64_t)message->retries != s->j->retries)
        return WB_OK;
    s->take(s->j, message);
    s->count++;
    return is_full(s) ? WB_REJECT : WB_OK;
}

static int visit_wanted(job *j, void (*take)(job *j, const wb_delayed *message))
{
    search s = { j, 0, take };
    j->filter.limit = j->retries < 0 ? j->limit : 0;
    int r = j->ops->list(j->session, &j->filter, look_at, &s, &j->error);
    return r == WB_OK || is_full(&s) ? EX_OK : fail(j);
}

/* ---- list ------------------------------------------------------------------------------ */

static void list_one(job *j, const wb_delayed *message)
{
    if (j->json)
        json_array_append_new(j->json, cli_waiting_json(message));
    else
        cli_waiting_print_row(message, j->now);
}

static int list(job *j)
{
    if (!j->json)
        cli_waiting_print_heading();
    return visit_wanted(j, list_one);
}

/* ---- find ------------------------------------------------------------------------------ */

static void keep_one(job *j, const wb_delayed *message)
{
    if (j->count == j->capacity) {
        j->capacity = j->capacity ? 2 * j->capacity : 64;
        j->found = wb_realloc(j->found, j->capacity * sizeof *j->found);
    }
    wb_delayed *copy = &j->found[j->count++];
    WB_COPY(copy, message);
    copy->destination = wb_arena_copy(&j->arena, message->destination, message->destination_size);
    copy->id = wb_arena_copy(&j->arena, message->id, message->id_size);
    copy->operation = message->operation ? wb_arena_copy(&j->arena, message->operation, message->operation_size) : NULL;
}

static int find(job *j)
{
    j->count = 0;
    int code = visit_wanted(j, keep_one);
    if (code != EX_OK)
        return code;
    return j->count ? EX_OK
                    : cli_fail(EX_NOINPUT, "no such message waits: it was sent, or cancelled, or there never was one");
}

/* ---- show ------------------------------------------------------------------------------ */

static int show(job *j)
{
    int code = find(j);
    if (code != EX_OK)
        return code;
    if (j->values->value[OPTION_BODY] && j->count > 1)
        return cli_fail(EX_USAGE, "%zu messages have this id: say which with --to and --retries", j->count);
    if (j->values->value[OPTION_BODY])
        return cli_waiting_print_body(&j->found[0]);
    for (size_t i = 0; i < j->count; i++) {
        if (j->json)
            json_array_append_new(j->json, cli_waiting_whole_json(&j->found[i]));
        else
            cli_waiting_print(&j->found[i], j->now);
    }
    return EX_OK;
}

/* ---- cancel, reschedule ------------------------------------------------------------------ */

static wb_delayed_key key_of(const wb_delayed *message)
{
    return (wb_delayed_key){ .destination = message->destination, .destination_size = message->destination_size,
                             .id = message->id, .id_size = message->id_size, .retries = message->retries };
}

static int64_t due_of(const job *j)
{
    return j->when.at ? j->when.at : j->now + j->when.delay;
}

static void tell(job *j, const wb_delayed *message, const char *outcome, const char *sentence)
{
    if (j->json) {
        json_t *object = cli_waiting_json(message);
        json_object_set_new(object, "outcome", json_string(outcome));
        json_array_append_new(j->json, object);
    } else {
        (void)printf("%s: ", sentence);
        cli_waiting_print_bytes(message->id, message->id_size);
        (void)printf(" to ");
        cli_waiting_print_bytes(message->destination, message->destination_size);
        (void)putchar('\n');
    }
}

static int count_one(void *argument, const wb_delayed *message)
{
    const wb_delayed_key *key = ((void **)argument)[0];
    size_t *count = ((void **)argument)[1];
    *count += message->retries == key->retries;
    return WB_OK;
}

/* What was not free has been sent since, or somebody has it: sends it now, or died with it. */
static int is_there(job *j, wb_delayed_key *key, int *ret_is_there)
{
    size_t count = 0;
    void *argument[] = { key, &count };
    const wb_delayed_filter same = { .struct_size = sizeof same, .id = key->id, .id_size = key->id_size,
                                     .destination = key->destination, .destination_size = key->destination_size };
    int r = j->ops->list(j->session, &same, count_one, argument, &j->error);
    *ret_is_there = count != 0;
    return r == WB_OK ? EX_OK : fail(j);
}

static int report(job *j, const wb_delayed *message, wb_delayed_key *key, int is_cancel)
{
    int there = 0;
    if (key->was_there) {
        tell(j, message, is_cancel ? "cancelled" : "rescheduled",
             is_cancel ? "cancelled, it was not sent and will not be" : "rescheduled");
        return EX_OK;
    }
    int code = is_there(j, key, &there);
    if (code != EX_OK)
        return code;
    tell(j, message, there ? "taken" : "gone",
         there ? "left alone, it is being sent or was" : "too late, it waits no longer");
    return EX_TEMPFAIL;
}

static int change_once(job *j, wb_delayed_key *keys, size_t count, int is_cancel)
{
    return is_cancel ? j->ops->cancel(j->session, keys, count, &j->error)
                     : j->ops->reschedule(j->session, keys, count, due_of(j), &j->error);
}

static int change_patiently(job *j, wb_delayed_key *keys, size_t count, int is_cancel)
{
    int64_t until = wb_clock_monotonic() + PATIENCE;
    int r;
    while (((r = change_once(j, keys, count, is_cancel)) == WB_ABORT || r == WB_RETRY) && wb_clock_monotonic() < until)
        wb_clock_pause(PAUSE, NULL);
    return r;
}

static int change_lot(job *j, const wb_delayed *messages, size_t count, int is_cancel)
{
    wb_delayed_key keys[LOT];
    int code = EX_OK;
    for (size_t i = 0; i < count; i++)
        keys[i] = key_of(&messages[i]);
    int r = change_patiently(j, keys, count, is_cancel);
    if (r == WB_IN_DOUBT)
        return cli_fail(EX_TEMPFAIL, "whether it was done is not known, try again: %s", j->error.text);
    if (r != WB_OK)
        return fail(j);
    for (size_t i = 0; i < count && (code == EX_OK || code == EX_TEMPFAIL); i++) {
        int one = report(j, &messages[i], &keys[i], is_cancel);
        code = one != EX_OK ? one : code;
    }
    return code;
}

static int change(job *j, int is_cancel)
{
    int code = find(j);
    if (code != EX_OK)
        return code;
    if (j->count > 1 && !j->values->value[OPTION_ALL])
        return cli_fail(EX_USAGE, "%zu messages match: say which (--id, --to, --retries), or --all", j->count);
    for (size_t at = 0; at < j->count && (code == EX_OK || code == EX_TEMPFAIL); at += LOT) {
        int one = change_lot(j, &j->found[at], j->count - at < LOT ? j->count - at : LOT, is_cancel);
        code = one != EX_OK ? one : code;
    }
    return code;
}

static int cancel(job *j)
{
    return change(j, 1);
}

static int reschedule(job *j)
{
    return change(j, 0);
}

/* ---- the command line ---------------------------------------------------------------------- */

static const struct {
    const char *name;
    int (*run)(job *j);
} deeds[] = { { "list", list }, { "show", show }, { "cancel", cancel }, { "reschedule", reschedule } };

static int (*find_deed(const char *name))(job *j)
{
    for (size_t i = 0; i < sizeof deeds / sizeof deeds[0]; i++)
        if (strcmp(deeds[i].name, name) == 0)
            return deeds[i].run;
    return NULL;
}

static int read_number(const char *option, const char *text, int64_t least, int64_t *ret_number)
{
    char *end = NULL;
    if (!text)
        return EX_OK;
    errno = 0;
    *ret_number = strtoll(text, &end, 10);
    if (end == text || *end || errno || *ret_number < least)
        return cli_fail(EX_USAGE, "%s \"%s\" is not a number, %" PRId64 " or more", option, text, least);
    return EX_OK;
}

/* A filter takes 0 for no time at all: what is not later than 1970 is the first moment after. */
static int read_time(const char *option, const char *text, int64_t *ret_time)
{
    if (text && wb_time_parse(text, ret_time) != WB_UNIT_OK)
        return cli_fail(EX_USAGE, "%s \"%s\" is not a time like 2026-12-31T08:00:00Z (UTC)", option, text);
    if (text && *ret_time < 1)
        *ret_time = 1;
    return EX_OK;
}

static int read_filter(job *j)
{
    const cli_values *v = j->values;
    int64_t limit = 0;
    j->retries = -1;
    j->filter = (wb_delayed_filter){ .struct_size = sizeof j->filter,
                                     .id = v->value['i'], .id_size = v->value['i'] ? strlen(v->value['i']) : 0,
                                     .destination = v->value['d'],
                                     .destination_size = v->value['d'] ? strlen(v->value['d']) : 0 };
    int code = read_number("--retries", v->value[OPTION_RETRIES], 0, &j->retries);
    if (code == EX_OK)
        code = read_number("--limit", v->value[OPTION_LIMIT], 1, &limit);
    if (code == EX_OK)
        code = read_time("--due-from", v->value[OPTION_FROM], &j->filter.due_from);
    if (code == EX_OK)
        code = read_time("--due-before", v->value[OPTION_BEFORE], &j->filter.due_before);
    j->limit = (size_t)limit;
    return code;
}

/* What changes messages says which: a slip of the finger is not to cancel all that waits. */
static int check_usage(job *j, const char *name)
{
    const cli_values *v = j->values;
    int changes = strcmp(name, "cancel") == 0 || strcmp(name, "reschedule") == 0;
    int narrows = v->value['i'] || v->value['d'] || v->value[OPTION_FROM] || v->value[OPTION_BEFORE];
    if (strcmp(name, "show") == 0 && !v->value['i'])
        return cli_fail(EX_USAGE, "--id is missing");
    if (changes && !narrows && !v->value[OPTION_ALL])
        return cli_fail(EX_USAGE, "say which: --id, --to, --due-from, --due-before, or --all");
    if (strcmp(name, "reschedule") == 0 && !v->value[OPTION_DELAY] && !v->value[OPTION_AT])
        return cli_fail(EX_USAGE, "say when: --delay or --at");
    if (strcmp(name, "reschedule") != 0 && (v->value[OPTION_DELAY] || v->value[OPTION_AT]))
        return cli_fail(EX_USAGE, "--delay and --at are for reschedule");
    return cli_read_when(v->value[OPTION_DELAY], v->value[OPTION_AT], &j->when);
}

/* ---- the store ------------------------------------------------------------------------------ */

static int has_store(const job *j)
{
    const wb_persistence_ops *ops = j->setup->persistence_ops;
    return ops && WB_HAS(ops, wb_persistence_ops, delayed) && ops->delayed;
}

/* Before the table is asked for: who delays by the broker may have none. */
static void warn_of_others(const job *j)
{
    if (j->setup->plan.delay_by != WB_DELAYS_BY_STORE)
        (void)fprintf(stderr, "waybill: endpoint \"%s\" delays by the %s: this is what was stored before\n",
                      j->setup->config->name, wb_delay_name(j->setup->plan.delay_by));
}

static int open_and_do(job *j, int (*deed)(job *j))
{
    wb_endpoint *endpoint = NULL;
    int64_t due;
    int code;
    if (!has_store(j))
        return cli_fail(EX_CONFIG, "endpoint \"%s\" has no delayed message store: what it delays waits %s",
                        j->setup->config->name,
                        j->setup->plan.delay_by == WB_DELAYS_BY_TRANSPORT ? "at the broker" : "nowhere");
    warn_of_others(j);
    int r = wb_endpoint_create(j->setup, &endpoint, &j->error);
    j->ops = j->setup->persistence_ops->delayed;
    if (r == WB_OK)
        r = wb_endpoint_open_storage(endpoint, &j->session, &j->error);
    if (r == WB_OK)
        r = j->ops->next(j->session, &due, &j->now, &j->error);
    code = r == WB_OK ? deed(j) : fail(j);
    if (j->session)
        j->setup->persistence_ops->close(j->session);
    wb_endpoint_destroy(endpoint);
    return code;
}

static void print_json(json_t *array)
{
    (void)json_dumpf(array, stdout, CLI_JSON);
    (void)putchar('\n');
}

static int run(const cli_values *values)
{
    job j = { .values = values };
    wb_setup *setup = NULL;
    int (*deed)(job *j) = find_deed(values->arguments[0]);
    if (!deed)
        return cli_fail(EX_USAGE, "\"%s\" is not list, show, cancel or reschedule", values->arguments[0]);
    int code = read_filter(&j);
    if (code == EX_OK)
        code = check_usage(&j, values->arguments[0]);
    if (code == EX_OK)
        code = cli_load(values, WB_SETUP_WITHOUT_HANDLERS, &setup);
    if (code != EX_OK)
        return code;
    j.setup = values->value['e'] ? cli_endpoint(setup, values->value['e']) : &setup->endpoints[0];
    j.json = values->value['j'] ? json_array() : NULL;
    wb_arena_init(&j.arena, 64 * 1024);
    code = j.setup ? open_and_do(&j, deed) : EX_USAGE;
    if (j.json && (code == EX_OK || code == EX_TEMPFAIL || code == EX_NOINPUT || json_array_size(j.json)))
        print_json(j.json);
    json_decref(j.json);
    free(j.found);
    wb_arena_free(&j.arena);
    wb_setup_free(setup);
    return code;
}

const cli_verb cli_verb_delayed = {
    .name = "delayed",
    .arguments = "list|show|cancel|reschedule",
    .argument_min = 1,
    .argument_max = 1,
    .summary = "see and change what waits in an endpoint's delayed message store",
    .help = "Safe while the endpoint runs. A message that was cancelled was not sent and never will be;\n"
            "one that somebody has taken to send it is left alone.\n"
            "Exit code 66: no such message waits. 75: some were left alone, being sent or sent already.",
    .options = options,
    .run = run,
};
