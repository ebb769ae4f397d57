/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs: threads beside an endpoint's workers that open sessions, change the database, send and
 * commit. A session is a sim_message that no queue ever has: what is committed and sent is in the
 * ledger as a handler's, and programs.c looks whether what they were told is true.
 */
#ifndef WB_SIMULATION_PROGRAMS_H
#define WB_SIMULATION_PROGRAMS_H

#include "core/session/sessions.h"
#include "tests/simulation/ledger.h"
#include "tests/simulation/scheduler.h"
#include "tests/simulation/shape.h"

#define SIM_PROGRAMS_MAX 3

/** Those of one endpoint in one process. */
typedef struct sim_programs {
    wb_sessions *sessions;
    sim_thread *threads[SIM_PROGRAMS_MAX];
    unsigned endpoint;
    int process;
    int stop;
} sim_programs;

/** Sessions that somebody has yet to try, of each endpoint. */
extern unsigned sim_sessions_left[SIM_ENDPOINTS_MAX];

/** Whether its program gives an id, which it may use again. */
int sim_session_has_key(const sim_message *session);
/** Whether it is tried until its program knows that it is committed. */
int sim_session_insists(const sim_message *session);

/** As many threads as the_shape.programs; `name` is in front of theirs. */
void sim_programs_start(sim_programs *programs, int process, unsigned endpoint, const char *name,
                        wb_pipeline *pipeline);
/** They end what they are at; what was committed has a while to leave. */
void sim_programs_stop(sim_programs *programs);
/** A process is no more: who insists tries what was in its hands again. */
void sim_programs_bury(int process);

#endif
