/* SPDX-License-Identifier: Apache-2.0
 *
 * failures: what an endpoint keeps of an error queue, seen and seen to while it runs or not. A retry
 * is an operation of its outbox, in the transaction that marks the message.
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
#include "core/cli/content.h"
#include "core/cli/describe.h"
#include "core/cli/failed.h"
#include "core/cli/failed_file.h"
#include "core/cli/waiting.h"
#include "core/config/units.h"
#include "core/endpoint/endpoint.h"
#include "core/failures/retry.h"
#include "core/session/sessions.h"

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
#define OPTION_REMOVE_HEADER CLI_LONG_OPTION(14)
#define OPTION_FILE CLI_LONG_OPTION(15)

/* What meets another operator's transaction (a deadlock, a lock) is tried again, for so long. */
#define PATIENCE (10 * WB_SECOND)
#define PAUSE (20 * WB_MILLISECOND)

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
    { OPTION_REMOVE_HEADER, "remove-header", "NAME", "edit-retry: without that header; may be repeated" },
    { OPTION_FILE, "file", "FILE", "export, import: that file; default, and -: the standard stream" },
    CLI_OPTION_JSON,
    CLI_OPTION_END,
};

typedef struct group {
    char id[WB_FAILED_GROUP_SIZE];
    uint64_t count;
    int64_t first, last; /* when they failed */
    wb_text type, kind, reason;
} group;

typedef struct job {
    const cli_values *values;
    const wb_endpoint_setup *setup;
    wb_endpoint *endpoint;
    wb_storage_session *session;
    const wb_failed_ops *ops;
    const wb_failed_edit *edit; /* NULL: what is retried goes back as it came */
    cli_failed_filter filter;
    wb_error error;
    /* what was found; it lives in the arena */
    wb_arena arena;
    cli_failed *found;
    size_t count, capacity;
    group *groups;
    size_t group_count, group_capacity;
    json_t *json; /* an array, or NULL: for people */
} job;

static int fail(const job *j)
{
    return cli_fail(wb_error_exit_code(&j->error), "endpoint \"%s\": %s", j->setup->config->name, j->error.text);
}

/* ---- what is wanted ------------------------------------------------------------------ */

typedef struct search {
    job *j;
    size_t seen, taken, unreadable;
    void (*take)(job *j, const wb_failed *failed, const wb_failed_record *record);
} search;

static int is_full(const search *s)
{
    return s->j->filter.limit && s->taken == s->j->filter.limit;
}

static int look_at(void *argument, const wb_failed *failed)
{
    search *s = argument;
    wb_failed_record record;
    wb_arena arena;
    wb_arena_init(&arena, 4096);
    const int is_read = wb_failed_decode(failed->summary, failed->summary_size, &arena, &record) == 0;
    s->unreadable += !is_read;
    if (is_read && cli_failed_matches(&s->j->filter, failed, &record) && s->seen++ >= s->j->filter.skip) {
        s->take(s->j, failed, &record);
        s->taken++;
    }
    wb_arena_free(&arena);
    return is_full(s) ? WB_REJECT : WB_OK;
}

/* What is wanted may be among them, which nobody here can tell. */
static void tell_of_unreadable(const job *j, size_t count)
{
    if (count)
        (void)fprintf(stderr, "waybill: endpoint \"%s\": %zu failed messages were kept by a later version, which this one cannot read: they are left alone\n",
                      j->setup->config->name, count);
}

static int visit_wanted(job *j, void (*take)(job *j, const wb_failed *failed, const wb_failed_record *record))
{
    search s = { .j = j, .take = take };
    const wb_failed_filter filter = { .struct_size = sizeof filter, .status = j->filter.status, .from = j->filter.from,
                                      .before = j->filter.before };
    const int r = j->ops->list(j->session, &filter, look_at, &s, &j->error);
    tell_of_unreadable(j, s.unreadable);
    return r == WB_OK || is_full(&s) ? EX_OK : fail(j);
}

static void list_one(job *j, const wb_failed *failed, const wb_failed_record *record)
{
    if (j->json)
        json_array_append_new(j->json, cli_failed_json(failed, record));
    else
        cli_failed_print_row(failed, record);
}

static int list(job *j)
{
    if (!j->json)
        cli_failed_print_heading();
    return visit_wanted(j, list_one);
}

static void keep_one(job *j, const wb_failed *failed, const wb_failed_record *record)
{
    (void)record;
    if (j->count == j->capacity) {
        j->capacity = j->capacity ? 2 * j->capacity : 64;
        j->found = wb_realloc(j->found, j->capacity * sizeof *j->found);
    }
    j->found[j->count++] = (cli_failed){ wb_arena_copy(&j->arena, failed->key, failed->key_size), failed->key_size,
                                         failed->status };
}

static int find(job *j)
{
    const int code = visit_wanted(j, keep_one);
    if (code != EX_OK)
        return code;
    return j->count ? EX_OK : cli_fail(EX_NOINPUT, "there is no such failed message: see \"waybill failures list --status any\"");
}

/* ---- group ------------------------------------------------------------------------------ */

static wb_text keep_text(job *j, wb_text text)
{
    return (wb_text){ wb_arena_copy(&j->arena, text.value, text.size), text.size };
}

static group *find_group(job *j, const wb_failed_record *record)
{
    for (size_t i = 0; i < j->group_count; i++)
        if (strcmp(j->groups[i].id, record->group) == 0)
            return &j->groups[i];
    if (j->group_count == j->group_capacity) {
        j->group_capacity = j->group_capacity ? 2 * j->group_capacity : 64;
        j->groups = wb_realloc(j->groups, j->group_capacity * sizeof *j->groups);
    }
    group *made = &j->groups[j->group_count++];
    *made = (group){ .type = keep_text(j, record->type), .kind = keep_text(j, record->kind),
                     .reason = keep_text(j, record->reason) };
    memcpy(made->id, record->group, sizeof made->id);
    return made;
}

/* They come in the order in which they failed. */
static void count_one(job *j, const wb_failed *failed, const wb_failed_record *record)
{
    group *g = find_group(j, record);
    if (!g->count++)
        g->first = failed->failed_at;
    g->last = failed->failed_at;
}

static int compare_groups(const void *left, const void *right)
{
    const group *a = left, *b = right;
    return a->count != b->count ? (a->count < b->count) - (a->count > b->count) : strcmp(a->id, b->id);
}

static void print_group(const group *g)
{
    char last[WB_LOG_TIMESTAMP_SIZE];
    wb_clock_format_log(g->last, last);
    (void)printf("%-12s  %8" PRIu64 "  %-24s  ", g->id, g->count, last);
    cli_waiting_print_bytes(g->type.size ? g->type.value : "-", g->type.size ? g->type.size : 1);
    (void)printf("  ");
    cli_waiting_print_bytes(g->reason.value, g->reason.size);
    (void)putchar('\n');
}

static json_t *group_json(const group *g)
{
    json_t *object = json_object();
    json_object_set_new(object, "group", json_string(g->id));
    json_object_set_new(object, "count", json_integer((json_int_t)g->count));
    json_object_set_new(object, "first", cli_waiting_time_json(g->first));
    json_object_set_new(object, "last", cli_waiting_time_json(g->last));
    cli_waiting_set_bytes(object, "type", "type_hex", g->type.value, g->type.size);
    cli_waiting_set_bytes(object, "kind", "kind_hex", g->kind.value, g->kind.size);
    cli_waiting_set_bytes(object, "reason", "reason_hex", g->reason.value, g->reason.size);
    return object;
}

static int group_all(job *j)
{
    const int code = visit_wanted(j, count_one);
    if (code != EX_OK)
        return code;
    if (j->group_count)
        qsort(j->groups, j->group_count, sizeof *j->groups, compare_groups);
    if (!j->json)
        (void)printf("%-12s  %8s  %-24s  TYPE  REASON\n", "GROUP", "MESSAGES", "LAST (UTC)");
    for (size_t i = 0; i < j->group_count; i++) {
        if (j->json)
            json_array_append_new(j->json, group_json(&j->groups[i]));
        else
            print_group(&j->groups[i]);
    }
    return EX_OK;
}

/* ---- show ------------------------------------------------------------------------------ */

static int show_one(void *argument, const wb_failed *failed)
{
    job *j = argument;
    wb_failed_record record;
    wb_arena arena;
    wb_arena_init(&arena, 4096);
    const int is_read = wb_failed_decode(failed->message, failed->message_size, &arena, &record) == 0;
    if (!is_read)
        (void)cli_fail(EX_DATAERR, "this version cannot read the message: a later one kept it");
    else if (j->values->value[OPTION_BODY])
        cli_waiting_print_content(record.operation->body, record.operation->body_size);
    else if (j->json)
        json_array_append_new(j->json, cli_failed_whole_json(failed, &record));
    else
        cli_failed_print(failed, &record);
    wb_arena_free(&arena);
    return is_read ? WB_OK : WB_REJECT;
}

static int show(job *j)
{
    int code = find(j), r = WB_OK;
    if (code != EX_OK)
        return code;
    if (j->values->value[OPTION_BODY] && j->count > 1)
        return cli_fail(EX_USAGE, "%zu messages match: say which with --failure", j->count);
    for (size_t i = 0; i < j->count && r == WB_OK; i++) {
        r = j->ops->get(j->session, j->found[i].key, j->found[i].key_size, show_one, j, &j->error);
        if (r != WB_OK)
            code = r == WB_REJECT ? EX_DATAERR : fail(j);
    }
    return code;
}

/* ---- what became of each ------------------------------------------------------------------- */

static void tell(job *j, const cli_failed *one, const char *outcome)
{
    if (j->json) {
        json_t *object = json_object();
        cli_waiting_set_bytes(object, "failure", "failure_hex", one->key, one->key_size);
        json_object_set_new(object, "outcome", json_string(outcome));
        json_array_append_new(j->json, object);
        return;
    }
    cli_waiting_print_bytes(one->key, one->key_size);
    (void)printf("  %s\n", outcome);
}

static int tell_change(job *j, const cli_failed *one, int was, const char *outcome)
{
    tell(j, one, was ? outcome : "left alone");
    return was ? EX_OK : EX_TEMPFAIL;
}

/* It changed since it was found, or cannot be changed so. */
static int finish(const job *j, size_t left)
{
    if (!left)
        return EX_OK;
    return cli_fail(EX_TEMPFAIL, "%zu of %zu were left alone: somebody else has seen to them meanwhile", left, j->count);
}

static int would(job *j, const char *outcome)
{
    char text[40];
    (void)snprintf(text, sizeof text, "would be %s", outcome);
    for (size_t i = 0; i < j->count; i++)
        tell(j, &j->found[i], text);
    return EX_OK;
}

/* ---- retry ------------------------------------------------------------------------------------ */

static int retry_patiently(job *j, wb_sessions *sessions, wb_failed_retry *lot, size_t count)
{
    const int64_t until = wb_clock_monotonic() + PATIENCE;
    const char *queue = j->setup->info.name;
    int r;
    while (((r = wb_failed_retry_all(sessions, queue, lot, count, &j->error)) == WB_ABORT || r == WB_RETRY) &&
           wb_clock_monotonic() < until)
        wb_clock_pause(PAUSE, NULL);
    return r;
}

static int retry_lot(job *j, wb_sessions *sessions, const cli_failed *found, size_t count, size_t *left)
{
    wb_failed_retry lot[WB_FAILED_RETRY_LOT];
    for (size_t i = 0; i < count; i++)
        lot[i] = (wb_failed_retry){ found[i].key, found[i].key_size, 0, j->edit };
    const int r = retry_patiently(j, sessions, lot, count);
    if (r == WB_IN_DOUBT)
        return cli_fail(EX_TEMPFAIL, "whether they were retried is not known; try again, none goes twice: %s", j->error.text);
    if (r != WB_OK)
        return fail(j);
    for (size_t i = 0; i < count; i++) {
        const cli_failed one = { lot[i].key, lot[i].key_size, WB_FAILED_WAITS };
        *left += tell_change(j, &one, lot[i].was_waiting, j->edit ? "edited and retried" : "retried") != EX_OK;
    }
    return EX_OK;
}

/* The broker is not needed to retry: what it does not take now is sent by whoever runs the endpoint. */
static int start_sessions(job *j, wb_sessions **ret_sessions)
{
    const wb_endpoint_config *config = j->setup->config;
    const wb_sessions_policy policy = { .processor = config->name,
                                        .commit_duration = config->session.maximum_commit_duration,
                                        .connections = 1 };
    return wb_sessions_start(wb_endpoint_pipeline(j->endpoint), &policy, ret_sessions, &j->error) == WB_OK ? EX_OK : fail(j);
}

static int retry_found(job *j)
{
    wb_sessions *sessions = NULL;
    size_t left = 0;
    int code = start_sessions(j, &sessions);
    for (size_t at = 0; at < j->count && code == EX_OK; at += WB_FAILED_RETRY_LOT) {
        const size_t rest = j->count - at;
        code = retry_lot(j, sessions, &j->found[at], rest < WB_FAILED_RETRY_LOT ? rest : WB_FAILED_RETRY_LOT, &left);
    }
    wb_sessions_stop(sessions, j->setup->config->shutdown_timeout);
    return code == EX_OK ? finish(j, left) : code;
}

static int retry(job *j)
{
    const int code = find(j);
    if (code == EX_OK && j->values->value[OPTION_DRY_RUN])
        return would(j, "retried");
    return code == EX_OK ? retry_found(j) : code;
}

/* ---- edit-retry --------------------------------------------------------------------------------- */

/* Of the command line, which lives longer. */
typedef struct edits {
    wb_failed_edit edit;
    wb_buffer body;
    wb_header headers[CLI_HEADERS_MAX], removed[CLI_HEADERS_MAX];
} edits;

static int read_removed(const cli_values *v, edits *e)
{
    for (int i = 0; i < v->given_count; i++) {
        if (v->given[i].letter != OPTION_REMOVE_HEADER)
            continue;
        if (e->edit.removed_count == CLI_HEADERS_MAX)
            return cli_fail(EX_USAGE, "there are at most %d headers", CLI_HEADERS_MAX);
        e->removed[e->edit.removed_count++] = (wb_header){ .name = v->given[i].value, .name_size = strlen(v->given[i].value) };
    }
    return EX_OK;
}

static int read_edits(job *j, edits *e)
{
    const cli_values *v = j->values;
    e->edit = (wb_failed_edit){ .headers = e->headers, .removed = e->removed, .has_body = v->value['f'] != NULL };
    int code = cli_content_headers(v, 'H', e->headers, &e->edit.header_count);
    if (code == EX_OK)
        code = read_removed(v, e);
    if (code == EX_OK && wb_failed_edit_check(&e->edit, &j->error) != WB_OK)
        code = cli_fail(EX_USAGE, "%s", j->error.text);
    if (code == EX_OK && v->value['f'])
        code = cli_content_read(v->value['f'], &e->body);
    e->edit.body = e->body.data;
    e->edit.body_size = e->body.size;
    if (code == EX_OK && (int64_t)e->body.size > j->setup->config->body_max)
        code = cli_fail(EX_DATAERR, "the body has %zu bytes, over body_max = %" PRId64, e->body.size, j->setup->config->body_max);
    return code;
}

static int edit_retry(job *j)
{
    edits e = { .edit = { .has_body = 0 } };
    int code = read_edits(j, &e);
    if (code == EX_OK)
        code = find(j);
    if (code == EX_OK && j->count > 1)
        code = cli_fail(EX_USAGE, "%zu messages match: say which with --failure", j->count);
    j->edit = &e.edit;
    if (code == EX_OK)
        code = j->values->value[OPTION_DRY_RUN] ? would(j, "edited and retried") : retry_found(j);
    wb_buffer_free(&e.body);
    return code;
}

/* ---- archive, discard --------------------------------------------------------------------------- */

static int change_once(job *j, const cli_failed *one, int is_archive, int *ret_was)
{
    const wb_failed_turn turn = { .struct_size = sizeof turn, .key = one->key, .key_size = one->key_size,
                                  .from = one->status, .to = WB_FAILED_ARCHIVED, .now = wb_clock_wall() };
    return is_archive ? j->ops->turn(j->session, &turn, ret_was, &j->error)
                      : j->ops->discard(j->session, one->key, one->key_size, one->status, ret_was, &j->error);
}

static int change_patiently(job *j, const cli_failed *one, int is_archive, int *ret_was)
{
    const int64_t until = wb_clock_monotonic() + PATIENCE;
    int r;
    while (((r = change_once(j, one, is_archive, ret_was)) == WB_ABORT || r == WB_RETRY) && wb_clock_monotonic() < until)
        wb_clock_pause(PAUSE, NULL);
    return r;
}

static int change(job *j, int is_archive)
{
    const char *outcome = is_archive ? "archived" : "discarded";
    size_t left = 0;
    int was, code = find(j);
    if (code != EX_OK)
        return code;
    if (j->values->value[OPTION_DRY_RUN])
        return would(j, outcome);
    for (size_t i = 0; i < j->count; i++) {
        const int r = change_patiently(j, &j->found[i], is_archive, &was);
        if (r == WB_IN_DOUBT)
            return cli_fail(EX_TEMPFAIL, "whether it was done is not known, try again: %s", j->error.text);
        if (r != WB_OK)
            return fail(j);
        left += tell_change(j, &j->found[i], was, outcome) != EX_OK;
    }
    return finish(j, left);
}

static int archive(job *j)
{
    return change(j, 1);
}

static int discard(job *j)
{
    return change(j, 0);
}

/* ---- export, import ------------------------------------------------------------------------------ */

static cli_failed_table table_of(const job *j)
{
    return (cli_failed_table){ j->setup->persistence_ops, j->ops, j->session };
}

static int export_found(job *j)
{
    const cli_failed_table table = table_of(j);
    const int code = find(j);
    return code == EX_OK ? cli_failed_export(&table, j->found, j->count, j->values->value[OPTION_FILE]) : code;
}

static void tell_import(void *argument, const cli_failed *one, int is_new)
{
    tell(argument, one, is_new ? "imported" : "left alone");
}

static int import(job *j)
{
    const cli_failed_table table = table_of(j);
    return cli_failed_import(&table, j->values->value[OPTION_FILE], tell_import, j);
}

/* ---- the command line ---------------------------------------------------------------------- */

static const struct deed {
    const char *name;
    int (*run)(job *j);
    int changes;
} deeds[] = { { "list", list, 0 },   { "group", group_all, 0 },  { "show", show, 0 },
              { "retry", retry, 1 }, { "edit-retry", edit_retry, 1 },
              { "archive", archive, 1 }, { "discard", discard, 1 },
              { "export", export_found, 0 }, { "import", import, 0 } };

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
    int code = read_number("--skip", v->value[OPTION_SKIP], &f->skip);
    if (code == EX_OK)
        code = read_number("--limit", v->value[OPTION_LIMIT], &f->limit);
    if (code == EX_OK)
        code = read_time("--failed-from", v->value[OPTION_FROM], &f->from);
    return code == EX_OK ? read_time("--failed-before", v->value[OPTION_BEFORE], &f->before) : code;
}

static int check_file(const cli_values *v, const struct deed *deed, const cli_failed_filter *f, int narrows)
{
    const int is_import = deed->run == import;
    if (v->value[OPTION_FILE] && !is_import && deed->run != export_found)
        return cli_fail(EX_USAGE, "only export and import take --file");
    if (is_import && (narrows || f->skip || f->limit || v->value[OPTION_STATUS] || v->value[OPTION_DRY_RUN]))
        return cli_fail(EX_USAGE, "import takes all of the file");
    return EX_OK;
}

static int check_edits(const cli_values *v, const struct deed *deed)
{
    const int are_given = v->value['f'] || v->value['H'] || v->value[OPTION_REMOVE_HEADER];
    if (are_given == (deed->run == edit_retry))
        return EX_OK;
    return cli_fail(EX_USAGE, "%s", are_given ? "only edit-retry takes --body-file, --header and --remove-header"
                                              : "say what is edited: --body-file, --header, --remove-header");
}

/* What changes messages says which: a slip of the finger is not to retry all of them. */
static int check_usage(const cli_values *v, const struct deed *deed, cli_failed_filter *f)
{
    const int is_named = f->key || f->id;
    const int narrows = is_named || f->type || f->endpoint || f->queue || f->reason || f->group || f->from || f->before;
    if (deed->run == show && !is_named)
        return cli_fail(EX_USAGE, "say which: --failure or --id");
    if (deed->run == show && !v->value[OPTION_STATUS])
        f->status = WB_FAILED_ANY;
    if (deed->changes && !narrows && !v->value[OPTION_ALL])
        return cli_fail(EX_USAGE, "say which: --failure, --id, --group, --type, --of, --queue, --reason, --failed-from, "
                                  "--failed-before, or --all");
    if ((deed->run == retry || deed->run == edit_retry) && f->status != WB_FAILED_WAITS)
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

static int open_and_do(job *j, int (*deed)(job *j))
{
    int r = wb_endpoint_create(j->setup, &j->endpoint, &j->error);
    if (r == WB_OK)
        r = wb_endpoint_open_storage(j->endpoint, &j->session, &j->error);
    if (r == WB_OK)
        j->ops = j->setup->persistence_ops->interface(j->session, WB_FAILED_INTERFACE);
    const int code = r == WB_OK ? deed(j) : fail(j);
    if (j->session)
        j->setup->persistence_ops->close(j->session);
    wb_endpoint_destroy(j->endpoint);
    return code;
}

static int run_on(job *j, const wb_setup *setup, const struct deed *deed)
{
    const cli_values *v = j->values;
    j->setup = choose(setup, v->value['e']);
    const int is_content = (deed->run == show && v->value[OPTION_BODY]) || deed->run == export_found;
    j->json = v->value['j'] && !is_content ? json_array() : NULL;
    wb_arena_init(&j->arena, 64 * 1024);
    const int code = j->setup ? open_and_do(j, deed->run) : EX_USAGE;
    if (j->json && (code == EX_OK || code == EX_TEMPFAIL || code == EX_NOINPUT || json_array_size(j->json))) {
        (void)json_dumpf(j->json, stdout, CLI_JSON);
        (void)putchar('\n');
    }
    json_decref(j->json);
    free(j->found);
    free(j->groups);
    wb_arena_free(&j->arena);
    return code;
}

static int run(const cli_values *values)
{
    job j = { .values = values };
    wb_setup *setup = NULL;
    const struct deed *deed = find_deed(values->arguments[0]);
    if (!deed)
        return cli_fail(EX_USAGE, "\"%s\" is not list, show, group, retry, edit-retry, archive, discard, export or import", values->arguments[0]);
    int code = read_filter(values, &j.filter);
    if (code == EX_OK)
        code = check_usage(values, deed, &j.filter);
    if (code == EX_OK)
        code = cli_load(values, WB_SETUP_WITHOUT_HANDLERS, &setup);
    if (code != EX_OK)
        return code;
    code = run_on(&j, setup, deed);
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
    .run = run,
};
