/* SPDX-License-Identifier: Apache-2.0
 *
 * libwaybill: what include/waybill/session.h declares. Nothing is decided here; memory that is out
 * becomes an error here.
 */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <waybill/session.h>

#include "core/base/arena.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/thread.h"
#include "core/endpoint/endpoint.h"
#include "core/endpoint/restart.h"
#include "core/endpoint/trial.h"
#include "core/message/given.h"
#include "core/session/sessions.h"

/* How often wb_endpoint_run() looks after the workers. */
#define LOOK_EVERY (100 * WB_MILLISECOND)

/* What belongs to an endpoint that a program opened. */
typedef struct owned {
    wb_setup *setup;
    wb_sessions *sessions; /* NULL: it has no outbox */
    atomic_int is_told_to_quit, has_run;
} owned;

/* libltdl and its state are the process's; so are the log's settings. */
static pthread_mutex_t library_lock = PTHREAD_MUTEX_INITIALIZER;

static int report(const wb_error *error, int result, wb_reason *reason)
{
    if (result == WB_OK || !reason)
        return result;
    *reason = (wb_reason){ .result = result, .cause = error->cause, .native_code = error->native_code };
    memcpy(reason->text, error->text, sizeof reason->text);
    return result;
}

_Static_assert(sizeof ((wb_reason *)0)->text == sizeof ((wb_error *)0)->text, "what an error says fits");

static int report_no_memory(wb_reason *reason)
{
    wb_error error = { 0 };
    return report(&error, wb_error_set(&error, WB_RETRY, WB_CAUSE_SERVER, 0, "out of memory"), reason);
}

static owned *program_of(const wb_endpoint *endpoint)
{
    return wb_endpoint_owner(endpoint);
}

/* ---- the log --------------------------------------------------------------------------- */

static int has_log;

static void drop_line(void *argument, int level, const char *line, size_t size)
{
    (void)argument, (void)level, (void)line, (void)size;
}

void wb_log_to(wb_log_fn write, void *argument)
{
    pthread_mutex_lock(&library_lock);
    wb_log_set_writer(write ? write : drop_line, argument);
    has_log = 1;
    pthread_mutex_unlock(&library_lock);
}

/* ---- opening ----------------------------------------------------------------------------- */

typedef struct opening {
    const wb_endpoint_options *options;
    int is_beyond; /* they ask for what a later version knows */
    owned *program;
    wb_endpoint *endpoint;
    wb_problems problems;
    wb_error error;
    int result;
} opening;

/* As many of the lines as there is room for. */
static int fail_with_problems(opening *o)
{
    char text[sizeof o->error.text] = "";
    size_t used = 0;
    for (size_t i = 0; i < o->problems.count && used < sizeof text; i++)
        if (o->problems.items[i].level == WB_LOG_ERROR)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", used ? "\n" : "", o->problems.items[i].text);
    return wb_error_set(&o->error, WB_FATAL, WB_CAUSE_CONFIG, 0, "%s", text);
}

static void log_warnings(const wb_problems *problems)
{
    for (size_t i = 0; i < problems->count; i++)
        if (problems->items[i].level != WB_LOG_ERROR)
            wb_log_event(WB_LOG_WARNING, "configuration", { "problem", problems->items[i].text });
}

static int load(opening *o)
{
    const uint32_t flags = o->options->flags & WB_ENDPOINT_HANDLERS ? 0 : WB_SETUP_WITHOUT_HANDLERS;
    if (o->is_beyond || o->options->flags & ~WB_ENDPOINT_HANDLERS || o->options->reserved)
        return wb_error_set(&o->error, WB_FATAL, WB_CAUSE_CONFIG, 0, "the options ask for what this version does not know");
    if (!o->options->config)
        return wb_error_set(&o->error, WB_FATAL, WB_CAUSE_CONFIG, 0, "no configuration file is named");
    if (wb_setup_load(o->options->config, flags, &o->program->setup, &o->problems) != WB_OK)
        return fail_with_problems(o);
    log_warnings(&o->problems);
    wb_log_set_level(o->program->setup->config->log_level);
    return WB_OK;
}

static const wb_endpoint_setup *choose(opening *o)
{
    const char *name = o->options->name;
    const wb_endpoint_setup *chosen = name ? wb_setup_endpoint(o->program->setup, name) : &o->program->setup->endpoints[0];
    if (!chosen)
        (void)wb_error_set(&o->error, WB_FATAL, WB_CAUSE_CONFIG, 0, "%s: there is no endpoint \"%s\"", o->options->config,
                           name);
    return chosen;
}

static int start_sessions(opening *o, const wb_endpoint_setup *setup)
{
    const wb_endpoint_config *config = setup->config;
    const wb_sessions_policy policy = {
        .sends_control = config->session.mode == WB_SESSION_CONTROL_MESSAGE,
        .processor = config->session.processor_endpoint ? config->session.processor_endpoint : config->name,
        .commit_duration = config->session.maximum_commit_duration,
        .delay_increment = config->session.commit_delay_increment,
        .connections = (unsigned)config->session.connections,
    };
    if (!setup->plan.sessions)
        return WB_OK;
    int r = wb_sessions_start(wb_endpoint_pipeline(o->endpoint), &policy, &o->program->sessions, &o->error);
    return r == WB_OK ? wb_endpoint_keep(o->endpoint, &o->error) : r;
}

static int open_endpoint(opening *o)
{
    int r = load(o);
    const wb_endpoint_setup *setup = r == WB_OK ? choose(o) : NULL;
    if (!setup)
        return WB_FATAL;
    if ((r = wb_endpoint_create(setup, &o->endpoint, &o->error)) != WB_OK)
        return r;
    wb_endpoint_set_owner(o->endpoint, o->program);
    r = wb_endpoint_verify(o->endpoint, &o->error);
    if (r == WB_OK)
        r = wb_endpoint_observe(o->endpoint, &o->error);
    return r == WB_OK ? start_sessions(o, setup) : r;
}

static void try_open(void *argument)
{
    opening *o = argument;
    o->program = wb_alloc_zero(1, sizeof *o->program);
    o->result = open_endpoint(o);
    o->error.result = o->result;
}

static void free_program(owned *program)
{
    if (!program)
        return;
    wb_setup_free(program->setup);
    free(program);
}

static void close_endpoint(wb_endpoint *endpoint, owned *program, int64_t patience)
{
    wb_error ignored;
    if (program)
        wb_sessions_stop(program->sessions, patience);
    if (endpoint) {
        wb_endpoint_stop(endpoint);
        (void)wb_endpoint_join(endpoint, &ignored);
        wb_endpoint_destroy(endpoint);
    }
    wb_log_settle();
    free_program(program);
}

int wb_endpoint_open(const wb_endpoint_options *options, size_t size, wb_endpoint **ret_endpoint, wb_reason *reason)
{
    if (ret_endpoint)
        *ret_endpoint = NULL;
    wb_endpoint_options known = { 0 };
    opening o = { .options = &known,
                  .is_beyond = options && wb_given_is_beyond(options, size, sizeof known),
                  .result = WB_RETRY };
    sigset_t before;
    if (options)
        memcpy(&known, options, size < sizeof known ? size : sizeof known);
    pthread_mutex_lock(&library_lock);
    if (!has_log)
        wb_log_set_writer(drop_line, NULL);
    has_log = 1;
    wb_thread_block(&before);
    int is_out = wb_memory_try(try_open, &o) < 0;
    wb_thread_unblock(&before);
    pthread_mutex_unlock(&library_lock);
    wb_problems_free(&o.problems);
    if (!is_out && o.result == WB_OK) {
        *ret_endpoint = o.endpoint;
        return WB_OK;
    }
    close_endpoint(o.endpoint, o.program, 0);
    return is_out ? report_no_memory(reason) : report(&o.error, o.result, reason);
}

void wb_endpoint_close(wb_endpoint *endpoint)
{
    if (endpoint)
        close_endpoint(endpoint, program_of(endpoint), wb_endpoint_config_of(endpoint)->shutdown_timeout);
}

/* ---- running ------------------------------------------------------------------------------- */

typedef struct running {
    wb_endpoint *endpoint;
    wb_restart restart;
    wb_trial *trial; /* before workers are started again */
    wb_error error;
    int result;
} running;

static int is_told_to_quit(const running *run)
{
    return atomic_load(&program_of(run->endpoint)->is_told_to_quit);
}

static void plan_restart(running *run, const wb_error *reason, int64_t now)
{
    wb_log_event(WB_LOG_ERROR, "endpoint gave up and is started again after a pause",
                 { "endpoint", wb_endpoint_config_of(run->endpoint)->name }, { "reason", reason->text });
    (void)wb_restart_plan(&run->restart, now);
}

static void restart_workers(running *run, int64_t now)
{
    wb_restart_started(&run->restart, now);
    (void)wb_endpoint_restart(run->endpoint); /* the next look tells */
}

/* As `waybill run` does (core/cli/host.c): where none is left, what they need is verified first. */
static void restart(running *run, int64_t now)
{
    wb_error error = { 0 };
    if (wb_endpoint_missing(run->endpoint) < (unsigned)wb_endpoint_config_of(run->endpoint)->concurrency)
        restart_workers(run, now);
    else if (wb_trial_start(wb_endpoint_setup_of(run->endpoint), 0, &run->trial, &error) != WB_OK)
        plan_restart(run, &error, now);
}

static void look_at_trial(running *run, int64_t now)
{
    wb_error error = { 0 };
    if (!wb_trial_has_ended(run->trial))
        return;
    wb_trial *trial = run->trial;
    run->trial = NULL;
    if (wb_trial_end(trial, NULL, &error) == WB_OK)
        restart_workers(run, now);
    else
        plan_restart(run, &error, now);
}

/* Workers that gave up are started again after a pause, as the file says. @return whether to go on. */
static int look(running *run, int64_t now)
{
    const int restarts = wb_endpoint_config_of(run->endpoint)->on_endpoint_failure == WB_ON_FAILURE_RESTART;
    wb_error error = { 0 };
    const int r = wb_endpoint_look(run->endpoint, &error);
    if (r != WB_OK && !restarts) {
        run->error = error;
        return 0;
    }
    if (run->trial)
        look_at_trial(run, now);
    else if (r != WB_OK && !wb_restart_is_planned(&run->restart))
        plan_restart(run, &error, now);
    else if (wb_restart_is_due(&run->restart, now))
        restart(run, now);
    return 1;
}

/* Code of modules: what is out of memory there is theirs. */
static int open_modules(wb_endpoint *endpoint, wb_error *error)
{
    sigset_t before;
    wb_thread_block(&before);
    int r = wb_endpoint_check_modules(endpoint, error);
    if (r == WB_OK)
        r = wb_endpoint_open_modules(endpoint, error);
    wb_thread_unblock(&before);
    return r;
}

/* Threads that are started here get no signals of the program's. */
static int look_blocked(running *run)
{
    sigset_t before;
    wb_thread_block(&before);
    const int goes_on = look(run, wb_clock_monotonic());
    wb_thread_unblock(&before);
    return goes_on;
}

static void run_workers(void *argument)
{
    running *run = argument;
    sigset_t before;
    wb_thread_block(&before);
    run->result = wb_endpoint_start(run->endpoint, &run->error);
    wb_thread_unblock(&before);
    wb_restart_started(&run->restart, wb_clock_monotonic());
    while (run->result == WB_OK && !is_told_to_quit(run)) {
        if (!look_blocked(run))
            run->result = WB_FATAL;
        wb_log_sum_up();
        wb_clock_pause(LOOK_EVERY, &program_of(run->endpoint)->is_told_to_quit);
    }
}

/* Where memory is out it is left with signals blocked. */
static int try_run(running *run)
{
    wb_thread_own own;
    wb_thread_remember(&own);
    const int is_out = wb_memory_try(run_workers, run) < 0;
    wb_thread_put_back(&own);
    return is_out;
}

int wb_endpoint_run(wb_endpoint *endpoint, wb_reason *reason)
{
    running run = { .endpoint = endpoint, .result = WB_OK };
    wb_error ignored;
    if (!wb_endpoint_has_handlers(endpoint))
        return report(&run.error, wb_error_set(&run.error, WB_FATAL, WB_CAUSE_CONFIG, 0,
                                               "the endpoint was opened without WB_ENDPOINT_HANDLERS, or has none"),
                      reason);
    if (atomic_exchange(&program_of(endpoint)->has_run, 1))
        return report(&run.error, wb_error_set(&run.error, WB_FATAL, WB_CAUSE_OTHER, 0,
                                               "the endpoint has run: close it and open it again"),
                      reason);
    run.result = open_modules(endpoint, &run.error);
    int is_out = run.result == WB_OK && try_run(&run);
    wb_endpoint_stop(endpoint);
    if (run.trial) /* it may wait for a server: nobody works meanwhile */
        (void)wb_trial_end(run.trial, NULL, &ignored);
    (void)wb_endpoint_join(endpoint, &ignored);
    return is_out ? report_no_memory(reason) : report(&run.error, run.result, reason);
}

void wb_endpoint_quit(wb_endpoint *endpoint)
{
    atomic_store(&program_of(endpoint)->is_told_to_quit, 1);
}

/* ---- sessions -------------------------------------------------------------------------------- */

typedef struct session_call {
    wb_sessions *sessions;
    const wb_session_options *options;
    wb_session *session;
    wb_error error;
    int result;
} session_call;

static void try_open_session(void *argument)
{
    session_call *call = argument;
    call->result = wb_sessions_open(call->sessions, call->options, &call->session, &call->error);
}

int wb_session_open(wb_endpoint *endpoint, const wb_session_options *options, size_t size, wb_session **ret_session,
                    wb_reason *reason)
{
    if (ret_session)
        *ret_session = NULL;
    wb_session_options known = { 0 };
    session_call call = { .sessions = program_of(endpoint)->sessions, .options = &known };
    if (options)
        memcpy(&known, options, size < sizeof known ? size : sizeof known);
    if (options && wb_given_is_beyond(options, size, sizeof known))
        return report(&call.error, wb_error_set(&call.error, WB_REJECT, WB_CAUSE_OTHER, 0,
                                                "the options ask for what this version does not know"),
                      reason);
    if (!call.sessions)
        return report(&call.error, wb_error_set(&call.error, WB_REJECT, WB_CAUSE_CONFIG, 0,
                                                "the endpoint has no outbox, which transactional sessions need"),
                      reason);
    if (wb_memory_try(try_open_session, &call) < 0) {
        wb_session_close(call.session);
        return report_no_memory(reason);
    }
    *ret_session = call.session;
    return report(&call.error, call.result, reason);
}

static void try_commit(void *argument)
{
    session_call *call = argument;
    call->result = wb_sessions_commit(call->session, &call->error);
}

int wb_session_commit(wb_session *session, wb_reason *reason)
{
    session_call call = { .session = session };
    return wb_memory_try(try_commit, &call) < 0 ? report_no_memory(reason) : report(&call.error, call.result, reason);
}
