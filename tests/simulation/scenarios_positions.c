/* SPDX-License-Identifier: Apache-2.0
 *
 * Scenarios of positions: partitions that are taken away while their messages are in hand.
 */
#include "config.h"

#include <waybill/sys/plugin.h>

#include "tests/simulation/database.h"
#include "tests/simulation/driver.h"
#include "tests/simulation/ledger.h"
#include "tests/simulation/partitions.h"
#include "tests/simulation/population.h"
#include "tests/simulation/process.h"
#include "tests/simulation/random.h"
#include "tests/simulation/scene.h"
#include "tests/simulation/scheduler.h"
#include "tests/simulation/shape.h"
#include "tests/simulation/verdict.h"

static void prepare(int positions)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    the_shape.positions = positions;
    the_shape.rebalance_permille = 60;
    the_shape.processes = 2;
    the_shape.workers = 2;
    the_shape.has_release = 0;
    the_shape.batch_max = 6;
}

/* By themselves positions know no message that was sent twice. */
static void mix(void)
{
    for (int i = 0; i < 6; i++) {
        sim_scene_add(4, SIM_GOOD);
        sim_scene_add(1, SIM_FLAKY);
        sim_scene_add(1, SIM_FAILING);
        sim_scene_add(2, SIM_SLOW);
        sim_scene_add(1, SIM_POISON);
        sim_scene_add(1, SIM_TALKATIVE);
        sim_scene_add(1, SIM_UNROUTABLE);
        sim_scene_add(1, SIM_NO_HANDLER);
    }
    for (int i = 0; i < 12; i++)
        (void)sim_populate_one(0, i % 4 == 1 ? SIM_FLAKY : SIM_GOOD, 1);
}

static void prepare_alone(void)
{
    prepare(2);
    mix();
}

static void prepare_beside(void)
{
    prepare(1);
    mix();
    for (unsigned i = 0; i < 10; i++)
        (void)sim_populate_copy(&sim_messages[i * 3], -1);
}

/* A slow one uses up the time of its batch: the rest is kept. */
static void prepare_kept(void)
{
    prepare(2);
    the_shape.rebalance_permille = 200;
    the_shape.batch_max = 16;
    for (int i = 0; i < 120; i++)
        (void)sim_populate_one(0, i % 10 == 9 ? SIM_SLOW : SIM_GOOD, i / 3 % 2);
}

/* What one batch of a partition left pending is dispatched before the next one has its row. */
static void prepare_pending(void)
{
    prepare(2);
    the_shape.rebalance_permille = 200;
    the_shape.batch_max = 16;
    for (int i = 0; i < 120; i++)
        (void)sim_populate_one(0, i % 9 == 8 ? SIM_SLOW : SIM_GOOD, i % 3 == 1);
}

/* Its failing message waits while those behind it could be handled. */
static void prepare_failures(void)
{
    prepare(2);
    for (int i = 0; i < 15; i++) {
        sim_scene_add(2, SIM_GOOD);
        sim_scene_add(1, i % 2 ? SIM_POISON : SIM_FAILING);
    }
    for (int i = 0; i < 4; i++) {
        sim_scene_add(1, SIM_UNMOVABLE);
        sim_scene_add(4, SIM_GOOD);
    }
}

/* Ids whose copy fails, and comes again: somebody returns one from the error queue. */
static void prepare_beside_failures(void)
{
    prepare(1);
    the_shape.rebalance_permille = 200;
    for (int i = 0; i < 12; i++) {
        sim_scene_add(2, SIM_GOOD);
        sim_scene_add(1, SIM_FAILING);
    }
    for (unsigned i = 0; i < 12; i++)
        (void)sim_populate_copy(&sim_messages[i * 3 + 2], SIM_GOOD);
    for (unsigned i = 0; i < 12; i++)
        (void)sim_populate_copy(&sim_messages[i * 3], SIM_FAILING);
}

static void prepare_calm(void)
{
    prepare(2);
    the_shape.rebalance_permille = 400;
    the_shape.workers = 3;
    sim_scene_add(80, SIM_GOOD);
}

static void prepare_ends(void)
{
    prepare(2);
    the_shape.rebalance_permille = 0;
    the_shape.processes = 1;
    the_shape.workers = 1;
    the_shape.batch_max = 24;
    for (int i = 0; i < 8; i++) {
        sim_scene_add(5, SIM_GOOD);
        sim_scene_add(1, SIM_ENDS);
    }
}

static void prepare_ends_moved(void)
{
    prepare(2);
    the_shape.rebalance_permille = 300;
    the_shape.batch_max = 8;
    the_shape.switching = 3;
    for (int i = 0; i < 16; i++) {
        sim_scene_add(5, SIM_GOOD);
        sim_scene_add(1, sim_then_of(sim_message_count) != SIM_THEN_SERVER ? SIM_ENDS : SIM_GOOD);
    }
}

/* Any call fails, processes die and stop, servers are away. */
static void prepare_drawn(int positions)
{
    sim_shape_draw(WB_MODE_RECEIVE_ONLY);
    the_shape.persistence = the_shape.outbox = the_shape.keepers = 1;
    the_shape.positions = positions;
    the_shape.rebalance_permille = sim_random(100);
    the_shape.has_release = 0;
    the_shape.delivery_limit = the_shape.tells_limit = 0;
    the_shape.expires = 0;
    the_shape.expire_percent = 0;
    if (positions == 2) {
        the_shape.delayed_retries = 0;
        the_shape.copies_percent = 0;
    }
    the_shape.fate_count = 0;
    for (unsigned i = 0; i < 6; i++) {
        static const sim_fate some[] = { SIM_FLAKY, SIM_SLOW, SIM_POISON, SIM_FAILING, SIM_UNROUTABLE,
                                         SIM_REPLIES, SIM_NO_HANDLER, SIM_NO_TYPE, SIM_UNREADABLE, SIM_CONTROL };
        const sim_fate fate = some[sim_random(sizeof some / sizeof some[0])];
        if (sim_shape_allows(fate))
            the_shape.fates[the_shape.fate_count++] = fate;
    }
    sim_populate();
}

static void prepare_drawn_alone(void)
{
    prepare_drawn(2);
}

static void prepare_drawn_beside(void)
{
    prepare_drawn(1);
}

static void drive_drawn(void)
{
    sim_drive();
}

/* ---- made anew ---- */

static void prepare_anew(void)
{
    prepare(2);
    the_shape.rebalance_permille = 0;
    sim_scene_add(30, SIM_GOOD);
}

/* Nobody takes what is there now for what came before; once somebody has said that the positions mean
 * nothing, all of it is handled. */
static void drive_anew(void)
{
    sim_drive_start();
    sim_drive_calm(SIM_HOUR);
    sim_drive_stop();
    sim_partition_make_anew();
    const unsigned first = sim_message_count, before = sim_process_gave_up();
    sim_scene_add(6, SIM_GOOD);
    sim_drive_start();
    sim_sleep(60 * WB_SECOND);
    for (unsigned i = first; i < sim_message_count; i++)
        if (sim_messages[i].place == SIM_GONE)
            sim_violation("message %u of a partition that was made anew is taken for one that came before", i);
    if (sim_process_gave_up() == before)
        sim_violation("nobody refuses a partition that was made anew");
    sim_drive_stop();
    sim_database_forget_positions(0);
    sim_drive_start();
    sim_scene_end(SIM_HOUR);
}

const sim_scenario sim_scenarios_positions[] = {
    { "positions", "messages known by their positions, and partitions that are taken away", prepare_alone,
      sim_scene_plainly },
    { "positions_beside_ids", "the same beside ids, with copies of ids", prepare_beside, sim_scene_plainly },
    { "positions_calm", "many rebalances, and messages that are handled at once", prepare_calm, sim_scene_plainly },
    { "positions_kept", "batches whose time is up, and processes that die", prepare_kept, sim_scene_deaths },
    { "positions_pending", "processes that die between two batches of one partition", prepare_pending, sim_scene_deaths },
    { "positions_failures", "messages that fail in front of good ones, and processes that die", prepare_failures,
      sim_scene_deaths },
    { "positions_beside_failures", "copies of ids of which one fails", prepare_beside_failures, sim_scene_deaths },
    { "positions_deaths", "processes that die at any step", prepare_alone, sim_scene_deaths },
    { "positions_beside_deaths", "the same beside ids", prepare_beside, sim_scene_deaths },
    { "positions_stops", "orderly stops", prepare_alone, sim_scene_stops },
    { "positions_ends", "handlers that end the transaction", prepare_ends, sim_scene_good_first },
    { "positions_ends_moved", "the same, and partitions are taken away", prepare_ends_moved, sim_scene_plainly },
    { "positions_drawn", "whatever a seed draws", prepare_drawn_alone, drive_drawn },
    { "positions_beside_drawn", "the same beside ids", prepare_drawn_beside, drive_drawn },
    { "positions_anew", "partitions that are made anew", prepare_anew, drive_anew },
    { NULL, NULL, NULL, NULL },
};
