/* SPDX-License-Identifier: Apache-2.0
 *
 * Scenarios of delayed messages: pollers, deaths, servers that are away, clocks.
 */
#include "config.h"

#include <stddef.h>
#include <string.h>
#include <waybill/sys/plugin.h>

#include "core/message/header_names.h"
#include "tests/simulation/broker.h"
#include "tests/simulation/delayed.h"
#include "tests/simulation/driver.h"
#include "tests/simulation/faults.h"
#include "tests/simulation/population.h"
#include "tests/simulation/process.h"
#include "tests/simulation/random.h"
#include "tests/simulation/scene.h"
#include "tests/simulation/scheduler.h"
#include "tests/simulation/shape.h"
#include "tests/simulation/verdict.h"

/* What calls take in this world, 300 ms at the worst; a poller that is not woken looks once a second. */
#define TWO_SLOW_CALLS (700 * WB_MILLISECOND)

static void prepare_in(int mode, int outbox, unsigned processes)
{
    sim_shape_plain(mode, outbox);
    the_shape.store = the_shape.persistence = 1;
    the_shape.processes = processes;
    sim_scene_add(40, SIM_DELAYS);
}

static void prepare(int outbox, unsigned processes)
{
    prepare_in(WB_MODE_RECEIVE_ONLY, outbox, processes);
}

/* ---- without trouble ---- */

static void prepare_punctual(void)
{
    prepare(1, 1);
    the_shape.late_max = TWO_SLOW_CALLS;
}

static void prepare_plain(void)
{
    prepare(0, 1);
}

static void prepare_plain_behind(void)
{
    prepare(0, 2);
    the_shape.deaths = the_shape.outages = 1;
    the_shape.with_commit = 0;
}

static void prepare_none(void)
{
    prepare_in(WB_MODE_NONE, 0, 2);
}

static void prepare_none_behind(void)
{
    prepare_none();
    the_shape.with_commit = 0;
    the_shape.deaths = the_shape.outages = 1;
}

static void prepare_scope(void)
{
    prepare_in(WB_MODE_TRANSACTION_SCOPE, 0, 2);
}

static void prepare_scope_trouble(void)
{
    prepare_scope();
    the_shape.deaths = the_shape.outages = 1;
}

static void prepare_two_pollers(void)
{
    prepare(1, 2);
    sim_scene_add(160, SIM_DELAYS);
}

/* Each lot is full, and the next one's fetch begins beside it. */
static void prepare_flow(void)
{
    prepare_two_pollers();
    the_shape.lot = 1;
}

static void prepare_nowhere(void)
{
    prepare(1, 2);
    sim_scene_add(10, SIM_DELAYS_NOWHERE);
}

/* ---- delayed retries ---- */

static void prepare_retries_in(int mode, int outbox)
{
    prepare_in(mode, outbox, 2);
    the_shape.delayed_retries = 3;
    the_shape.retries = 0;
    sim_scene_add(20, SIM_FAILING);
    sim_scene_add(20, SIM_RECOVERS);
}

static void prepare_retries(void)
{
    prepare_retries_in(WB_MODE_RECEIVE_ONLY, 1);
}

static void prepare_retries_plain(void)
{
    prepare_retries_in(WB_MODE_RECEIVE_ONLY, 0);
}

static void prepare_retries_scope(void)
{
    prepare_retries_in(WB_MODE_TRANSACTION_SCOPE, 0);
}

/* Copies of each, as if they had come back already: what one has had does not count for another. */
static void add_returned(const sim_message *m, const char *number)
{
    wb_header headers[4];
    memcpy(headers, m->headers, m->header_count * sizeof *headers);
    headers[m->header_count] = (wb_header){ WB_HEADER_RETRIES, number, sizeof WB_HEADER_RETRIES - 1, strlen(number) };
    (void)sim_populate_retry(m, &(wb_operation){ .headers = headers, .header_count = m->header_count + 1 });
}

static void prepare_retries_copies(void)
{
    prepare(1, 1);
    the_shape.delayed_retries = SIM_RECOVERY;
    for (int i = 0; i < 10; i++) {
        sim_message *m = sim_populate_one(0, SIM_RECOVERS, 0);
        add_returned(m, "1");
        add_returned(m, "2");
    }
}

static void drive_retries_copies(void)
{
    sim_drive_start();
    sim_scene_end(SIM_SOON);
    for (unsigned i = 0; i < sim_message_count; i++)
        if (sim_messages[i].fate == SIM_RECOVERS && sim_messages[i].moved)
            sim_violation("message %u is in the error queue: a copy had failed, and it had not", i);
}

/* What is sent and not removed yet is not in the way of the next retry. */
static void drive_retries_slow(void)
{
    for (int i = 0; i < 8; i++) {
        sim_drive_start();
        sim_sleep(sim_random_between(WB_SECOND, 3 * WB_SECOND));
        sim_outage_start(SIM_DISK_FULL, sim_now() + sim_random_between(WB_SECOND, 4 * WB_SECOND));
    }
    sim_scene_end(SIM_SOON);
}

static void prepare_retries_trouble(void)
{
    prepare_retries();
    the_shape.deaths = the_shape.outages = 1;
}

static void prepare_retries_plain_trouble(void)
{
    prepare_retries_plain();
    the_shape.deaths = the_shape.outages = 1;
}

static void prepare_retries_scope_trouble(void)
{
    prepare_retries_scope();
    the_shape.deaths = the_shape.outages = 1;
}

/* ---- trouble ---- */

static void prepare_trouble(void)
{
    prepare(1, 2);
    the_shape.deaths = the_shape.outages = 1; /* for the audit */
}

/* What is stored behind the commit meets the outage by itself. */
static void prepare_behind(void)
{
    prepare_trouble();
    the_shape.with_commit = 0;
}

static void drive_broker_down(void)
{
    sim_scene_outages(SIM_BROKER_DOWN);
}

static void drive_broker_silent(void)
{
    sim_scene_outages(SIM_BROKER_SILENT);
}

/* From the beginning: what is stored meets it, too. */
static void drive_database_down(void)
{
    sim_outage_start(SIM_DISK_FULL, sim_now() + 100 * WB_MILLISECOND);
    sim_scene_outages(SIM_DISK_FULL);
}

/* What was handled and cannot be stored goes to the error queue: it does not run again. */
static void drive_none_database_gone(void)
{
    sim_drive_start();
    for (int i = 0; i < 3 && !sim_messages[i].runs; i++)
        sim_sleep(20 * WB_MILLISECOND);
    sim_outage_start(SIM_DELAYED_BREAKS, sim_now() + 2 * WB_SECOND);
    sim_scene_end(SIM_SOON);
    for (unsigned i = 0; i < sim_message_count; i++)
        if (sim_messages[i].commits > 1)
            sim_violation("message %u is handled %u times with mode none", i, sim_messages[i].commits);
}

static void drive_stops(void)
{
    for (int i = 0; i < 10; i++) {
        sim_drive_start();
        sim_sleep(sim_random_between(0, 3 * WB_SECOND));
        sim_drive_stop();
    }
    sim_drive_start();
    sim_scene_end(SIM_SOON);
}

static void prepare_flow_trouble(void)
{
    prepare_trouble();
    the_shape.lot = 1;
}

/* ---- a destination that is silent ---- */

static void prepare_silent(void)
{
    prepare_trouble();
    sim_scene_add(20, SIM_DELAYS_SILENT);
}

static int all_have_arrived(void *argument)
{
    (void)argument;
    for (unsigned i = 0; i < sim_message_count; i++)
        if (sim_messages[i].fate == SIM_DELAYS_SILENT && !(sim_messages[i].sent & 1u << SIM_LABEL_BAD))
            return 0;
    return 1;
}

/* What is due for it arrives when it answers, a while after the last try; what was due before it
 * left, too. */
static void drive_silent(void)
{
    sim_drive_start();
    sim_sleep(sim_random_between(30 * WB_SECOND, 200 * WB_SECOND));
    sim_broker_heal();
    if (!sim_wait("what was delayed", sim_now() + SIM_SOON, all_have_arrived, NULL))
        sim_violation("what was delayed is not there though its destination answers");
    sim_scene_end(SIM_SOON);
}

/* ---- handlers that end their transaction ---- */

/* Of 48 that are three apart each does it in another way. */
static void prepare_ends(void)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    the_shape.store = 1;
    for (int i = 0; i < 60; i++) {
        sim_scene_add(2, SIM_DELAYS);
        sim_scene_add(1, SIM_ENDS);
    }
}

/* ---- somebody who cancels ---- */

/* Now and then; the sooner after a death, the more of what was begun is not done. */
static unsigned cancel_soon(void)
{
    const int64_t until = sim_now() + sim_random_between(0, 2 * WB_SECOND);
    const unsigned deaths = sim_process_deaths();
    while (sim_now() < until && sim_process_deaths() == deaths)
        sim_sleep(WB_MILLISECOND);
    return (unsigned)sim_delayed_cancel(0);
}

static void drive_cancels(void)
{
    unsigned cancelled = 0;
    for (int i = 0; i < 40; i++) {
        sim_drive_start();
        if (i % 4 == 0)
            sim_arm_death(1 + (int)sim_random(2), 1 + (long)sim_random(200));
        if (i % 5 == 4)
            sim_outage_start(SIM_BROKER_SILENT, sim_now() + sim_random_between(WB_SECOND, 12 * WB_SECOND));
        cancelled += cancel_soon();
    }
    sim_arm_death(1, 0);
    sim_arm_death(2, 0);
    sim_drive_start();
    sim_scene_end(SIM_SOON);
    sim_delayed_audit();
    if (!cancelled)
        sim_violation("nothing was cancelled");
}

/* ---- clocks ---- */

static void drive_host_clock(int64_t offset)
{
    sim_drive_start();
    sim_sleep(sim_random_between(0, 5 * WB_SECOND));
    for (int process = 1; process <= (int)the_shape.processes; process++)
        sim_set_wall_offset(process, offset);
    sim_scene_end(SIM_SOON);
}

static void drive_host_ahead(void)
{
    drive_host_clock(SIM_HOUR);
}

static void drive_host_behind(void)
{
    drive_host_clock(-SIM_HOUR);
}

/* A record's age is told by the clock that jumps: nothing is kept for so short that it matters. */
static void prepare_database_clock(void)
{
    prepare(1, 2);
    the_shape.retention = SIM_DAY;
}

static void drive_database_clock(void)
{
    sim_drive_start();
    for (int i = 0; i < 6; i++) {
        sim_sleep(sim_random_between(0, 4 * WB_SECOND));
        sim_database_set_clock(sim_random_between(-1, 1) * SIM_HOUR);
    }
    sim_scene_end(6 * SIM_HOUR);
}

const sim_scenario sim_scenarios_delayed[] = {
    { "delayed_punctual", "what is delayed arrives when it is due", prepare_punctual,
      sim_scene_soon },
    { "delayed_plain", "the same without outbox", prepare_plain, sim_scene_soon },
    { "delayed_plain_behind", "the same, stored behind the commit, with processes that die",
      prepare_plain_behind, sim_scene_deaths },
    { "delayed_none", "with mode none, and stops", prepare_none, drive_stops },
    { "delayed_none_database_gone", "and a store whose connections break", prepare_none_behind,
      drive_none_database_gone },
    { "delayed_scope", "in transaction_scope it arrives once", prepare_scope, sim_scene_soon },
    { "delayed_scope_deaths", "and with processes that die at any step", prepare_scope_trouble,
      sim_scene_deaths },
    { "delayed_scope_database_down", "and a store that refuses", prepare_scope_trouble,
      drive_database_down },
    { "delayed_scope_broker_down", "and a broker that is away", prepare_scope_trouble,
      drive_broker_down },
    { "delayed_two_pollers", "two processes that share a store: nothing arrives twice",
      prepare_two_pollers,
      sim_scene_by_chance },
    { "delayed_nowhere", "an unknown destination is one for the error queue", prepare_nowhere,
      sim_scene_soon },
    { "delayed_deaths", "two processes that die at any step of the poller", prepare_trouble,
      sim_scene_deaths },
    { "delayed_flows", "the same, lot after lot", prepare_flow, sim_scene_plainly },
    { "delayed_flows_stops", "the same, stopped time and again: nothing arrives twice", prepare_flow, drive_stops },
    { "delayed_flows_cancels", "the same, killed, and somebody cancels", prepare_flow_trouble, drive_cancels },
    { "delayed_stops", "two processes that are stopped time and again", prepare_trouble,
      drive_stops },
    { "delayed_broker_down", "the broker is away when it is due", prepare_trouble,
      drive_broker_down },
    { "delayed_broker_silent", "the broker confirms nothing when it is due", prepare_trouble,
      drive_broker_silent },
    { "delayed_database_down", "the database refuses what is committed, stored and removed",
      prepare_trouble,
      drive_database_down },
    { "delayed_behind", "the same where the store is another transaction", prepare_behind,
      drive_database_down },
    { "delayed_behind_deaths", "and with processes that die between both", prepare_behind,
      sim_scene_deaths },
    { "delayed_silent", "a destination that confirms nothing, among others that do", prepare_silent,
      drive_silent },
    { "delayed_ends", "neighbours of a handler that ends their transaction", prepare_ends, sim_scene_soon },
    { "delayed_cancels", "processes that die, a broker that is silent, and somebody who cancels",
      prepare_trouble,
      drive_cancels },
    { "delayed_host_ahead", "the hosts' clocks jump an hour ahead", prepare_two_pollers,
      drive_host_ahead },
    { "delayed_host_behind", "and an hour back", prepare_two_pollers, drive_host_behind },
    { "delayed_database_clock", "the database's clock jumps by hours", prepare_database_clock,
      drive_database_clock },
    { "delayed_retries", "what fails is retried later, three times, and then moved",
      prepare_retries, sim_scene_soon },
    { "delayed_retries_deaths", "the same with processes that die", prepare_retries_trouble,
      sim_scene_deaths },
    { "delayed_retries_database_down", "and a store that refuses", prepare_retries_trouble,
      drive_database_down },
    { "delayed_retries_copies", "copies of one id that have come back more or less often",
      prepare_retries_copies,
      drive_retries_copies },
    { "delayed_retries_plain", "what fails is retried later, without outbox", prepare_retries_plain,
      sim_scene_soon },
    { "delayed_retries_plain_deaths", "the same with processes that die",
      prepare_retries_plain_trouble,
      sim_scene_deaths },
    { "delayed_retries_plain_database_down", "and a store that refuses",
      prepare_retries_plain_trouble,
      drive_database_down },
    { "delayed_retries_scope", "what fails is retried later, in transaction_scope",
      prepare_retries_scope, sim_scene_soon },
    { "delayed_retries_scope_deaths", "the same with processes that die",
      prepare_retries_scope_trouble,
      sim_scene_deaths },
    { "delayed_retries_scope_database_down", "and a store that refuses",
      prepare_retries_scope_trouble,
      drive_database_down },
    { "delayed_retries_slow", "and one that does not remove what was sent", prepare_retries_trouble,
      drive_retries_slow },
    { NULL, NULL, NULL, NULL },
};
