/* SPDX-License-Identifier: Apache-2.0
 *
 * Which failed messages are wanted, and what became of each.
 */
#include "config.h"

#include <stdio.h>
#include <sysexits.h>

#include "core/cli/describe.h"
#include "core/cli/failures.h"
#include "core/cli/waiting.h"

int cli_failures_fail(const cli_failures *f)
{
    return cli_fail(wb_error_exit_code(&f->error), "endpoint \"%s\": %s", f->setup->config->name, f->error.text);
}

/* ---- what is wanted ------------------------------------------------------------------ */

typedef struct search {
    cli_failures *f;
    size_t seen, taken, unreadable;
    cli_failures_take *take;
    void *argument;
} search;

static int is_full(const search *s)
{
    return s->f->filter.limit && s->taken == s->f->filter.limit;
}

static int look_at(void *argument, const wb_failed *failed)
{
    search *s = argument;
    wb_failed_record record;
    wb_arena arena;
    wb_arena_init(&arena, 4096);
    const int is_read = wb_failed_decode(failed->summary, failed->summary_size, &arena, &record) == 0;
    s->unreadable += !is_read;
    if (is_read && cli_failed_matches(&s->f->filter, failed, &record) && s->seen++ >= s->f->filter.skip) {
        s->take(s->argument, failed, &record);
        s->taken++;
    }
    wb_arena_free(&arena);
    return is_full(s) ? WB_REJECT : WB_OK;
}

/* What is wanted may be among them, which nobody here can tell. */
static void tell_of_unreadable(const cli_failures *f, size_t count)
{
    if (count)
        (void)fprintf(stderr, "waybill: endpoint \"%s\": failed messages that a later version kept, which this one cannot read and leaves alone: %zu\n",
                      f->setup->config->name, count);
}

int cli_failures_visit(cli_failures *f, cli_failures_take *take, void *argument)
{
    search s = { .f = f, .take = take, .argument = argument };
    const wb_failed_filter filter = { .struct_size = sizeof filter, .status = f->filter.status, .from = f->filter.from,
                                      .before = f->filter.before };
    const int r = f->ops->list(f->session, &filter, look_at, &s, &f->error);
    tell_of_unreadable(f, s.unreadable);
    return r == WB_OK || is_full(&s) ? EX_OK : cli_failures_fail(f);
}

static void keep_one(void *argument, const wb_failed *failed, const wb_failed_record *record)
{
    cli_failures *f = argument;
    (void)record;
    if (f->count == f->capacity) {
        f->capacity = f->capacity ? 2 * f->capacity : 64;
        f->found = wb_realloc(f->found, f->capacity * sizeof *f->found);
    }
    f->found[f->count++] = (cli_failed){ wb_arena_copy(&f->arena, failed->key, failed->key_size), failed->key_size,
                                         failed->status };
}

int cli_failures_find(cli_failures *f)
{
    const int code = cli_failures_visit(f, keep_one, f);
    if (code != EX_OK)
        return code;
    if (f->count)
        return EX_OK;
    return cli_fail(EX_NOINPUT, "there is no such failed message%s%s: see \"waybill failures list --status any\"",
                    f->filter.status ? " whose status is " : "", f->filter.status ? cli_failed_status_name(f->filter.status) : "");
}

/* ---- what became of each ------------------------------------------------------------------- */

void cli_failures_tell(cli_failures *f, const cli_failed *one, const char *outcome)
{
    if (f->is_json) {
        json_t *object = json_object();
        cli_waiting_set_bytes(object, "failure", "failure_hex", one->key, one->key_size);
        json_object_set_new(object, "outcome", json_string(outcome));
        json_array_append_new(f->outcomes, object);
        return;
    }
    cli_waiting_print_bytes(one->key, one->key_size);
    (void)printf("  %s\n", outcome);
}

int cli_failures_tell_change(cli_failures *f, const cli_failed *one, int was, const char *outcome)
{
    cli_failures_tell(f, one, was ? outcome : "left alone");
    return !was;
}

int cli_failures_tell_unread(cli_failures *f, const cli_failed *one, int why)
{
    cli_failures_tell(f, one, "cannot be read");
    (void)cli_failed_unread(one->key, one->key_size, why);
    return 1;
}

/* It changed since it was found, or cannot be changed so. */
int cli_failures_finish(const cli_failures *f, size_t left)
{
    if (!left)
        return EX_OK;
    return cli_fail(EX_TEMPFAIL, "%zu of %zu were left alone: somebody else has seen to them meanwhile", left, f->count);
}

int cli_failures_would(cli_failures *f, const char *outcome)
{
    char text[40];
    (void)snprintf(text, sizeof text, "would be %s", outcome);
    for (size_t i = 0; i < f->count; i++)
        cli_failures_tell(f, &f->found[i], text);
    return EX_OK;
}
