/* SPDX-License-Identifier: Apache-2.0
 *
 * Scenarios of deduplication in another store: a database of its own, which fails by itself.
 */
#include "config.h"

#include <waybill/sys/plugin.h>

#include "tests/simulation/database.h"
#include "tests/simulation/driver.h"
#include "tests/simulation/population.h"
#include "tests/simulation/random.h"
#include "tests/simulation/scene.h"
#include "tests/simulation/scheduler.h"
#include "tests/simulation/shape.h"
#include "tests/simulation/verdict.h"

#define CALM_IDS 60

static void prepare(void)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    the_shape.apart = 1;
    the_shape.workers = 2;
    the_shape.batch_max = 6;
}

static void mix(void)
{
    for (int i = 0; i < 6; i++) {
        sim_scene_add(5, SIM_GOOD);
        sim_scene_add(1, SIM_FLAKY);
        sim_scene_add(1, SIM_FAILING);
        sim_scene_add(1, SIM_SLOW);
        sim_scene_add(1, SIM_POISON);
        sim_scene_add(1, SIM_TALKATIVE);
        sim_scene_add(1, SIM_UNROUTABLE);
        sim_scene_add(1, SIM_NO_HANDLER);
    }
    for (unsigned i = 0; i < 24; i++)
        (void)sim_populate_copy(&sim_messages[i * 3], -1);
}

static void prepare_mixed(void)
{
    prepare();
    mix();
}

/* Copies that two workers of two processes have in hand at once, where handling takes no time. */
static void prepare_twins(void)
{
    prepare();
    the_shape.processes = 2;
    the_shape.batch_max = 1;
    the_shape.switching = 8;
    for (unsigned i = 0; i < 40; i++) {
        (void)sim_populate_one(0, SIM_GOOD, 0);
        for (unsigned j = 0; j < 3; j++)
            (void)sim_populate_copy(&sim_messages[4 * i], -1);
    }
}

static void prepare_ends(void)
{
    prepare();
    the_shape.workers = 1;
    the_shape.batch_max = 24;
    for (int i = 0; i < 8; i++) {
        sim_scene_add(5, SIM_GOOD);
        sim_scene_add(1, SIM_ENDS);
    }
    for (unsigned i = 0; i < 8; i++)
        (void)sim_populate_copy(&sim_messages[i * 6], -1);
}

/* Copies that others have in hand while a handler ends the transaction. */
static void prepare_ends_twins(void)
{
    prepare();
    the_shape.processes = 2;
    the_shape.batch_max = 24;
    the_shape.switching = 5;
    for (int i = 0; i < 12; i++) {
        const unsigned first = sim_message_count;
        sim_scene_add(3, SIM_GOOD);
        sim_scene_add(1, SIM_ENDS);
        sim_scene_add(2, SIM_GOOD);
        for (unsigned j = 0; j < 3; j++)
            (void)sim_populate_copy(&sim_messages[first + j], -1);
    }
}

/* Nothing went wrong: each id has gone to the store, and its record with it. */
static void drive_calmly(void)
{
    sim_drive_start();
    sim_drive_calm(SIM_HOUR);
    sim_drive_stop();
    if (sim_tables[0].record_count)
        sim_violation("%zu records are left with the outbox", sim_tables[0].record_count);
    if (sim_tables[sim_apart(0)].record_count != CALM_IDS)
        sim_violation("the store has %zu ids", sim_tables[sim_apart(0)].record_count);
}

static void prepare_calm(void)
{
    prepare();
    sim_scene_add(CALM_IDS, SIM_GOOD);
    for (unsigned i = 0; i < CALM_IDS; i += 2)
        (void)sim_populate_copy(&sim_messages[i], -1);
}

static void drive_away(void)
{
    sim_scene_outages(SIM_STORE_DOWN);
}

static void drive_renamed(void)
{
    sim_scene_renamed(SIM_STORE_RENAMED);
}

static void drive_table_renamed(void)
{
    sim_scene_renamed(SIM_TABLE_RENAMED);
}

/* Any call fails, processes die and stop, servers are away; sessions, delays, whatever a seed draws. */
static void prepare_drawn(void)
{
    sim_shape_draw(WB_MODE_RECEIVE_ONLY);
    the_shape.persistence = the_shape.outbox = the_shape.apart = the_shape.keepers = 1;
    sim_populate();
}

const sim_scenario sim_scenarios_apart[] = {
    { "apart", "ids of what is done with go to another store", prepare_mixed, sim_scene_plainly },
    { "apart_calm", "nothing goes wrong, and no record is left", prepare_calm, drive_calmly },
    { "apart_twins", "copies that several workers have in hand", prepare_twins, sim_scene_plainly },
    { "apart_deaths", "processes that die at any step", prepare_mixed, sim_scene_deaths },
    { "apart_twins_deaths", "the same with copies", prepare_twins, sim_scene_deaths },
    { "apart_stops", "orderly stops", prepare_mixed, sim_scene_stops },
    { "apart_away", "the store is away", prepare_mixed, drive_away },
    { "apart_renamed", "a migration renames the store's table", prepare_mixed, drive_renamed },
    { "apart_table_renamed", "and the outbox's own", prepare_mixed, drive_table_renamed },
    { "apart_ends", "handlers that end the transaction", prepare_ends, sim_scene_good_first },
    { "apart_ends_twins", "the same, with copies that others have in hand", prepare_ends_twins, sim_scene_plainly },
    { "apart_drawn", "whatever a seed draws", prepare_drawn, sim_drive },
    { NULL, NULL, NULL, NULL },
};
