/* SPDX-License-Identifier: Apache-2.0
 *
 * Scenarios of messages that programs write in SQL: their transactions roll back, take long and overtake each other,
 * beside processes that die, servers that are away, and destinations that refuse.
 */
#include "config.h"

#include <stddef.h>
#include <waybill/sys/plugin.h>

#include "tests/simulation/scene.h"
#include "tests/simulation/shape.h"

static void prepare(void)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    the_shape.processes = 2;
    the_shape.writers = 4;
    the_shape.keys = 4;
    sim_scene_add(200, SIM_WRITTEN);
    sim_scene_add(10, SIM_GOOD);
}

static void prepare_trouble(void)
{
    prepare();
    the_shape.deaths = the_shape.outages = 1; /* for the audit */
}

/* Looks at all rows are dear: most look behind what the last one has read. Of the few that have a key each waits for
 * the one before, which was long on its way. */
static void prepare_dear(void)
{
    prepare_trouble();
    the_shape.dear_looks = 1;
    the_shape.keys = 1;
}

static void prepare_faults(void)
{
    prepare_dear();
    the_shape.fault_permille = 150;
}

static void drive_broker_down(void)
{
    sim_scene_outages(SIM_BROKER_DOWN);
}

static void drive_broker_silent(void)
{
    sim_scene_outages(SIM_BROKER_SILENT);
}

static void drive_broker_nacks(void)
{
    sim_scene_outages(SIM_BROKER_NACKS);
}

static void drive_broker_forbids(void)
{
    sim_scene_outages(SIM_BROKER_FORBIDS);
}

static void drive_database_down(void)
{
    sim_scene_outages(SIM_DATABASE_DOWN);
}

static void drive_marks_lost(void)
{
    sim_scene_outages(SIM_MARKS_LOST);
}

const sim_scenario sim_scenarios_written[] = {
    { "written", "rows of programs, two processes", prepare, sim_scene_soon },
    { "written_deaths", "processes that die at any step", prepare_trouble, sim_scene_deaths },
    { "written_stops", "processes that are stopped time and again", prepare_trouble, sim_scene_stops },
    { "written_dear", "looks at all rows are dear", prepare_dear, sim_scene_soon },
    { "written_dear_deaths", "and processes die", prepare_dear, sim_scene_deaths },
    { "written_faults", "calls that fail, or whose answer is lost", prepare_faults, sim_scene_faults },
    { "written_broker_down", "a broker that is away", prepare_trouble, drive_broker_down },
    { "written_broker_silent", "a broker that confirms nothing", prepare_trouble, drive_broker_silent },
    { "written_broker_nacks", "a broker that nacks", prepare_trouble, drive_broker_nacks },
    { "written_broker_forbids", "a privilege that is missing for a while", prepare_trouble, drive_broker_forbids },
    { "written_database_down", "a database that is away", prepare_trouble, drive_database_down },
    { "written_marks_lost", "removals whose answer is lost", prepare_trouble, drive_marks_lost },
    { NULL, NULL, NULL, NULL },
};
