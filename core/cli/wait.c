/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/cli/wait.h"

#include <stdlib.h>

#include "core/base/log.h"
#include "core/pipeline/dependency.h"

int cli_wait_is_on(const cli_hosted *one)
{
    return one->setup->config->start == WB_START_WAIT && !one->endpoint;
}

static int is_curable(int result, const wb_error *error)
{
    switch (error->cause) {
    case WB_CAUSE_UNREACHABLE:
    case WB_CAUSE_SENDING:
    case WB_CAUSE_SERVER: return 1;
    case WB_CAUSE_OTHER: return result != WB_FATAL && result != WB_REJECT;
    default: return 0;
    }
}

static int is_believed(cli_wait *wait, int64_t now)
{
    if (wait->tries && !wait->doubted_at)
        wait->doubted_at = now;
    return !wait->tries || now - wait->doubted_at >= CLI_WAIT_DOUBT;
}

/* A quarter of jitter: the endpoints of a data centre do not come back in step. */
static void plan(cli_wait *wait, int64_t now)
{
    int64_t longest = wait->doubted_at ? CLI_WAIT_PAUSE_MIN : CLI_WAIT_PAUSE_MAX;
    int64_t pause = wb_clock_backoff(CLI_WAIT_PAUSE_MIN, wait->tries, longest);
    unsigned seed = (unsigned)now;
    wait->due = now + pause - pause / 4 * (int64_t)(rand_r(&seed) % 1000) / 1000;
    wait->tries++;
}

static void tell(cli_hosted *one, int64_t now)
{
    cli_wait *wait = &one->wait;
    if (wait->told_at && now - wait->told_at < WB_DEPENDENCY_REMIND_EVERY)
        return;
    wait->told_at = now;
    wb_log_event(WB_LOG_WARNING,
                 wait->has_servers ? "endpoint waits for its modules to open" : "endpoint waits for its servers to start",
                 { "endpoint", one->setup->config->name }, { "reason", wait->error.text });
}

static int note_failure(cli_hosted *one, int result, const wb_error *error, int64_t now)
{
    cli_wait *wait = &one->wait;
    int curable = is_curable(result, error);
    if (!curable && is_believed(wait, now))
        return result;
    if (curable)
        wait->doubted_at = 0;
    wait->error = *error;
    plan(wait, now);
    tell(one, now);
    return WB_OK;
}

/* Whoever was told of a server is told of a module, too. */
static void note_servers(cli_wait *wait, int are_there)
{
    if (wait->has_servers != are_there)
        wait->told_at = 0;
    wait->has_servers = are_there;
}

static int open_modules(cli_hosted *one, wb_error *error)
{
    int r = wb_endpoint_open_modules(one->endpoint, error);
    if (r == WB_OK)
        return WB_OK;
    wb_endpoint_destroy(one->endpoint);
    one->endpoint = NULL;
    return r;
}

static int end_trial(cli_hosted *one, int64_t now, wb_error *error)
{
    int r = wb_trial_end(one->trial, &one->endpoint, error);
    one->trial = NULL;
    note_servers(&one->wait, r == WB_OK);
    if (r == WB_OK)
        r = open_modules(one, error);
    return r == WB_OK ? r : note_failure(one, r, error, now);
}

static int begin_trial(cli_hosted *one, int install, int64_t now, wb_error *error)
{
    int r = wb_trial_start(one->setup, install, &one->trial, error);
    return r == WB_OK ? r : note_failure(one, r, error, now);
}

int cli_wait_look(cli_hosted *one, int install, int64_t now, wb_error *error)
{
    if (one->trial)
        return wb_trial_has_ended(one->trial) ? end_trial(one, now, error) : WB_OK;
    return now >= one->wait.due ? begin_trial(one, install, now, error) : WB_OK;
}
