/* SPDX-License-Identifier: Apache-2.0
 *
 * A retry, as it came or edited, is an operation of the endpoint's outbox, in the transaction that marks the message.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "core/base/arena.h"
#include "core/base/clock.h"
#include "core/cli/content.h"
#include "core/cli/failures.h"
#include "core/cli/progress.h"
#include "core/failures/retry.h"
#include "core/session/sessions.h"

typedef struct retries {
    cli_failures *f;
    wb_sessions *sessions;
    const wb_failed_edit *edit; /* NULL: they go back as they came */
    size_t left;                /* alone */
    size_t unread;              /* and why was said of each */
} retries;

static int retry_patiently(retries *all, wb_failed_retry *lot, size_t count, size_t *ret_taken)
{
    cli_failures *f = all->f;
    const int64_t until = wb_clock_monotonic() + CLI_FAILURES_PATIENCE;
    int r;
    while (((r = wb_failed_retry_some(all->sessions, f->setup->info.name, lot, count, ret_taken, &f->error)) == WB_ABORT || r == WB_RETRY) &&
           wb_clock_monotonic() < until)
        wb_clock_pause(CLI_FAILURES_PAUSE, NULL);
    return r;
}

static int retry_lot(retries *all, wb_failed_retry *lot, size_t count, size_t *ret_taken)
{
    cli_failures *f = all->f;
    const int r = retry_patiently(all, lot, count, ret_taken);
    if (r == WB_IN_DOUBT)
        return cli_fail(EX_TEMPFAIL, "whether they were retried is not known; try again, none goes twice: %s", f->error.text);
    if (r != WB_OK)
        return cli_failures_fail(f);
    for (size_t i = 0; i < *ret_taken; i++) {
        const cli_failed one = { lot[i].key, lot[i].key_size, WB_FAILED_WAITS };
        if (lot[i].unread)
            all->unread += cli_failures_tell_unread(f, &one, lot[i].unread);
        else
            all->left += cli_failures_tell_change(f, &one, lot[i].was_waiting, all->edit ? "edited and retried" : "retried");
    }
    return EX_OK;
}

/* The broker is not needed to retry: what it does not take now is sent by whoever runs the endpoint. */
static int start_sessions(retries *all)
{
    cli_failures *f = all->f;
    const wb_endpoint_config *config = f->setup->config;
    const wb_sessions_policy policy = { .processor = config->name,
                                        .commit_duration = config->session.maximum_commit_duration,
                                        .connections = 1 };
    const int r = wb_sessions_start(wb_endpoint_pipeline(f->endpoint), &policy, &all->sessions, &f->error);
    return r == WB_OK ? EX_OK : cli_failures_fail(f);
}

static int retry_found(cli_failures *f, const wb_failed_edit *edit)
{
    retries all = { .f = f, .edit = edit };
    wb_failed_retry *which = wb_alloc((f->count + 1) * sizeof *which);
    int code = start_sessions(&all);
    for (size_t i = 0; i < f->count; i++)
        which[i] = (wb_failed_retry){ .key = f->found[i].key, .key_size = f->found[i].key_size, .edit = edit };
    cli_progress_begin("retrying", "failed messages", f->count, !f->is_json);
    for (size_t at = 0, taken; at < f->count && code == EX_OK; at += taken) {
        cli_progress_set(at);
        code = retry_lot(&all, &which[at], f->count - at, &taken);
    }
    cli_progress_end();
    free(which);
    wb_sessions_stop(all.sessions, f->setup->config->shutdown_timeout);
    if (code != EX_OK)
        return code;
    code = cli_failures_finish(f, all.left);
    return all.unread ? EX_DATAERR : code;
}

int cli_failures_retry(cli_failures *f)
{
    const int code = cli_failures_find(f);
    if (code == EX_OK && f->is_dry)
        return cli_failures_would(f, "retried");
    return code == EX_OK ? retry_found(f, NULL) : code;
}

/* ---- edited --------------------------------------------------------------------------------- */

/* Of the command line, which lives longer. */
typedef struct edits {
    wb_failed_edit edit;
    wb_buffer body;
    wb_header headers[CLI_HEADERS_MAX], removed[CLI_HEADERS_MAX];
} edits;

static int read_removed(const cli_values *v, edits *e)
{
    for (int i = 0; i < v->given_count; i++) {
        if (v->given[i].letter != CLI_FAILURES_REMOVE_HEADER)
            continue;
        if (e->edit.removed_count == CLI_HEADERS_MAX)
            return cli_fail(EX_USAGE, "there are at most %d headers", CLI_HEADERS_MAX);
        e->removed[e->edit.removed_count++] = (wb_header){ .name = v->given[i].value, .name_size = strlen(v->given[i].value) };
    }
    return EX_OK;
}

static int read_edits(cli_failures *f, edits *e)
{
    const cli_values *v = f->values;
    e->edit = (wb_failed_edit){ .headers = e->headers, .removed = e->removed, .has_body = v->value['f'] != NULL };
    int code = cli_content_headers(v, 'H', e->headers, &e->edit.header_count);
    if (code == EX_OK)
        code = read_removed(v, e);
    if (code == EX_OK && wb_failed_edit_check(&e->edit, &f->error) != WB_OK)
        code = cli_fail(EX_USAGE, "%s", f->error.text);
    if (code == EX_OK && v->value['f'])
        code = cli_content_read(v->value['f'], &e->body);
    e->edit.body = e->body.data;
    e->edit.body_size = e->body.size;
    if (code == EX_OK && (int64_t)e->body.size > f->setup->config->body_max)
        code = cli_fail(EX_DATAERR, "the body has %zu bytes, over body_max = %" PRId64, e->body.size, f->setup->config->body_max);
    return code;
}

int cli_failures_edit_retry(cli_failures *f)
{
    edits e = { .edit = { .has_body = 0 } };
    int code = read_edits(f, &e);
    if (code == EX_OK)
        code = cli_failures_find(f);
    if (code == EX_OK && f->count > 1)
        code = cli_fail(EX_USAGE, "%zu messages match: say which with --failure", f->count);
    if (code == EX_OK)
        code = f->is_dry ? cli_failures_would(f, "edited and retried") : retry_found(f, &e.edit);
    wb_buffer_free(&e.body);
    return code;
}
