/* SPDX-License-Identifier: Apache-2.0
 *
 * Failed messages that are archived or removed.
 */
#include "config.h"

#include <stdio.h>
#include <sysexits.h>

#include "core/base/clock.h"
#include "core/cli/failures.h"
#include "core/cli/progress.h"

static int change_once(cli_failures *f, const cli_failed *one, int is_archive, int *ret_was)
{
    const wb_failed_turn turn = { .struct_size = sizeof turn, .key = one->key, .key_size = one->key_size,
                                  .from = one->status, .to = WB_FAILED_ARCHIVED,
                                  .now = wb_pipeline_now(wb_endpoint_pipeline(f->endpoint)) };
    return is_archive ? f->ops->turn(f->session, &turn, ret_was, &f->error)
                      : f->ops->discard(f->session, one->key, one->key_size, one->status, ret_was, &f->error);
}

static int change_patiently(cli_failures *f, const cli_failed *one, int is_archive, int *ret_was)
{
    const int64_t until = wb_clock_monotonic() + CLI_FAILURES_PATIENCE;
    int r;
    while (((r = change_once(f, one, is_archive, ret_was)) == WB_ABORT || r == WB_RETRY) && wb_clock_monotonic() < until)
        wb_clock_pause(CLI_FAILURES_PAUSE, NULL);
    return r;
}

static int change_all(cli_failures *f, int is_archive, const char *outcome, size_t *left)
{
    int was;
    for (size_t i = 0; i < f->count; i++) {
        const int r = change_patiently(f, &f->found[i], is_archive, &was);
        cli_progress_set(i);
        if (r == WB_IN_DOUBT)
            return cli_fail(EX_TEMPFAIL, "whether it was done is not known, try again: %s", f->error.text);
        if (r != WB_OK)
            return cli_failures_fail(f);
        *left += cli_failures_tell_change(f, &f->found[i], was, outcome);
    }
    return EX_OK;
}

/* What went back is a message of its own, on its way or in the hands of its endpoint. */
static void tell_of_sent(const cli_failures *f)
{
    size_t sent = 0;
    for (size_t i = 0; i < f->count; i++)
        sent += f->found[i].status == WB_FAILED_RETRYING;
    if (sent)
        (void)fprintf(stderr, "waybill: endpoint \"%s\": messages that were sent back before, which this does not call back: %zu\n",
                      f->setup->config->name, sent);
}

static int change(cli_failures *f, int is_archive)
{
    const char *outcome = is_archive ? "archived" : "discarded";
    size_t left = 0;
    int code = cli_failures_find(f);
    if (code != EX_OK)
        return code;
    tell_of_sent(f);
    if (f->is_dry)
        return cli_failures_would(f, outcome);
    cli_progress_begin(is_archive ? "archiving" : "discarding", "failed messages", f->count, !f->is_json);
    code = change_all(f, is_archive, outcome, &left);
    cli_progress_end();
    return code == EX_OK ? cli_failures_finish(f, left) : code;
}

int cli_failures_archive(cli_failures *f)
{
    return change(f, 1);
}

int cli_failures_discard(cli_failures *f)
{
    return change(f, 0);
}
