/* SPDX-License-Identifier: Apache-2.0
 *
 * Scenarios of processes: limits of deliveries, suspects, stops, memory, slow handlers.
 */
#include "config.h"

#include <stddef.h>
#include <waybill/sys/plugin.h>

#include "core/recover/attempts.h"
#include "tests/simulation/audit.h"
#include "tests/simulation/broker.h"
#include "tests/simulation/driver.h"
#include "tests/simulation/faults.h"
#include "tests/simulation/population.h"
#include "tests/simulation/random.h"
#include "tests/simulation/scene.h"
#include "tests/simulation/scheduler.h"
#include "tests/simulation/shape.h"
#include "tests/simulation/verdict.h"

/* ---- limits and suspects ---- */

static void prepare_limit(uint32_t limit, unsigned retries, int outbox)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, outbox);
    the_shape.delivery_limit = limit;
    the_shape.tells_limit = 1;
    the_shape.retries = retries;
}

static void prepare_limit_killer(void)
{
    prepare_limit(20, 3, 0);
    sim_scene_add(5, SIM_GOOD);
    sim_scene_add(1, SIM_KILLER);
    sim_scene_add(14, SIM_GOOD);
}

static void prepare_limit_killer_low(void)
{
    prepare_limit(7, 3, 0);
    sim_scene_add(5, SIM_GOOD);
    sim_scene_add(1, SIM_KILLER);
    sim_scene_add(14, SIM_GOOD);
}

static void prepare_limit_killer_outbox(void)
{
    prepare_limit(7, 3, 1);
    sim_scene_add(5, SIM_GOOD);
    sim_scene_add(1, SIM_KILLER);
    sim_scene_add(14, SIM_GOOD);
}

/* Killers in the hands of three workers, who die together. */
static void prepare_limit_killers(int outbox)
{
    prepare_limit(5, 3, outbox);
    the_shape.workers = 3;
    sim_scene_add(5, SIM_GOOD);
    for (int i = 0; i < 3; i++) {
        sim_scene_add(1, SIM_KILLER);
        sim_scene_add(4, SIM_GOOD);
    }
}

static void prepare_limit_killers_outbox(void)
{
    prepare_limit_killers(1);
}

static void prepare_limit_killers_plain(void)
{
    prepare_limit_killers(0);
    the_shape.returns_first = 1; /* nobody notices late */
}

/* What the dead had in hand comes back when others are at work again. */
static void prepare_limit_killers_late(int outbox)
{
    prepare_limit_killers(outbox);
    the_shape.notices_late = 20 * WB_SECOND;
    sim_scene_add(30, SIM_GOOD);
}

static void prepare_limit_killers_late_outbox(void)
{
    prepare_limit_killers_late(1);
}

static void prepare_limit_killers_late_plain(void)
{
    prepare_limit_killers_late(0);
}

/* They come together, to a broker without limit that is told of acknowledgements late. */
static void prepare_killers_of(int outbox, int pushes)
{
    prepare_limit(0, 3, outbox);
    the_shape.workers = 3;
    the_shape.pushes = the_shape.has_prefetch = pushes;
    the_shape.puts_off = 1;
    sim_scene_add(5, SIM_GOOD);
    sim_scene_add(4, SIM_KILLER);
    sim_scene_add(20, SIM_GOOD);
}

static void prepare_killers(void)
{
    prepare_killers_of(1, 0);
}

static void prepare_killers_pushed(void)
{
    prepare_killers_of(1, 1);
}

static void prepare_killers_plain(void)
{
    prepare_killers_of(0, 0);
}

/* Each process has its own suspects and its own scout; what dies in one counts for the other's. */
static void prepare_limit_killers_apart(void)
{
    prepare_limit_killers_late(1);
    the_shape.processes = 2;
    the_shape.workers = 2;
}

static void prepare_limit_last(void)
{
    prepare_limit(5, 3, 1);
    the_shape.batch_time = WB_SECOND;
    sim_scene_add(10, SIM_GOOD);
}

static void add_delivered(sim_fate fate, uint32_t deliveries)
{
    sim_scene_add(1, fate);
    sim_messages[sim_message_count - 1].delivery_count = deliveries;
    sim_messages[sim_message_count - 1].deaths = 20; /* of another process, which had them in hand */
}

/* They come to a worker that has its hands full: one that ends the process, and behind it what the broker
 * drops next, some of which the error queue does not take. */
static void drive_last(int64_t nacks)
{
    sim_drive_start();
    sim_sleep(10 * WB_SECOND);
    sim_scene_add(60, SIM_GOOD);
    sim_broker_publish(0);
    sim_sleep(10 * WB_SECOND);
    if (nacks)
        sim_outage_start(SIM_BROKER_NACKS, sim_now() + nacks);
    for (int i = 0; i < 2; i++) {
        add_delivered(SIM_KILLER, 3);
        add_delivered(SIM_GOOD, 5);
        add_delivered(SIM_UNMOVABLE, 5);
        add_delivered(SIM_POISON, 5);
    }
    sim_broker_publish(0);
    sim_scene_end(6 * SIM_HOUR);
}

static void drive_limit_last(void)
{
    drive_last(0);
}

/* Nor does it take the others, for a minute. */
static void drive_limit_last_refused(void)
{
    drive_last(60 * WB_SECOND);
}

static void prepare_limit_stops(void)
{
    prepare_limit(3, 1, 0);
    the_shape.workers = 2;
    sim_scene_add(30, SIM_SLOW);
}

/* A session that is lost while one message is handled alone, again and again. */
static void prepare_limit_lost_of(uint32_t limit)
{
    prepare_limit(limit, 3, 1);
    sim_scene_add(5, SIM_GOOD);
    sim_scene_add(1, SIM_LATE_IMMEDIATE);
    sim_scene_add(14, SIM_GOOD);
}

static void prepare_limit_lost(void)
{
    prepare_limit_lost_of(20);
}

static void prepare_limit_lost_low(void)
{
    prepare_limit_lost_of(7);
}

static void prepare_limit_lost_high(void)
{
    prepare_limit_lost_of(1000);
}

/* What the broker allows is not what one message gets. */
static void drive_few_runs(void)
{
    sim_drive_start();
    sim_scene_end(6 * SIM_HOUR);
    for (unsigned i = 0; i < sim_message_count; i++)
        if (sim_messages[i].runs > 20)
            sim_violation("message %u was handled %u times", i, sim_messages[i].runs);
}

/* Two of them one behind the other, and those behind both. */
static void prepare_limit_lost_twice(void)
{
    prepare_limit(5, 3, 1);
    sim_scene_add(20, SIM_GOOD);
    sim_scene_add(2, SIM_LATE_IMMEDIATE);
    sim_scene_add(20, SIM_GOOD);
}

static void prepare_limit_silence(void)
{
    prepare_limit(5, 3, 1);
    the_shape.workers = 2;
    sim_scene_add(1, SIM_IMMEDIATE);
    sim_scene_add(50, SIM_GOOD);
    sim_scene_add(3, SIM_IMMEDIATE);
}

static void prepare_limit_silence_plain(void)
{
    prepare_limit(5, 3, 0);
    the_shape.workers = 2;
    sim_scene_add(1, SIM_IMMEDIATE);
    sim_scene_add(50, SIM_GOOD);
    sim_scene_add(3, SIM_IMMEDIATE);
}

/* Some 600, by how long the pauses are that each draws; without them it is thousands. */
#define LINES_OF_AN_HOUR 700

/* What is in hand stays there, and counts no delivery. */
static void drive_silence(void)
{
    sim_drive_start();
    sim_outage_start(SIM_BROKER_SILENT, sim_now() + SIM_HOUR);
    sim_sleep(SIM_HOUR + WB_SECOND);
    unsigned long lines = sim_log_lines();
    sim_drive_calm(SIM_HOUR);
    sim_drive_stop();
    sim_audit();
    if (lines > LINES_OF_AN_HOUR)
        sim_violation("%lu lines in an hour without confirmations", lines);
}

/* Of three attempts by itself it has two, and dies in both by no fault of its own. */
static void prepare_noted_once(void)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    the_shape.deaths = 1; /* for the audit */
    sim_scene_add(1, SIM_SLOW);
}

static int runs_again(void *argument)
{
    return sim_messages[0].runs > *(const unsigned *)argument;
}

static void kill_while_it_runs(void)
{
    unsigned runs = sim_messages[0].runs;
    sim_drive_start();
    if (!sim_wait("a run", sim_now() + 60 * WB_SECOND, runs_again, &runs))
        sim_violation("the message does not run again");
    sim_kill(1);
}

/* The third is written down, and the reply is lost, for a while. */
static void drive_noted_once(void)
{
    while (!sim_messages[0].moved && sim_messages[0].deaths < WB_SUSPECT_DELIVERIES + 2)
        kill_while_it_runs();
    sim_outage_start(SIM_MARKS_LOST, sim_now() + 3 * WB_SECOND);
    sim_drive_start();
    sim_scene_end(6 * SIM_HOUR);
    if (sim_messages[0].moved)
        sim_violation("an attempt that was not made counts for the message");
}

static void prepare_two_endpoints(void)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    the_shape.endpoints = 2;
    the_shape.workers = 2;
    for (int i = 0; i < 3; i++)
        (void)sim_populate_one(0, SIM_KILLER, 0);
    for (int i = 0; i < 8; i++)
        (void)sim_populate_one(1, SIM_SLOW, 0);
}

static void prepare_suspect_next_door(void)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    the_shape.endpoints = 2;
    the_shape.workers = 2;
    sim_populate_one(0, SIM_HANGS, 0)->delivery_count = 4;
}

/* Each worker has one that waits for its turn; what comes behind them does not wait. */
static void drive_suspect_next_door(void)
{
    sim_drive_start();
    sim_sleep(2 * WB_SECOND);
    unsigned first = sim_message_count;
    for (int i = 0; i < 20; i++)
        sim_populate_one(1, SIM_GOOD, 0)->delivery_count = i < 2 ? 4 : 0;
    sim_broker_publish(0);
    sim_sleep(10 * WB_SECOND);
    for (unsigned i = first + 2; i < sim_message_count; i++)
        if (sim_messages[i].place != SIM_GONE)
            sim_violation("message %u waits for what hangs in another endpoint", i);
    sim_scene_end(6 * SIM_HOUR);
}

/* ---- stops ---- */

static void prepare_stop_suspects(void)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    the_shape.workers = 3;
    the_shape.hangs_hard = 1;
    the_shape.batch_max = 1;
    sim_scene_add(1, SIM_HANGS);
    sim_scene_add(6, SIM_GOOD);
    for (unsigned i = 0; i < sim_message_count; i++)
        sim_messages[i].delivery_count = 4;
}

static void drive_one_stop(void)
{
    sim_drive_start();
    sim_sleep(5 * WB_SECOND);
    sim_drive_stop();
    sim_drive_start();
    sim_sleep(5 * WB_SECOND);
    sim_drive_stop();
    sim_drive_start();
    sim_scene_end(6 * SIM_HOUR);
}

/* A round that meets a slow broker, or one that takes nothing for now, has long to go. */
static void prepare_stop_round(void)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    the_shape.steps_max = 2000000;
    the_shape.keeper_interval = WB_SECOND;
    for (int i = 0; i < 300; i++)
        sim_scene_add_pending(SIM_SINK, 2 * SIM_HOUR);
}

static void drive_stop_round(void)
{
    sim_drive_start();
    sim_outage_start(SIM_BROKER_SLOW, sim_now() + SIM_HOUR);
    for (int i = 0; i < 8; i++) {
        if (i == 4)
            sim_outage_start(SIM_BROKER_NACKS, sim_now() + SIM_HOUR);
        sim_sleep(sim_random_between(WB_SECOND, 20 * WB_SECOND));
        sim_drive_stop();
        sim_drive_start();
    }
    sim_scene_end(12 * SIM_HOUR);
}

/* ---- memory ---- */

static void prepare_nobody_handles(void)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    the_shape.pushes = 0;
    the_shape.has_prefetch = 0;
    the_shape.steps_max = 2000000;
    sim_scene_add(2000, SIM_NO_HANDLER);
    sim_scene_add(10, SIM_GOOD);
}

/* ---- attempts are limited ---- */

/* One good message among those that fail, and the others go on as fast as ever. */
static void prepare_rate_limit(void)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    the_shape.workers = 3;
    the_shape.rate_after = 3;
    the_shape.rate_wait = 5 * WB_SECOND;
    sim_scene_add(5, SIM_FAILING);
    sim_scene_add(100, SIM_GOOD);
}

static void drive_rate_limit(void)
{
    sim_drive_start();
    sim_scene_expect_good(240 * WB_SECOND);
    sim_scene_end(SIM_HOUR);
}

/* ---- slow handlers ---- */

static void prepare_slow(void)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    the_shape.workers = 5;
    the_shape.batch_max = 100;
    sim_scene_add(16, SIM_SLOW);
}

static void drive_slow(void)
{
    sim_drive_start();
    sim_scene_expect_good(8 * WB_SECOND); /* five workers: a third of that; one: sixteen */
    sim_drive_stop();
    sim_audit();
}

static void prepare_hanging(void)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    the_shape.workers = 2;
    the_shape.batch_max = 100;
    sim_scene_add(1, SIM_HANGS);
    sim_scene_add(20, SIM_GOOD);
}

static void drive_hanging(void)
{
    sim_drive_start();
    sim_scene_expect_good(30 * WB_SECOND);
    sim_scene_end(SIM_HOUR);
}

/* By then batches are full. */
static void prepare_hanging_later(void)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    the_shape.workers = 2;
    the_shape.batch_max = 16;
    sim_scene_add(200, SIM_GOOD);
    sim_scene_add(1, SIM_HANGS);
    sim_scene_add(60, SIM_GOOD);
}

/* Behind it stands the rest of its batch, and not what its session had fetched as well. */
static void drive_hanging_later(void)
{
    unsigned undone = 0;
    sim_drive_start();
    sim_sleep(30 * WB_SECOND);
    for (unsigned i = 0; i < sim_message_count; i++)
        undone += sim_messages[i].place != SIM_GONE;
    if (undone > the_shape.batch_max || !sim_broker_released())
        sim_violation("%u messages wait for a hanging handler, %u were given to others", undone,
                      sim_broker_released());
    sim_scene_end(SIM_HOUR);
}

/* ---- the list ---- */

const sim_scenario sim_scenarios_process[] = {
    { "limit_killer", "a killer under a delivery limit of 20, without outbox", prepare_limit_killer,
      sim_scene_plainly },
    { "limit_killer_low", "the same under a limit of 7", prepare_limit_killer_low, sim_scene_plainly },
    { "limit_killer_outbox", "the same with outbox", prepare_limit_killer_outbox, sim_scene_plainly },
    { "limit_killers", "three killers and three workers under a limit of 5", prepare_limit_killers_outbox,
      sim_scene_plainly },
    { "limit_killers_plain", "the same without outbox", prepare_limit_killers_plain, sim_scene_plainly },
    { "limit_killers_late", "the same with outbox, and the broker notices late who died",
      prepare_limit_killers_late_outbox, sim_scene_by_chance },
    { "limit_killers_late_plain", "the same without outbox", prepare_limit_killers_late_plain,
      sim_scene_by_chance },
    { "limit_killers_apart", "the same with outbox and two processes", prepare_limit_killers_apart,
      sim_scene_by_chance },
    { "killers", "four killers, and acknowledgements that take effect late", prepare_killers, sim_scene_killers },
    { "killers_pushed", "the same, handed out ahead", prepare_killers_pushed, sim_scene_killers },
    { "killers_plain", "the same without outbox", prepare_killers_plain, sim_scene_killers },
    { "limit_last", "killers in front of what the broker drops next", prepare_limit_last, drive_limit_last },
    { "limit_last_refused", "the same while the broker takes nothing", prepare_limit_last,
      drive_limit_last_refused },
    { "limit_stops", "five orderly stops under a limit of 3", prepare_limit_stops, sim_scene_stops },
    { "limit_lost", "a message whose session is lost each time, under a limit of 20", prepare_limit_lost,
      sim_scene_plainly },
    { "limit_lost_low", "the same under a limit of 7", prepare_limit_lost_low, sim_scene_plainly },
    { "limit_lost_high", "the same under a limit of 1,000", prepare_limit_lost_high, drive_few_runs },
    { "limit_lost_twice", "two of them under a limit of 5", prepare_limit_lost_twice, sim_scene_plainly },
    { "limit_silence", "an hour without confirmations under a limit of 5", prepare_limit_silence,
      drive_silence },
    { "limit_silence_plain", "the same without outbox", prepare_limit_silence_plain, drive_silence },
    { "suspect_across_endpoints", "killers in one endpoint beside slow innocents in another",
      prepare_two_endpoints, sim_scene_plainly },
    { "suspect_next_door", "a suspect hangs in one endpoint, and suspects of another wait",
      prepare_suspect_next_door, drive_suspect_next_door },
    { "noted_once", "an attempt of a suspect whose record has no reply", prepare_noted_once,
      drive_noted_once },
    { "stop_suspects", "a hanging suspect, others wait for their turn, and a stop", prepare_stop_suspects,
      drive_one_stop },
    { "stop_round", "a stop in a long round of the housekeeper", prepare_stop_round, drive_stop_round },
    { "nobody_handles", "2,000 messages without handler, taken without prefetch", prepare_nobody_handles,
      sim_scene_plainly },
    { "rate_limit", "attempts are limited until one succeeds", prepare_rate_limit, drive_rate_limit },
    { "slow_handlers", "a backlog of slow messages uses all workers", prepare_slow, drive_slow },
    { "hanging_handler", "nobody stands behind a hanging handler", prepare_hanging, drive_hanging },
    { "hanging_later", "nobody but the rest of its batch, when batches are large", prepare_hanging_later,
      drive_hanging_later },
    { NULL, NULL, NULL, NULL },
};
