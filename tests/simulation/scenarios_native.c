/* SPDX-License-Identifier: Apache-2.0
 *
 * Scenarios of a broker that delays by itself.
 */
#include "config.h"

#include <stddef.h>
#include <waybill/sys/plugin.h>

#include "tests/simulation/driver.h"
#include "tests/simulation/population.h"
#include "tests/simulation/random.h"
#include "tests/simulation/scene.h"
#include "tests/simulation/scheduler.h"
#include "tests/simulation/shape.h"
#include "tests/simulation/verdict.h"

/* What calls take in this world, 300 ms at the worst. */
#define TWO_SLOW_CALLS (700 * WB_MILLISECOND)

static void prepare(int mode, int outbox)
{
    sim_shape_plain(mode, outbox);
    the_shape.native = 1;
    the_shape.processes = 2;
    sim_scene_add(40, SIM_DELAYS);
    sim_scene_add(4, SIM_DELAYS_REFUSED);
    if (mode == WB_MODE_NONE)
        return;
    the_shape.delayed_retries = 3;
    the_shape.retries = 0;
    sim_scene_add(20, SIM_FAILING);
    sim_scene_add(20, SIM_RECOVERS);
}

static void prepare_outbox(void)
{
    prepare(WB_MODE_RECEIVE_ONLY, 1);
    the_shape.late_max = TWO_SLOW_CALLS;
}

static void prepare_plain(void)
{
    prepare(WB_MODE_RECEIVE_ONLY, 0);
}

static void prepare_none(void)
{
    prepare(WB_MODE_NONE, 0);
}

static void prepare_atomic(void)
{
    prepare(WB_MODE_SENDS_ATOMIC, 0);
}

static void prepare_scope(void)
{
    prepare(WB_MODE_TRANSACTION_SCOPE, 0);
}

/* ---- trouble ---- */

static void expect_trouble(void)
{
    the_shape.deaths = the_shape.outages = 1; /* for the audit */
}

static void prepare_trouble(void)
{
    prepare(WB_MODE_RECEIVE_ONLY, 1);
    expect_trouble();
}

static void prepare_plain_trouble(void)
{
    prepare_plain();
    expect_trouble();
}

static void prepare_atomic_trouble(void)
{
    prepare_atomic();
    expect_trouble();
}

static void prepare_scope_trouble(void)
{
    prepare_scope();
    expect_trouble();
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

/* ---- what the broker cannot delay ---- */

static void prepare_refused(void)
{
    prepare(WB_MODE_RECEIVE_ONLY, 1);
    the_shape.refuses_delays = 1;
}

static void prepare_refused_atomic(void)
{
    prepare_atomic();
    the_shape.refuses_delays = 1;
}

/* Its delayed retry and its copy for the error queue have one id: that the one is refused must not
 * make the other's deaths forgotten. */
static void prepare_refused_poison(void)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    the_shape.native = the_shape.refuses_delays = 1;
    the_shape.delayed_retries = 3;
    sim_scene_add(3, SIM_GOOD);
    sim_scene_add(1, SIM_POISON_MOVE);
    sim_scene_add(20, SIM_GOOD);
}

/* ---- a store before ---- */

static void prepare_after_store(void)
{
    prepare(WB_MODE_RECEIVE_ONLY, 1);
    the_shape.native = 0;
    the_shape.store = 1;
    expect_trouble();
}

static void prepare_after_store_scope(void)
{
    prepare_scope();
    the_shape.native = 0;
    the_shape.store = 1;
    expect_trouble();
}

/* What waits in it is sent when it is due, and what is pending is delayed by who does so now. */
static void drive_after_store(void)
{
    sim_drive_start();
    sim_arm_death(1, 100 + (long)sim_random(300));
    sim_sleep(sim_random_between(WB_SECOND, 4 * WB_SECOND));
    sim_arm_death(1, 0);
    sim_drive_stop();
    the_shape.store = 0;
    the_shape.native = the_shape.drains = 1;
    sim_scene_soon();
}

/* It is not there when it is looked for first, or when what waits in it is due. */
static void drive_after_store_renamed(void)
{
    sim_drive_start();
    sim_sleep(sim_random_between(WB_SECOND, 4 * WB_SECOND));
    sim_drive_stop();
    the_shape.store = 0;
    the_shape.native = the_shape.drains = 1;
    if (sim_chance(50))
        sim_outage_start(SIM_DELAYED_RENAMED, sim_now() + sim_random_between(WB_SECOND, 100 * WB_SECOND));
    sim_drive_start();
    sim_sleep(sim_random_between(WB_SECOND, 20 * WB_SECOND));
    sim_outage_start(SIM_DELAYED_RENAMED, sim_now() + sim_random_between(WB_SECOND, 100 * WB_SECOND));
    sim_scene_end(SIM_SOON);
}

/* ---- clocks ---- */

/* The database's is right; the broker is told what is left by the host's. */
static void drive_host_wrong(int64_t offset)
{
    for (int process = 1; process <= (int)the_shape.processes; process++)
        sim_set_wall_offset(process, offset);
    sim_scene_soon();
}

static void drive_host_ahead(void)
{
    drive_host_wrong(SIM_HOUR);
}

static void drive_host_behind(void)
{
    drive_host_wrong(-SIM_HOUR);
}

/* Some jump while what was committed waits for the broker. */
static void drive_host_set(void)
{
    sim_drive_start();
    for (int i = 0; i < 4; i++) {
        sim_sleep(sim_random_between(500 * WB_MILLISECOND, 4 * WB_SECOND));
        sim_outage_start(SIM_BROKER_DOWN, sim_now() + sim_random_between(WB_SECOND, 8 * WB_SECOND));
        sim_sleep(sim_random_between(0, WB_SECOND));
        for (int process = 1; process <= (int)the_shape.processes; process++)
            sim_set_wall_offset(process, sim_random_between(-1, 1) * SIM_HOUR);
    }
    sim_scene_end(SIM_SOON);
}

static void prepare_host_set(void)
{
    prepare_trouble();
    the_shape.late_max = 120 * WB_SECOND;
}

const sim_scenario sim_scenarios_native[] = {
    { "native", "a broker that delays by itself, with outbox", prepare_outbox, sim_scene_soon },
    { "native_plain", "the same without outbox", prepare_plain, sim_scene_soon },
    { "native_none", "the same with mode none", prepare_none, sim_scene_soon },
    { "native_atomic", "the same in a transport transaction", prepare_atomic, sim_scene_soon },
    { "native_scope", "the same in transaction_scope", prepare_scope, sim_scene_soon },
    { "native_deaths", "and with processes that die", prepare_trouble, sim_scene_deaths },
    { "native_plain_deaths", "the same without outbox", prepare_plain_trouble, sim_scene_deaths },
    { "native_atomic_deaths", "the same in a transport transaction", prepare_atomic_trouble,
      sim_scene_deaths },
    { "native_scope_deaths", "the same in transaction_scope", prepare_scope_trouble,
      sim_scene_deaths },
    { "native_broker_down", "the broker is away now and then", prepare_trouble, drive_broker_down },
    { "native_broker_silent", "it confirms nothing now and then", prepare_trouble,
      drive_broker_silent },
    { "native_broker_nacks", "it takes nothing now and then", prepare_trouble, drive_broker_nacks },
    { "native_refused", "it cannot delay all that fails", prepare_refused, sim_scene_soon },
    { "native_refused_atomic", "the same in a transport transaction", prepare_refused_atomic,
      sim_scene_soon },
    { "native_refused_poison", "nor what it cannot move either", prepare_refused_poison,
      sim_scene_good_first },
    { "native_after_store", "a store that is used no longer has some left", prepare_after_store,
      drive_after_store },
    { "native_after_store_renamed", "its table is renamed for a while", prepare_after_store,
      drive_after_store_renamed },
    { "native_after_store_scope", "the same in transaction_scope", prepare_after_store_scope,
      drive_after_store },
    { "native_host_ahead", "the hosts' clocks are an hour ahead", prepare_outbox,
      drive_host_ahead },
    { "native_host_behind", "and an hour back", prepare_outbox, drive_host_behind },
    { "native_host_set", "they are set while the broker is away", prepare_host_set, drive_host_set },
    { NULL, NULL, NULL, NULL },
};
