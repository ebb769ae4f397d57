/* SPDX-License-Identifier: Apache-2.0
 *
 * Scenarios of the sweeper: pending rows of an earlier life, good ones and bad ones.
 */
#include "config.h"

#include <stddef.h>
#include <waybill/sys/plugin.h>

#include "tests/simulation/audit.h"
#include "tests/simulation/broker.h"
#include "tests/simulation/database.h"
#include "tests/simulation/driver.h"
#include "tests/simulation/faults.h"
#include "tests/simulation/ledger.h"
#include "tests/simulation/population.h"
#include "tests/simulation/process.h"
#include "tests/simulation/scene.h"
#include "tests/simulation/scheduler.h"
#include "tests/simulation/shape.h"
#include "tests/simulation/verdict.h"

/* Two rounds see them, the second sends. */
static void drive_sweep(void)
{
    sim_drive_start();
    sim_drive_calm(100 * WB_SECOND);
    sim_drive();
}

static void prepare_sweep(void)
{
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    the_shape.steps_max = 2000000;
}

static void prepare_sweep_first_fails(void)
{
    prepare_sweep();
    sim_scene_add_pending(SIM_SINK, 4 * SIM_HOUR);
    sim_scene_add_pending(SIM_KILLS, 3 * SIM_HOUR);
    sim_scene_add_pending(SIM_NACKS, 3 * SIM_HOUR);
    for (int i = 0; i < 10; i++)
        sim_scene_add_pending(SIM_SINK, 2 * SIM_HOUR);
    sim_scene_add(10, SIM_GOOD);
}

static void prepare_sweep_fatal(void)
{
    prepare_sweep();
    sim_scene_add_pending(SIM_FATAL_QUEUE, 3 * SIM_HOUR);
    for (int i = 0; i < 10; i++)
        sim_scene_add_pending(SIM_SINK, 2 * SIM_HOUR);
}

/* Behind what ends the connection, and then is sent one by one, and what nacks. */
static void prepare_sweep_behind(void)
{
    static const char *const row[] = { SIM_KILLS, SIM_NACKS, SIM_NACKS, SIM_NACKS, SIM_NACKS,
                                       SIM_NACKS, SIM_NACKS, SIM_NACKS, SIM_NACKS, SIM_SINK };
    sim_shape_plain(WB_MODE_RECEIVE_ONLY, 1);
    sim_scene_add_row(row, sizeof row / sizeof row[0], 4 * SIM_HOUR);
    sim_scene_add(5, SIM_GOOD);
}

static void prepare_sweep_without_cursor(void)
{
    prepare_sweep_first_fails();
    the_shape.has_next_pending = 0;
}

static void prepare_sweep_unreadable(void)
{
    prepare_sweep();
    (void)sim_database_store(0, sim_process_batch(sim_true_wall() - 5 * SIM_HOUR, 1), "WBO9later", 9, 1);
    for (int i = 0; i < 5; i++)
        sim_scene_add_pending(SIM_SINK, 2 * SIM_HOUR);
    sim_scene_add(5, SIM_GOOD);
}

/* A later version handled the message and died before it dispatched; the message comes to us. */
static void prepare_duplicate_unreadable(void)
{
    wb_storage_session session = { 0 };
    prepare_sweep();
    sim_scene_add(5, SIM_GOOD);
    sim_message *m = sim_populate_one(0, SIM_GOOD, 0);
    uint64_t batch = sim_process_batch(sim_true_wall() - 10 * WB_SECOND, 77);
    wb_claim claim = { m->id, m->id_size, 0 };
    m->is_foreigns = 1;
    sim_database_claim(&session, batch, &claim);
    sim_transaction_commit(&session.own, 0, NULL);
    (void)sim_database_store(0, batch, "WBO9later", 9, 1);
    sim_scene_add(5, SIM_GOOD);
}

static void prepare_sweep_many(void)
{
    prepare_sweep();
    sim_message *m = sim_populate_one(0, SIM_GOOD, 0);
    m->place = SIM_GONE;
    m->commits = 1;
    for (unsigned i = 0; i < 11000; i++)
        sim_process_store_row(0, sim_process_batch(sim_true_wall() - 5 * SIM_HOUR, i),
                              &(const char *){ SIM_NOWHERE }, m->number, 1);
    for (int i = 0; i < 5; i++)
        sim_scene_add_pending(SIM_SINK, 2 * SIM_HOUR);
    sim_scene_add(10, SIM_GOOD);
}

/* Not after the 11,000 were tried time and again. */
static void drive_sweep_many(void)
{
    char what[120];
    sim_drive_start();
    for (int i = 0; !sim_audit_is_finished(what, sizeof what); i++) {
        if (i == 180)
            sim_violation("%s behind 11,000 others", what);
        sim_sleep(60 * WB_SECOND);
    }
    unsigned long lines = sim_log_lines();
    sim_sleep(2 * SIM_HOUR);
    if (sim_log_lines() - lines > 8 * 11000) /* each is tried after 1, 2, 4, ... 60 minutes */
        sim_violation("%lu lines in two hours about rows that cannot be dispatched", sim_log_lines() - lines);
    sim_drive_stop();
    sim_audit();
}

static void prepare_sweep_park(void)
{
    prepare_sweep();
    for (int i = 0; i < 5; i++)
        sim_scene_add_pending(SIM_SINK, 2 * SIM_HOUR);
}

/* What is refused is to be parked, and cannot be: it stays where it is. */
static void drive_sweep_park(void)
{
    sim_outage_start(SIM_BROKER_FORBIDS, sim_now() + 120 * WB_SECOND);
    sim_outage_start(SIM_COMMITS_BREAK, sim_now() + 120 * WB_SECOND);
    sim_drive_start();
    sim_sleep(121 * WB_SECOND);
    sim_scene_end(SIM_HOUR);
}

/* A row waits for the broker; the records of others grow old. */
static void drive_clean_up_alone(void)
{
    sim_drive_start();
    sim_scene_expect_good(60 * WB_SECOND);
    sim_outage_start(SIM_BROKER_DOWN, sim_now() + 10 * SIM_DAY);
    sim_sleep(SIM_DAY);
    if (!sim_audit_is_clean())
        sim_violation("the clean-up waits for the broker");
    sim_outage_start(SIM_BROKER_DOWN, 0);
    sim_scene_end(SIM_HOUR);
}

static void prepare_clean_up_alone(void)
{
    prepare_sweep();
    sim_scene_add_pending(SIM_LATER, SIM_HOUR);
    sim_scene_add(10, SIM_GOOD);
}

static void prepare_asked_for(void)
{
    prepare_sweep();
    sim_scene_add_pending(SIM_NOWHERE, 3 * SIM_HOUR);
    sim_scene_add(3, SIM_GOOD);
}

/* The oldest rows are for a destination that confirms nothing, and each try of it takes half a round. */
static void prepare_sweep_silent(void)
{
    prepare_sweep();
    the_shape.keeper_interval = 60 * WB_SECOND;
    for (int i = 0; i < 40; i++)
        sim_scene_add_pending(SIM_SILENT, 3 * SIM_HOUR);
    for (int i = 0; i < 10; i++)
        sim_scene_add_pending(SIM_SINK, 2 * SIM_HOUR);
    sim_scene_add(5, SIM_GOOD);
}

static void prepare_sweep_silences(void)
{
    static const char *const destinations[] = { SIM_SILENT "-1", SIM_SILENT "-2", SIM_LEADERLESS, SIM_SILENT "-3",
                                                SIM_SILENT "-1", SIM_SILENT "-4", SIM_LEADERLESS, SIM_SILENT "-2" };
    prepare_sweep();
    the_shape.keeper_interval = 60 * WB_SECOND;
    for (int i = 0; i < 8; i++)
        sim_scene_add_pending(destinations[i], 3 * SIM_HOUR);
    for (int i = 0; i < 10; i++)
        sim_scene_add_pending(SIM_SINK, 2 * SIM_HOUR);
}

static void drive_silences(int64_t patience)
{
    sim_drive_start();
    sim_drive_calm(patience);
    size_t left = sim_tables[0].row_count;
    sim_broker_heal();
    sim_sleep(4 * SIM_HOUR);
    if (!left || sim_tables[0].row_count)
        sim_violation("%zu rows waited for a confirmation, %zu do when it comes", left, sim_tables[0].row_count);
    sim_drive_stop();
    sim_audit();
}

/* The first round only looks; the second tries one, and comes to the good ones. */
static void drive_sweep_silent(void)
{
    drive_silences(3 * 60 * WB_SECOND);
}

static void drive_sweep_silences(void)
{
    drive_silences(15 * 60 * WB_SECOND);
}

/* Where rows cannot be taken, by the plugin or behind a pooler. */
static void prepare_two_sweepers(void)
{
    prepare_sweep();
    the_shape.processes = 2;
    the_shape.has_take = 0;
    for (int i = 0; i < 10; i++)
        sim_scene_add_pending(i % 3 ? SIM_NOWHERE : SIM_NARROW, 3 * SIM_HOUR);
    sim_scene_add_pending(SIM_LATER, 3 * SIM_HOUR);
    sim_scene_add(3, SIM_GOOD);
}

/* Their rounds fall together, and one sends slowly what the other has in hand, too. */
static void drive_two_sweepers(void)
{
    sim_outage_start(SIM_BROKER_SLOW, sim_now() + 3 * SIM_HOUR);
    sim_drive_start();
    for (int i = 0; i < 3 * 60; i++) {
        sim_sleep(60 * WB_SECOND);
        if (i % 20 == 10)
            sim_process_want_parked(1 + i / 20 % 2, 0);
    }
    sim_drive_calm(2 * SIM_HOUR);
    sim_drive_stop();
    sim_audit();
    if (sim_process_most_rows(0) != 1 || sim_tables[0].row_count != 10)
        sim_violation("10 rows that cannot be dispatched are %zu, %u of them of one operation",
                      sim_tables[0].row_count, sim_process_most_rows(0));
}

/* Nothing goes wrong, so whatever two sweepers send is sent by one of them. */
static void prepare_two_sweepers_once(void)
{
    prepare_sweep();
    the_shape.processes = 2;
    for (int i = 0; i < 60; i++)
        sim_scene_add_pending(SIM_SINK, 3 * SIM_HOUR);
}

static void drive_two_sweepers_once(void)
{
    sim_outage_start(SIM_BROKER_SLOW, sim_now() + SIM_HOUR);
    sim_drive_start();
    sim_drive_calm(2 * SIM_HOUR);
    sim_drive_stop();
    sim_audit();
    if (sim_sent_count != 60)
        sim_violation("60 rows were sent %zu times", sim_sent_count);
}

/* Asked for, a row that cannot be dispatched is tried once more, not all the time. */
static void drive_asked_for(void)
{
    sim_drive_start();
    sim_sleep(300 * WB_SECOND);
    long before = sim_steps_taken();
    sim_process_want_parked(1, 0);
    sim_sleep(60 * WB_SECOND);
    long steps = sim_steps_taken() - before;
    sim_drive_calm(SIM_HOUR);
    sim_drive_stop();
    if (steps > 2000)
        sim_violation("%ld steps for one row that somebody asked for", steps);
}

const sim_scenario sim_scenarios_sweep[] = {
    { "sweep_behind", "a good operation behind others that nack, in one row", prepare_sweep_behind,
      sim_scene_plainly },
    { "sweep_first_fails", "rows that cannot be dispatched before rows that can", prepare_sweep_first_fails,
      drive_sweep },
    { "sweep_without_cursor", "the same with a persistence without next_pending()",
      prepare_sweep_without_cursor, drive_sweep },
    { "sweep_fatal", "a row whose dispatch is WB_FATAL before rows that can be dispatched", prepare_sweep_fatal,
      drive_sweep },
    { "sweep_unreadable", "a row of a later version stops nobody", prepare_sweep_unreadable, drive_sweep },
    { "duplicate_unreadable", "a duplicate whose row is of a later version", prepare_duplicate_unreadable,
      drive_sweep },
    { "sweep_many", "good rows behind 11,000 that cannot be dispatched", prepare_sweep_many, drive_sweep_many },
    { "sweep_park", "refused rows that cannot be parked for two minutes", prepare_sweep_park, drive_sweep_park },
    { "clean_up_alone", "records grow old while the broker is down", prepare_clean_up_alone,
      drive_clean_up_alone },
    { "asked_for", "a parked row that somebody asks for", prepare_asked_for, drive_asked_for },
    { "sweep_silent", "rows for a destination that confirms nothing before rows that can be dispatched",
      prepare_sweep_silent, drive_sweep_silent },
    { "sweep_silences", "the same with several, and one that takes nothing for now", prepare_sweep_silences,
      drive_sweep_silences },
    { "two_sweepers", "two processes sweep rows that cannot be dispatched", prepare_two_sweepers,
      drive_two_sweepers },
    { "two_sweepers_once", "two processes sweep rows that can be dispatched", prepare_two_sweepers_once,
      drive_two_sweepers_once },
    { NULL, NULL, NULL, NULL },
};
