/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/cli/drain.h"

#include <stdio.h>
#include <sysexits.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/cli/cli.h"
#include "core/endpoint/rest.h"

#define ASK_EVERY (1 * WB_SECOND)

void cli_drain_begin(cli_drain *drain, int64_t now)
{
    drain->ends = drain->patience ? now + drain->patience : WB_NEVER;
    drain->full = now;
    drain->asked = 0;
    drain->left[0] = '\0';
}

static void note(cli_drain *drain, const cli_hosted *one, const char *what)
{
    (void)snprintf(drain->left, sizeof drain->left, "endpoint \"%s\": %.500s", one->setup->config->name, what);
}

/* What has ended for good says so with the exit code, and nobody waits for it. */
static int takes_part(const cli_hosted *one)
{
    return !one->setup->plan.send_only && !one->is_ended;
}

/* Since when no worker of any endpoint has had anything; 0: that is not so. */
static int64_t empty_since(cli_drain *drain, const cli_hosted *hosted, size_t count)
{
    int64_t latest = 1;
    for (size_t i = 0; i < count; i++) {
        if (!takes_part(&hosted[i]))
            continue;
        int64_t since = hosted[i].endpoint ? wb_endpoint_empty_since(hosted[i].endpoint) : 0;
        if (!since) {
            note(drain, &hosted[i], "it does not run, waits for a server, or handles messages");
            return 0;
        }
        latest = since > latest ? since : latest;
    }
    return latest;
}

/* @return whether nothing is left in its tables. */
static int is_done(cli_drain *drain, const cli_hosted *one)
{
    wb_rest rest;
    wb_error error = { 0 };
    char text[120];
    if (wb_rest_ask(one->endpoint, &rest, &error) != WB_OK) {
        note(drain, one, error.text);
        return 0;
    }
    (void)snprintf(text, sizeof text, "%zu rows with pending operations, %s delayed messages", rest.pending,
                   rest.is_delayed ? "and" : "no");
    note(drain, one, text);
    return !rest.pending && !rest.is_delayed;
}

static int are_tables_empty(cli_drain *drain, const cli_hosted *hosted, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (takes_part(&hosted[i]) && !is_done(drain, &hosted[i]))
            return 0;
    return 1;
}

/* What leaves a table may be a message for one of them. */
static int has_stayed_empty(cli_drain *drain, const cli_hosted *hosted, size_t count, int64_t now)
{
    int64_t since = empty_since(drain, hosted, count);
    if (!since || now - since < drain->idle || now - drain->asked < ASK_EVERY)
        return 0;
    drain->asked = now;
    if (!are_tables_empty(drain, hosted, count)) {
        drain->full = now;
        return 0;
    }
    return now - drain->full >= drain->idle;
}

int cli_drain_look(cli_drain *drain, const cli_hosted *hosted, size_t count, int64_t now)
{
    if (!drain->idle)
        return -1;
    if (has_stayed_empty(drain, hosted, count, now)) {
        wb_log_write(WB_LOG_INFO, "drained: nothing is left to handle", NULL, 0);
        return EX_OK;
    }
    return now < drain->ends ? -1 : cli_fail(EX_TEMPFAIL, "not drained in time: %s", drain->left);
}
