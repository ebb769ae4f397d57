/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/simulation/programs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <waybill/sys/plugin.h>

#include "tests/simulation/handlers.h"
#include "tests/simulation/random.h"
#include "tests/simulation/verdict.h"

/* For what was committed to leave, when a process stops. */
#define PATIENCE (5 * WB_SECOND)
/* Of a hundred sessions so many are closed without commit. */
#define ABANDONED_PERCENT 10

unsigned sim_sessions_left[SIM_ENDPOINTS_MAX];

static int holders[SIM_MESSAGES_MAX]; /* the process that has it in hand; 0: none */

int sim_session_has_key(const sim_message *session)
{
    return session->twin != session->number || session->number % 4 != 3;
}

int sim_session_insists(const sim_message *session)
{
    return sim_session_has_key(session) && session->number % 3 != 0;
}

static void put_back(sim_message *session)
{
    holders[session->number] = 0;
    session->place = sim_session_insists(session) ? SIM_AWAY : SIM_GONE;
    sim_sessions_left[session->endpoint] += session->place == SIM_AWAY;
}

static sim_message *take_one(sim_programs *p)
{
    sim_message *found = NULL;
    unsigned seen = 0;
    for (unsigned i = 0; i < sim_message_count; i++) {
        sim_message *m = &sim_messages[i];
        if (m->fate == SIM_SESSION && m->endpoint == p->endpoint && m->place == SIM_AWAY && sim_random(++seen) == 0)
            found = m;
    }
    if (!found)
        return NULL;
    found->place = SIM_IN_HAND;
    holders[found->number] = p->process;
    sim_sessions_left[p->endpoint]--;
    return found;
}

/* ---- what the program is told ---------------------------------------------------------- */

static unsigned commits_of_key(const sim_message *session)
{
    unsigned commits = 0;
    for (unsigned i = 0; i < sim_message_count; i++)
        if (sim_messages[i].fate == SIM_SESSION && sim_messages[i].endpoint == session->endpoint &&
            sim_messages[i].id_size == session->id_size &&
            memcmp(sim_messages[i].id, session->id, session->id_size) == 0)
            commits += sim_messages[i].commits;
    return commits;
}

/* What it is told must be true, now and for ever. */
static void check_answer(const sim_message *m, sim_run *run, const wb_error *error)
{
    if (error->result == WB_IN_DOUBT || !run)
        return;
    if (error->result == WB_OK && !run->committed)
        sim_violation("session %u: its program is told that it is committed, and nothing is", m->number);
    if (error->result == WB_OK)
        return;
    if (run->committed)
        sim_violation("session %u is committed, and its program is told: %s", m->number, error->text);
    run->is_refused = 1;
    if (error->cause == WB_CAUSE_DUPLICATE && !commits_of_key(m))
        sim_violation("session %u: nobody committed under its key, and its program is told that somebody did",
                      m->number);
}

static int is_over(const wb_error *error)
{
    return error->result == WB_OK || error->cause == WB_CAUSE_DUPLICATE;
}

/* ---- what it does ---------------------------------------------------------------------- */

static int open_session(sim_programs *p, sim_message *m, wb_session **ret_session, wb_error *error)
{
    const int has_key = sim_session_has_key(m);
    const wb_session_options options = { .id = has_key ? m->id : NULL, .id_size = has_key ? m->id_size : 0,
                                         .patience = 10 * WB_SECOND };
    int r = wb_sessions_open(p->sessions, &options, ret_session, error);
    if (r == WB_OK && !options.id)
        m->id_size = (size_t)snprintf(m->id, sizeof m->id, "%s", wb_session_id(*ret_session));
    return r;
}

/* One that has failed may be committed: that must be refused. */
static sim_run *use(wb_session *session, sim_message *m, wb_error *error)
{
    sim_run *run = NULL;
    int failed = sim_handle_session(wb_session_context(session), m, &run);
    if (sim_chance(20))
        sim_sleep(sim_random_between(0, 2 * the_shape.commit_duration));
    *error = (wb_error){ .result = WB_RETRY };
    if (!sim_chance(ABANDONED_PERCENT))
        (void)wb_sessions_commit(session, error);
    if (failed && error->result == WB_OK)
        sim_violation("session %u: a statement or a send failed, and it is committed", m->number);
    return run;
}

static void try_session(sim_programs *p, sim_message *m)
{
    wb_session *session;
    wb_error error = { 0 };
    if (open_session(p, m, &session, &error) != WB_OK) {
        put_back(m);
        return;
    }
    sim_run *run = use(session, m, &error);
    wb_session_close(session);
    sim_tell("session %u: %s%s", m->number, error.result == WB_OK ? "committed" : "not committed: ",
             error.result == WB_OK ? "" : error.text);
    check_answer(m, run, &error);
    if (!is_over(&error)) {
        put_back(m);
        return;
    }
    holders[m->number] = 0;
    m->place = SIM_GONE;
}

static int is_stopped(void *argument)
{
    return ((const sim_programs *)argument)->stop;
}

static int is_wanted(void *argument)
{
    const sim_programs *p = argument;
    return p->stop || sim_sessions_left[p->endpoint];
}

static void *run(void *argument)
{
    sim_programs *p = argument;
    sim_message *m;
    while (!sim_wait("program", sim_now() + sim_random_between(0, 500 * WB_MILLISECOND), is_stopped, p)) {
        (void)sim_wait("program: nothing to do", WB_NEVER, is_wanted, p);
        if (!p->stop && (m = take_one(p)))
            try_session(p, m);
    }
    return NULL;
}

/* ---- start, stop, death ---------------------------------------------------------------- */

void sim_programs_start(sim_programs *p, int process, unsigned endpoint, const char *name, wb_pipeline *pipeline)
{
    char thread[24];
    wb_error error;
    const wb_sessions_policy policy = { .sends_control = the_shape.sends_control,
                                        .processor = pipeline->endpoint,
                                        .commit_duration = the_shape.commit_duration,
                                        .delay_increment = the_shape.delay_increment,
                                        .connections = the_shape.session_connections };
    *p = (sim_programs){ .endpoint = endpoint, .process = process };
    if (!the_shape.programs)
        return;
    (void)snprintf(thread, sizeof thread, "%s/dispatch", name);
    sim_name_next(thread);
    if (wb_sessions_start(pipeline, &policy, &p->sessions, &error) != WB_OK)
        abort();
    for (unsigned i = 0; i < the_shape.programs; i++) {
        (void)snprintf(thread, sizeof thread, "%s/program%u", name, i);
        p->threads[i] = sim_spawn(process, thread, run, p);
    }
}

static int have_ended(void *argument)
{
    const sim_programs *p = argument;
    for (unsigned i = 0; i < the_shape.programs; i++)
        if (!sim_has_ended(p->threads[i]))
            return 0;
    return 1;
}

void sim_programs_stop(sim_programs *p)
{
    if (!p->sessions)
        return;
    p->stop = 1;
    (void)sim_wait("programs end", WB_NEVER, have_ended, p);
    wb_sessions_stop(p->sessions, PATIENCE);
    p->sessions = NULL;
}

void sim_programs_bury(int process)
{
    for (unsigned i = 0; i < sim_message_count; i++)
        if (holders[i] == process)
            put_back(&sim_messages[i]);
}
