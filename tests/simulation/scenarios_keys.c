/* SPDX-License-Identifier: Apache-2.0
 *
 * Scenarios of keys: a transport that keeps the order of messages with one key, and whatever sets some of them aside.
 */
#include "config.h"

#include <waybill/sys/plugin.h>

#include "tests/simulation/broker.h"
#include "tests/simulation/driver.h"
#include "tests/simulation/population.h"
#include "tests/simulation/random.h"
#include "tests/simulation/scene.h"
#include "tests/simulation/scheduler.h"
#include "tests/simulation/shape.h"
#include "tests/simulation/verdict.h"

static void prepare(void)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    the_shape.incoming_keys = 4;
    the_shape.rebalance_permille = 100;
    the_shape.workers = 2;
    the_shape.has_release = 0;
    the_shape.batch_max = 6;
}

/* What meets a server's trouble is set aside, and those of its key wait behind it. */
static void prepare_mixed(void)
{
    prepare();
    for (int i = 0; i < 12; i++) {
        sim_scene_add(5, SIM_GOOD);
        sim_scene_add(1, i % 3 == 0 ? SIM_FAILING : i % 3 == 1 ? SIM_CUTS : SIM_CUTS_LATE);
        sim_scene_add(2, SIM_GOOD);
        sim_scene_add(1, i % 2 ? SIM_SLOW : SIM_FLAKY);
        sim_scene_add(1, SIM_REPLIES);
        sim_scene_add(1, i % 4 ? SIM_GOOD : SIM_UNROUTABLE);
    }
    for (int i = 0; i < 12; i++)
        (void)sim_populate_one(0, i % 4 == 1 ? SIM_FLAKY : SIM_GOOD, 1);
    for (unsigned i = 0; i < 10; i++)
        (void)sim_populate_copy(&sim_messages[i * 3], -1);
}

/* What takes long, and is set aside, among partitions that go to and fro. */
static void prepare_busy(void)
{
    prepare();
    the_shape.rebalance_permille = 300;
    the_shape.workers = 3;
    the_shape.batch_max = 4;
    for (int i = 0; i < 60; i++)
        sim_scene_add(1, i % 10 == 3 ? SIM_CUTS : i % 10 == 7 ? SIM_CUTS_LATE : i % 5 == 1 ? SIM_SLOW : SIM_GOOD);
    for (int i = 0; i < 60; i++)
        sim_scene_add(1, i % 6 == 2 ? SIM_SLOW : SIM_GOOD);
}

/* One key stands still until others have shown whose fault that is, and every handler takes long. */
static void prepare_stuck(void)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    the_shape.incoming_keys = 1;
    the_shape.has_release = 0;
    sim_scene_add(1, SIM_QUOTA);
    sim_scene_add(59, SIM_SLOW);
}

static void drive_stuck(void)
{
    unsigned moved = 0;
    sim_drive_start();
    for (int i = 0; i < 12; i++) {
        sim_sleep(40 * WB_SECOND);
        sim_scene_add(2, SIM_GOOD);
        sim_broker_publish(0);
    }
    sim_scene_end(SIM_HOUR);
    for (unsigned i = 0; i < sim_message_count; i++)
        moved += sim_messages[i].fate == SIM_QUOTA && sim_messages[i].moved;
    if (moved != 1)
        sim_violation("%u of 1 messages over a quota are in the error queue", moved);
}

static void prepare_apart(void)
{
    prepare_mixed();
    the_shape.processes = 2;
}

/* Sending takes long: what is taken away meanwhile is another's duplicate, which waits. */
static void drive_slowly(void)
{
    sim_scene_outages(SIM_BROKER_SLOW);
}

/* Who hangs in a window has its batch underway for long, and what is taken away meanwhile waits for it elsewhere. */
static void drive_silent(void)
{
    sim_drive_start();
    for (int i = 0; i < 10; i++) {
        sim_sleep(sim_random_between(500 * WB_MILLISECOND, 2 * WB_SECOND));
        sim_outage_start(SIM_BROKER_SILENT, sim_now() + sim_random_between(WB_SECOND, 4 * WB_SECOND));
    }
    sim_scene_end(SIM_SOON);
}

static void drive_forbidden(void)
{
    sim_scene_outages(SIM_BROKER_FORBIDS);
}

static void drive_without_database(void)
{
    sim_scene_outages(SIM_DATABASE_DOWN);
}

const sim_scenario sim_scenarios_keys[] = {
    { "keys", "keys whose order is kept, and messages that are set aside", prepare_mixed, sim_scene_plainly },
    { "keys_slow", "and a broker that confirms late", prepare_busy, drive_slowly },
    { "keys_silent", "and a broker that confirms nothing for a while", prepare_busy, drive_silent },
    { "keys_forbidden", "and sending is forbidden for a while", prepare_apart, drive_forbidden },
    { "keys_database_down", "and the database is away", prepare_apart, drive_without_database },
    { "keys_stuck", "and one that stands still until others are done", prepare_stuck, drive_stuck },
    { "keys_deaths", "and processes that die at any step", prepare_apart, sim_scene_deaths },
    { "keys_stops", "and orderly stops", prepare_apart, sim_scene_stops },
    { NULL, NULL, NULL, NULL },
};
