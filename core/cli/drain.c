/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/cli/drain.h"

#include <stdio.h>
#include <sysexits.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/cli/cli.h"

#define ASK_EVERY (1 * WB_SECOND)
#define TELL_EVERY (60 * WB_SECOND)

void cli_drain_begin(cli_drain *drain, int64_t now)
{
    drain->ends = drain->patience ? now + drain->patience : WB_NEVER;
    drain->full = now;
    drain->asked = drain->told = 0;
    drain->is_decided = drain->is_last = 0;
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

/* The instances of an endpoint that runs are in use. */
static int has_probe(cli_drain *drain, cli_hosted *one)
{
    wb_error error = { 0 };
    if (one->probe || wb_endpoint_create(one->setup, &one->probe, &error) == WB_OK)
        return 1;
    note(drain, one, error.text);
    return 0;
}

/* One that does not answer, or a thread that cannot be had, is not for ever: the next look asks again, or the time is over. */
static void ask(cli_drain *drain, cli_hosted *hosted, size_t count, int64_t now)
{
    drain->asked = now;
    for (size_t i = 0; i < count; i++)
        if (takes_part(&hosted[i]) && !has_probe(drain, &hosted[i]))
            return;
    drain->question = cli_question_ask(hosted, count, takes_part);
    if (!drain->question)
        (void)snprintf(drain->left, sizeof drain->left, "could not start a thread that asks what is left");
}

static void tell(cli_drain *drain, int64_t now)
{
    if (drain->told && now - drain->told < TELL_EVERY)
        return;
    drain->told = now;
    wb_log_event(WB_LOG_INFO, "not drained yet", { "reason", drain->left });
}

/* What leaves a table may be a message for one of them. @return whether all were empty since `since`, tables included. */
static int hear(cli_drain *drain, int64_t since, int64_t now)
{
    if (!cli_question_is_answered(drain->question, drain->left, sizeof drain->left))
        return 0;
    if (!cli_question_take(drain->question, drain->left, sizeof drain->left)) {
        drain->full = now;
        tell(drain, now);
    }
    drain->question = NULL;
    return since && since <= drain->asked && now - drain->full >= drain->idle;
}

/* Nothing was left, and not for long enough yet. */
static void note_idle(cli_drain *drain, int64_t duration)
{
    (void)snprintf(drain->left, sizeof drain->left, "nothing was left to handle, for %.1f s of %.1f (--idle)",
                   (double)duration / WB_SECOND, (double)drain->idle / WB_SECOND);
}

static int has_stayed_empty(cli_drain *drain, cli_hosted *hosted, size_t count, int64_t now)
{
    int64_t since = empty_since(drain, hosted, count);
    if (drain->question)
        return hear(drain, since, now);
    if (since && now - since < drain->idle)
        note_idle(drain, now - since);
    else if (since && now - drain->asked >= ASK_EVERY)
        ask(drain, hosted, count, now);
    return 0;
}

static int succeed(void)
{
    wb_log_write(WB_LOG_INFO, "drained: nothing is left to handle", NULL, 0);
    return EX_OK;
}

int cli_drain_look(cli_drain *drain, cli_hosted *hosted, size_t count, int64_t now)
{
    if (!drain->idle)
        return -1;
    drain->is_decided = has_stayed_empty(drain, hosted, count, now);
    if (drain->is_decided)
        return succeed();
    drain->is_decided = now >= drain->ends;
    return drain->is_decided ? cli_fail(EX_TEMPFAIL, "not drained in time: %s", drain->left) : -1;
}

/* One that never started can be asked for nothing. */
static int have_started(cli_drain *drain, const cli_hosted *hosted, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!takes_part(&hosted[i]) || hosted[i].endpoint)
            continue;
        note(drain, &hosted[i], "it waits for its servers to start");
        return 0;
    }
    return 1;
}

/* What was asked while somebody was at work says nothing of what was given back. */
static void ask_again(cli_drain *drain, cli_hosted *hosted, size_t count)
{
    if (drain->is_last || !cli_drain_end(drain))
        return;
    drain->is_last = 1;
    if (have_started(drain, hosted, count))
        ask(drain, hosted, count, drain->asked);
}

int cli_drain_stopped(cli_drain *drain, cli_hosted *hosted, size_t count, int is_over)
{
    static const char text[] = "stopped before all was drained: %s";
    if (!drain->idle || drain->is_decided)
        return EX_OK;
    ask_again(drain, hosted, count);
    if (!drain->question)
        return cli_fail(EX_TEMPFAIL, text, drain->left);
    if (!drain->is_last || !cli_question_is_answered(drain->question, drain->left, sizeof drain->left))
        return is_over ? cli_fail(EX_TEMPFAIL, text, drain->left) : -1;
    const int is_empty = cli_question_take(drain->question, drain->left, sizeof drain->left);
    drain->question = NULL;
    return is_empty ? succeed() : cli_fail(EX_TEMPFAIL, text, drain->left);
}

int cli_drain_end(cli_drain *drain)
{
    if (drain->question && !cli_question_is_answered(drain->question, drain->left, sizeof drain->left))
        return 0;
    if (drain->question)
        (void)cli_question_take(drain->question, drain->left, sizeof drain->left);
    drain->question = NULL;
    return 1;
}
