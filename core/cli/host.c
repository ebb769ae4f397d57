/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/cli/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "core/base/arena.h"
#include "core/base/log.h"
#include "core/base/patience.h"
#include "core/cli/cli.h"
#include "core/cli/overdue.h"
#include "core/cli/streams.h"
#include "core/cli/wait.h"
#include "core/config/units.h"
#include "core/endpoint/rehearsal.h"
#include "core/pipeline/call.h"

/* How often the main thread looks whether an endpoint gave up, or has finished. */
#define LOOK_EVERY (100 * WB_MILLISECOND)
#define LOOK_EVERY_STOPPING (10 * WB_MILLISECOND)
/* So long all wait at the start for endpoints that are tried: what is wrong with one then ends the
 * program before any other handles a message. */
#define FIRST_TRIALS WB_SECOND
/* A drain that is told to stop is worth so long a wait for what servers say of what is left. */
#define LAST_ANSWER (5 * WB_SECOND)
/* A trial is worth so long a wait when the program stops: nothing is in flight in it. */
#define LAST_TRIALS (300 * WB_MILLISECOND)
/* Closing plugins is no work in flight: it gets so long even when the time is over. */
#define CLOSING WB_SECOND
/* Observers of several endpoints share one second, mostly for one receiver; each has at least so long. */
#define LEAST_OF_AN_OBSERVER (50 * WB_MILLISECOND)

static int report(const cli_hosted *one, const wb_error *error)
{
    return cli_fail(wb_error_exit_code(error), "endpoint \"%s\": %s", one->setup->config->name, error->text);
}

/* ---- start ------------------------------------------------------------------------------ */

static int choose(cli_host *host, const wb_setup *setup, const char *name)
{
    host->hosted = wb_alloc_zero(setup->endpoint_count, sizeof *host->hosted);
    if (name) {
        host->hosted[0].setup = cli_endpoint(setup, name);
        host->count = host->hosted[0].setup != NULL;
        return host->count ? EX_OK : EX_USAGE;
    }
    for (size_t i = 0; i < setup->endpoint_count; i++)
        host->hosted[host->count++].setup = &setup->endpoints[i];
    return EX_OK;
}

static int64_t longest_patience(const cli_host *host)
{
    int64_t longest = 0;
    for (size_t i = 0; i < host->count; i++)
        if (host->hosted[i].setup->config->shutdown_timeout > longest)
            longest = host->hosted[i].setup->config->shutdown_timeout;
    return longest;
}

static int start_guard(cli_host *host)
{
    int code = cli_guard_start(&host->guard, longest_patience(host));
    if (code != 0)
        return cli_fail(EX_SOFTWARE, "could not start a thread: %s", strerror(code));
    host->has_guard = 1;
    return EX_OK;
}

/* All that `waybill check` would say, before anything connects. */
static int rehearse(wb_setup *setup, const char *name)
{
    wb_problems problems = { 0 };
    wb_error first;
    int code = EX_OK;
    if (wb_setup_rehearse(setup, name, &problems, &first) != WB_OK) {
        wb_problems_print(&problems, stderr);
        code = wb_error_exit_code(&first);
    }
    wb_problems_free(&problems);
    return code;
}

static int open_one(cli_host *host, cli_hosted *one)
{
    wb_error error = { 0 };
    (void)host;
    return wb_endpoint_open_modules(one->endpoint, &error) == WB_OK ? EX_OK : report(one, &error);
}

static int prepare_one(cli_host *host, cli_hosted *one)
{
    wb_error error = { 0 };
    int r = wb_endpoint_create(one->setup, &one->endpoint, &error);
    if (r == WB_OK && host->install)
        r = wb_endpoint_install(one->endpoint, &error);
    if (r == WB_OK)
        r = wb_endpoint_verify(one->endpoint, &error);
    return r == WB_OK ? EX_OK : report(one, &error);
}

static int start_one(cli_host *host, cli_hosted *one)
{
    (void)host;
    wb_error error = { 0 };
    int r = wb_endpoint_start(one->endpoint, &error);
    wb_restart_started(&one->restart, wb_clock_monotonic());
    return r == WB_OK ? EX_OK : report(one, &error);
}

/* One that waits for its servers. */
static int try_one(cli_host *host, cli_hosted *one)
{
    wb_error error = { 0 };
    return cli_wait_look(one, host->install, wb_clock_monotonic(), &error) == WB_OK ? EX_OK : report(one, &error);
}

/* Once they are there, and its modules open. */
static int start_tried(cli_host *host, cli_hosted *one)
{
    return one->endpoint ? start_one(host, one) : EX_OK;
}

static int try_and_start(cli_host *host, cli_hosted *one)
{
    int code = try_one(host, one);
    return code == EX_OK ? start_tried(host, one) : code;
}

/* One whose first trial could not even begin has said so. */
static int look_at_first_trial(cli_host *host, cli_hosted *one)
{
    return one->trial ? try_one(host, one) : EX_OK;
}

/* One step of the start for each with that `start`, whatever became of the others: each says what is wrong with it.
 * Told to stop, the rest is not begun. @return the code of the first that failed. */
typedef int start_step(cli_host *host, cli_hosted *one);

static int for_each(cli_host *host, int start, start_step *step)
{
    int code = EX_OK;
    for (size_t i = 0; i < host->count && !cli_guard_is_told(&host->guard); i++) {
        int one = host->hosted[i].setup->config->start == start ? step(host, &host->hosted[i]) : EX_OK;
        if (code == EX_OK)
            code = one;
    }
    return code;
}

/* The first that fails ends it: the others are to be stopped. */
static int start_all(cli_host *host)
{
    int code = EX_OK;
    for (size_t i = 0; i < host->count && code == EX_OK && !cli_guard_is_told(&host->guard); i++)
        code = start_tried(host, &host->hosted[i]);
    return code;
}

/* What signals asked for, within a look of the main thread. */
static void answer_signals(cli_host *host)
{
    const unsigned asked = cli_guard_take(&host->guard);
    if ((asked & CLI_ASKED_TO_READ) && host->logging.path) /* it has been set up */
        cli_logging_renew(&host->logging);
    if (asked & CLI_ASKED_FOR_COUNTS)
        cli_counts_tell(host->hosted, host->count);
}

static int are_trials_on(const cli_host *host)
{
    for (size_t i = 0; i < host->count; i++)
        if (host->hosted[i].trial && !wb_trial_has_ended(host->hosted[i].trial))
            return 1;
    return 0;
}

static void await_first_trials(cli_host *host)
{
    int64_t until = wb_clock_monotonic() + FIRST_TRIALS;
    while (are_trials_on(host) && wb_clock_monotonic() < until && !cli_guard_is_told(&host->guard))
        cli_guard_sleep(&host->guard, LOOK_EVERY_STOPPING);
}

/* Each is ready, or has been tried, before the first one runs. */
static int start(cli_host *host)
{
    int begun = for_each(host, WB_START_WAIT, try_one);
    int code = for_each(host, WB_START_FAIL, prepare_one);
    if (code == EX_OK)
        code = for_each(host, WB_START_FAIL, open_one);
    await_first_trials(host);
    int tried = for_each(host, WB_START_WAIT, look_at_first_trial);
    code = begun != EX_OK ? begun : code != EX_OK ? code : tried;
    return code == EX_OK ? start_all(host) : code;
}

/* ---- run -------------------------------------------------------------------------------- */

static void log_failure(const cli_hosted *one, int level, const char *text, int64_t pause)
{
    char duration[WB_UNIT_TEXT_SIZE], missing[12];
    (void)snprintf(missing, sizeof missing, "%u", wb_endpoint_missing(one->endpoint));
    wb_log_event(level, text, { "endpoint", one->setup->config->name }, { "workers", missing },
                 { "reason", one->failure.text }, { "pause", pause ? wb_duration_format(pause, duration) : NULL });
}

static void note_failure(cli_hosted *one, const wb_error *reason, int64_t now)
{
    if (one->failure.result == WB_OK)
        one->failed_at = now;
    one->failure = *reason;
    if (one->setup->config->on_endpoint_failure == WB_ON_FAILURE_RESTART) {
        log_failure(one, WB_LOG_ERROR, "endpoint gave up and is started again after a pause",
                    wb_restart_plan(&one->restart, now));
        return;
    }
    log_failure(one, WB_LOG_ERROR, "endpoint gave up and stays ended", 0);
    one->is_ended = 1;
    wb_endpoint_stop(one->endpoint);
}

static void restart_workers(cli_hosted *one, int64_t now)
{
    wb_restart_started(&one->restart, now);
    (void)wb_endpoint_restart(one->endpoint); /* the next look tells */
}

/* Where some live, what they need is there, and the others join them. Where none does, it is
 * verified first, as at every start: a worker that meets the same again would have taken a message,
 * and what it gives back counts as a delivery. */
static void restart(cli_hosted *one, int64_t now)
{
    wb_error error = { 0 };
    log_failure(one, WB_LOG_INFO, "endpoint is started again", one->restart.pause);
    if (wb_endpoint_missing(one->endpoint) < (unsigned)one->setup->config->concurrency)
        restart_workers(one, now);
    else if (wb_trial_start(one->setup, 0, &one->trial, &error) != WB_OK)
        note_failure(one, &error, now);
}

static void look_at_trial(cli_hosted *one, int64_t now)
{
    wb_error error = { 0 };
    if (!wb_trial_has_ended(one->trial))
        return;
    int r = wb_trial_end(one->trial, NULL, &error);
    one->trial = NULL;
    if (r == WB_OK)
        restart_workers(one, now);
    else
        note_failure(one, &error, now);
}

static void forgive(cli_hosted *one)
{
    if (one->failure.result != WB_OK)
        wb_log_event(WB_LOG_INFO, "endpoint is well again", { "endpoint", one->setup->config->name });
    one->failure.result = WB_OK;
}

/* What was waited for and mended is no failure of a drain: all of them run, and have nothing left. */
static void forgive_all(cli_host *host)
{
    for (size_t i = 0; i < host->count; i++)
        if (!host->hosted[i].is_ended)
            forgive(&host->hosted[i]);
}

static void look_at(cli_hosted *one, int64_t now)
{
    wb_error error = { 0 };
    if (one->is_ended) { /* one of its handlers may run for ever */
        (void)wb_endpoint_look(one->endpoint, &error);
        return;
    }
    if (one->trial) {
        look_at_trial(one, now);
        return;
    }
    int r = wb_endpoint_look(one->endpoint, &error);
    if (r != WB_OK && !wb_restart_is_planned(&one->restart))
        note_failure(one, &error, now);
    if (wb_restart_is_due(&one->restart, now))
        restart(one, now);
    else if (r == WB_OK && wb_restart_is_proven(&one->restart, now))
        forgive(one);
}

/* A send-only endpoint has nothing that could end, or that one would wait for, once it has started. */
static int is_over(const cli_hosted *one)
{
    return (one->setup->plan.send_only && !cli_wait_is_on(one)) || (one->is_ended && wb_endpoint_has_ended(one->endpoint));
}

static int all_over(const cli_host *host)
{
    for (size_t i = 0; i < host->count; i++)
        if (!is_over(&host->hosted[i]))
            return 0;
    return 1;
}

static void tell_pulse(cli_host *host, int is_stopping)
{
    const int64_t now = wb_clock_monotonic();
    cli_pulse_look(&host->pulse, host->hosted, host->count, is_stopping, now);
    cli_watch_look(&host->watch, host->hosted, host->count, is_stopping, now);
}

static int look_at_all(cli_host *host)
{
    int code = EX_OK;
    for (size_t i = 0; i < host->count && code == EX_OK; i++) {
        cli_hosted *one = &host->hosted[i];
        if (cli_wait_is_on(one))
            code = try_and_start(host, one);
        else
            look_at(one, wb_clock_monotonic());
    }
    return code;
}

static void mind_overdue(cli_host *host)
{
    if (cli_overdue_is_there(host->hosted, host->count))
        cli_overdue_end(host->hosted, host->count, &host->guard);
}

static int work(cli_host *host)
{
    int code = EX_OK, drained = -1;
    cli_pulse_ready(&host->pulse);
    cli_drain_begin(&host->drain, wb_clock_monotonic());
    while (code == EX_OK && drained < 0 && !cli_guard_is_told(&host->guard) && !all_over(host)) {
        tell_pulse(host, 0);
        cli_streams_look();
        cli_counts_look(&host->counts, host->hosted, host->count, wb_clock_monotonic());
        answer_signals(host);
        cli_guard_sleep(&host->guard, LOOK_EVERY);
        code = look_at_all(host);
        mind_overdue(host);
        if (code == EX_OK)
            drained = cli_drain_look(&host->drain, host->hosted, host->count, wb_clock_monotonic());
    }
    if (drained == EX_OK)
        forgive_all(host);
    if (cli_guard_is_told(&host->guard))
        wb_log_write(WB_LOG_INFO, "stops: finishing what is in flight", NULL, 0);
    return drained > 0 ? drained : code;
}

/* ---- stop ------------------------------------------------------------------------------- */

static int has_trial(const cli_hosted *one)
{
    return one->trial && !wb_trial_has_ended(one->trial);
}

static int is_at_work(const cli_hosted *one)
{
    return one->endpoint && !wb_endpoint_has_ended(one->endpoint);
}

static void begin_stop(cli_host *host)
{
    int64_t now = wb_clock_monotonic();
    const int64_t longest = longest_patience(host);
    cli_guard_limit(&host->guard, now + longest);
    host->trials_deadline = now + (longest < LAST_TRIALS ? longest : LAST_TRIALS);
    for (size_t i = 0; i < host->count; i++) {
        cli_hosted *one = &host->hosted[i];
        one->deadline = now + one->setup->config->shutdown_timeout;
        if (one->endpoint)
            wb_endpoint_stop(one->endpoint);
    }
}

/* How many are waited for, having time left; *ret_late: how many have none. A trial, of one that waits for its servers or that gave
 * up, is never late: nothing is in flight in it, and a server that does not answer holds up nobody. */
static size_t count_unfinished(const cli_host *host, size_t *ret_late)
{
    size_t waiting = 0;
    int64_t now = wb_clock_monotonic();
    *ret_late = 0;
    for (size_t i = 0; i < host->count; i++) {
        const cli_hosted *one = &host->hosted[i];
        if (is_at_work(one) && now >= one->deadline)
            (*ret_late)++;
        else if (is_at_work(one) || (has_trial(one) && now < host->trials_deadline))
            waiting++;
    }
    return waiting;
}

/* As while they run: handlers that take long are named, what was prefetched behind them is given away, and one beyond its
 * handler_timeout ends the process. What gave up is not started again. */
static void look_after_all(cli_host *host)
{
    wb_error ignored = { 0 };
    for (size_t i = 0; i < host->count; i++)
        if (host->hosted[i].endpoint)
            (void)wb_endpoint_look(host->hosted[i].endpoint, &ignored);
    mind_overdue(host);
}

/* Whoever is still at work when the time is over is as if killed: nothing is lost, and it runs
 * again. A thread that may still run long is never joined. */
static void stop(cli_host *host)
{
    size_t late;
    begin_stop(host);
    tell_pulse(host, 1);
    while (count_unfinished(host, &late)) {
        cli_guard_sleep(&host->guard, LOOK_EVERY_STOPPING);
        look_after_all(host);
        tell_pulse(host, 1);
        answer_signals(host);
    }
    if (late)
        cli_guard_leave(&host->guard, "shutdown_timeout");
    cli_guard_allow(&host->guard, CLI_WATCH_ENDING + CLOSING);
}

/* ---- end -------------------------------------------------------------------------------- */

/* A trial that still runs waits for a server that does not answer, and may do so for long: it is abandoned. */
static void join_one(cli_hosted *one)
{
    wb_error error = { 0 };
    if (one->trial && !has_trial(one)) {
        (void)wb_trial_end(one->trial, NULL, &error); /* nobody needs to know any more */
        one->trial = NULL;
    }
    if (!one->endpoint)
        return;
    int r = wb_endpoint_join(one->endpoint, &error);
    if (r == WB_OK || one->failure.result != WB_OK)
        return;
    one->failure = error;
    one->failed_at = wb_clock_monotonic();
}

/* Says what became of each endpoint that does not run any more. @return the exit code of the
 * first. */
static int report_failures(const cli_host *host)
{
    const cli_hosted *first = NULL;
    for (size_t i = 0; i < host->count; i++) {
        const cli_hosted *one = &host->hosted[i];
        if (one->failure.result == WB_OK)
            continue;
        (void)report(one, &one->failure);
        if (!first || one->failed_at < first->failed_at)
            first = one;
    }
    return first ? wb_error_exit_code(&first->failure) : EX_OK;
}

/* Messages that were given back are left, too: nobody is at work any longer. */
static int judge_drain(cli_host *host)
{
    const int64_t until = wb_clock_monotonic() + LAST_ANSWER;
    int code = cli_drain_stopped(&host->drain, host->hosted, host->count, 0);
    if (code < 0)
        cli_guard_allow(&host->guard, LAST_ANSWER + CLOSING);
    while (code < 0) {
        cli_guard_sleep(&host->guard, LOOK_EVERY_STOPPING);
        code = cli_drain_stopped(&host->drain, host->hosted, host->count, wb_clock_monotonic() >= until);
    }
    return code;
}

/* A server that does not answer holds up nobody. */
static void await_drain(cli_host *host)
{
    int64_t until = wb_clock_monotonic() + LAST_TRIALS;
    while (!cli_drain_end(&host->drain) && wb_clock_monotonic() < until)
        cli_guard_sleep(&host->guard, LOOK_EVERY_STOPPING);
}

static void stop_observers(cli_host *host)
{
    const int64_t until = wb_clock_monotonic() + WB_OBSERVER_PATIENCE;
    cli_guard_allow(&host->guard, WB_OBSERVER_PATIENCE + (int64_t)host->count * LEAST_OF_AN_OBSERVER + CLOSING);
    for (size_t i = 0; i < host->count; i++) {
        const int64_t now = wb_clock_monotonic(), share = (until - now) / (int64_t)(host->count - i);
        wb_endpoint_stop_observing(host->hosted[i].endpoint, now + (share > LEAST_OF_AN_OBSERVER ? share : LEAST_OF_AN_OBSERVER));
    }
}

static int finish(cli_host *host, int code)
{
    for (size_t i = 0; i < host->count; i++)
        join_one(&host->hosted[i]);
    int failed = report_failures(host);
    if (code == EX_OK)
        code = failed;
    if (code == EX_OK)
        code = judge_drain(host);
    await_drain(host);
    stop_observers(host);
    for (size_t i = 0; i < host->count && !host->drain.question; i++) {
        wb_endpoint_destroy(host->hosted[i].endpoint);
        wb_endpoint_destroy(host->hosted[i].probe);
    }
    return code;
}

/* What an abandoned thread uses must stay: the process ends without taking it away. */
static void leave_abandoned(const cli_host *host, int code)
{
    int is_there = host->drain.question != NULL || host->is_asking;
    for (size_t i = 0; i < host->count; i++)
        is_there |= host->hosted[i].trial != NULL;
    if (!is_there)
        return;
    wb_log_settle();
    (void)fflush(NULL);
    wb_call_end_process(code);
}

int cli_host_run(cli_host *host, wb_setup *setup, const char *name, int install)
{
    int code = choose(host, setup, name);
    wb_log_set_patience(WB_LOG_PATIENCE); /* who looks at the time of handlers waits for no reader either */
    host->install = install;
    cli_pulse_begin(&host->pulse);
    if (code == EX_OK)
        code = start_guard(host);
    if (code == EX_OK)
        code = rehearse(setup, name);
    if (code == EX_OK)
        code = cli_logging_open(&host->logging, setup->config);
    if (code == EX_OK)
        code = cli_watch_begin(&host->watch, setup->config, host->hosted, host->count);
    if (code == EX_OK)
        code = start(host);
    if (code == EX_OK)
        code = work(host);
    if (host->has_guard) {
        stop(host);
        host->is_asking = !cli_watch_end(&host->watch);
        code = finish(host, code);
        cli_guard_end(&host->guard);
        leave_abandoned(host, code);
    }
    cli_pulse_end(&host->pulse);
    cli_logging_end(&host->logging);
    free(host->hosted);
    return code;
}
