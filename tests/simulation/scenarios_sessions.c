/* SPDX-License-Identifier: Apache-2.0
 *
 * Scenarios of transactional sessions: programs beside the workers, whose commits are quick, late, in
 * doubt, under one key, or end with their process.
 */
#include "config.h"

#include <stddef.h>
#include <waybill/sys/plugin.h>

#include "tests/simulation/driver.h"
#include "tests/simulation/population.h"
#include "tests/simulation/programs.h"
#include "tests/simulation/random.h"
#include "tests/simulation/scene.h"
#include "tests/simulation/scheduler.h"
#include "tests/simulation/shape.h"

/* Sessions, and messages beside them. */
static void prepare(int sends_control)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    the_shape.processes = 2;
    the_shape.programs = 2;
    the_shape.session_connections = 2;
    the_shape.sends_control = sends_control;
    the_shape.commit_duration = 15 * WB_SECOND;
    the_shape.delay_increment = 2 * WB_SECOND;
    the_shape.store = 1;
    sim_scene_add(60, SIM_SESSION);
    sim_scene_add(20, SIM_GOOD);
}

static void prepare_control(void)
{
    prepare(1);
}

static void prepare_forward(void)
{
    prepare(0);
}

/* Nobody sweeps: what a process leaves behind is sent by who gets the control message. */
static void prepare_unswept(void)
{
    prepare(1);
    the_shape.keepers = 0;
    the_shape.deaths = the_shape.outages = 1; /* for the audit */
}

static void prepare_forward_trouble(void)
{
    prepare(0);
    the_shape.deaths = the_shape.outages = 1;
}

static void prepare_native(void)
{
    prepare_unswept();
    the_shape.store = 0;
    the_shape.native = 1;
}

static void prepare_waiting(void)
{
    prepare_unswept();
    the_shape.store = 0;
}

/* Each key is given three times, by programs of both processes at once. */
static void prepare_keys(void)
{
    prepare(1);
    const unsigned all = sim_message_count;
    for (unsigned i = 0; i < all; i++)
        for (int twin = 0; twin < 2 && sim_messages[i].fate == SIM_SESSION && sim_session_has_key(&sim_messages[i]); twin++)
            (void)sim_populate_copy(&sim_messages[i], -1);
    the_shape.session_connections = 1;
}

/* Their time is over before some commits come to the database. */
static void prepare_late(void)
{
    prepare_unswept();
    the_shape.commit_duration = 3 * WB_SECOND;
    the_shape.delay_increment = WB_SECOND;
    the_shape.late_percent = 40;
}

static void prepare_doubt(void)
{
    prepare_late();
    the_shape.keepers = 1;
    the_shape.late_percent = 0;
    the_shape.fault_permille = 250;
}

/* Where some of it goes is not there yet. */
static void drive_refused(void)
{
    sim_drive_start();
    sim_sleep(60 * WB_SECOND);
    sim_scene_end(SIM_SOON);
}

static void drive_broker_down(void)
{
    sim_scene_outages(SIM_BROKER_DOWN);
}

static void drive_broker_silent(void)
{
    sim_scene_outages(SIM_BROKER_SILENT);
}

static void drive_database_down(void)
{
    sim_scene_outages(SIM_DATABASE_DOWN);
}

static void drive_commits_break(void)
{
    sim_scene_outages(SIM_COMMITS_BREAK);
}

static void drive_marks_lost(void)
{
    sim_scene_outages(SIM_MARKS_LOST);
}

const sim_scenario sim_scenarios_sessions[] = {
    { "sessions", "programs that commit sessions with a control message", prepare_control, sim_scene_soon },
    { "sessions_forward", "and without one", prepare_forward, sim_scene_soon },
    { "sessions_deaths", "processes that die at any step, and nobody sweeps", prepare_unswept, sim_scene_deaths },
    { "sessions_native_deaths", "the same where the broker delays", prepare_native, sim_scene_deaths },
    { "sessions_waiting_deaths", "and where nobody does", prepare_waiting, sim_scene_deaths },
    { "sessions_forward_deaths", "without control message, and somebody sweeps", prepare_forward_trouble, sim_scene_deaths },
    { "sessions_stops", "processes that are stopped time and again", prepare_control, sim_scene_stops },
    { "sessions_keys", "keys that are given three times at once", prepare_keys, sim_scene_soon },
    { "sessions_keys_deaths", "and processes that die", prepare_keys, sim_scene_deaths },
    { "sessions_late", "commits that come when their time is over", prepare_late, sim_scene_soon },
    { "sessions_late_deaths", "and processes that die", prepare_late, sim_scene_deaths },
    { "sessions_doubt", "commits whose answer is lost, and that come behind it", prepare_doubt, sim_scene_faults },
    { "sessions_refused", "destinations that are not there yet", prepare_forward, drive_refused },
    { "sessions_broker_down", "a broker that is away", prepare_forward_trouble, drive_broker_down },
    { "sessions_broker_silent", "a broker that confirms nothing", prepare_forward_trouble, drive_broker_silent },
    { "sessions_control_broker_down", "a broker that is away, with control messages", prepare_unswept, drive_broker_down },
    { "sessions_database_down", "a database that is away", prepare_forward_trouble, drive_database_down },
    { "sessions_commits_break", "commits that end their connection", prepare_forward_trouble, drive_commits_break },
    { "sessions_marks_lost", "marks whose answer is lost", prepare_forward_trouble, drive_marks_lost },
    { NULL, NULL, NULL, NULL },
};
