/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/simulation/driver.h"

#include <stdio.h>
#include <string.h>

#include "tests/simulation/audit.h"
#include "tests/simulation/broker.h"
#include "tests/simulation/database.h"
#include "tests/simulation/faults.h"
#include "tests/simulation/process.h"
#include "tests/simulation/random.h"
#include "tests/simulation/shape.h"
#include "tests/simulation/verdict.h"
#include "tests/simulation/written.h"

#define HOUR (3600 * WB_SECOND)
#define CALM_PATIENCE (12 * HOUR)
#define ROUNDS_TO_CLEAN_UP 60

static unsigned published; /* messages that are in their queues */

static int draw_process(void)
{
    return 1 + (int)sim_random(the_shape.processes);
}

static void start_the_dead(void)
{
    for (int i = 1; i <= (int)the_shape.processes; i++)
        if (!sim_process_is_alive(i))
            sim_process_start(i);
    sim_written_start();
}

void sim_drive_start(void)
{
    published = sim_message_count;
    sim_broker_publish(0);
    start_the_dead();
}

/* ---- storm ---- */

/* Messages made so far, up to that one: ledgers know only what is there. */
static void publish_some(void)
{
    unsigned all = sim_message_count;
    published += sim_random(all - published + 1);
    sim_message_count = published;
    sim_broker_publish(0);
    sim_message_count = all;
}

static void plant_foreign_row(void)
{
    static unsigned serial;
    unsigned endpoint = sim_random(the_shape.endpoints);
    int64_t age = sim_random_between(0, 2 * HOUR);
    (void)sim_database_store(endpoint, sim_process_batch(sim_true_wall() - age, 900000 + serial++), "WBO9later",
                             9, 1);
}

static void start_outage(void)
{
    static const sim_outage all[] = { SIM_BROKER_DOWN,   SIM_BROKER_NACKS, SIM_BROKER_SLOW,
                                      SIM_BROKER_SILENT, SIM_DISK_FULL,    SIM_DATABASE_DOWN };
    sim_outage outage = all[sim_random(the_shape.persistence ? 6 : 4)];
    sim_tell("outage %d begins", (int)outage);
    sim_outage_start(outage, sim_now() + sim_random_between(WB_SECOND, 40 * WB_SECOND));
}

static void jump_clock(void)
{
    int process = draw_process();
    int64_t offset = sim_random_between(-5, 5) * HOUR;
    sim_tell("the clock of process %d goes wrong by %.0f h", process, (double)offset / (double)HOUR);
    sim_set_wall_offset(process, offset);
}

static void stop_one(void)
{
    int process = draw_process();
    sim_process_stop(process);
    sim_sleep(sim_random_between(0, 2 * WB_SECOND));
}

static void kill_one(void)
{
    sim_arm_death(draw_process(), 1 + (long)sim_random(300));
}

typedef struct {
    unsigned *left;
    void (*happen)(void);
} event;

static void let_something_happen(sim_shape *left)
{
    event events[] = { { &left->deaths, kill_one },
                       { &left->stops, stop_one },
                       { &left->jumps, jump_clock },
                       { &left->outages, start_outage } };
    event *one = &events[sim_random(4)];
    if (!*one->left)
        return;
    --*one->left;
    one->happen();
}

static void storm(void)
{
    sim_shape left = the_shape;
    sim_faults_storm(1);
    for (unsigned i = 0; i < 40 && (left.deaths || left.stops || left.jumps || left.outages || i < 6); i++) {
        publish_some();
        if (the_shape.foreign_rows && sim_chance(20))
            plant_foreign_row();
        start_the_dead();
        let_something_happen(&left);
        sim_sleep(sim_random_between(0, 3 * WB_SECOND));
    }
    for (int i = 1; i <= (int)the_shape.processes; i++)
        sim_arm_death(i, 0);
    sim_faults_storm(0);
}

/* ---- calm ---- */

/* Killers are still about. */
static void look_around(int64_t pause)
{
    start_the_dead();
    sim_sleep(pause);
}

void sim_drive_calm(int64_t patience)
{
    int64_t end = sim_now() + patience, pause = WB_SECOND;
    char what[120];
    published = sim_message_count;
    sim_broker_publish(0);
    sim_broker_open_later();
    while (!sim_audit_is_finished(what, sizeof what)) {
        if (sim_now() >= end)
            sim_violation("%s", what);
        look_around(pause);
        pause = pause < 30 * WB_SECOND ? pause + WB_SECOND : pause;
    }
}

void sim_drive_stop(void)
{
    for (int i = 1; i <= (int)the_shape.processes; i++)
        sim_process_stop(i);
}

/* ---- the long time after ---- */

static void age(void)
{
    if (!the_shape.outbox || !the_shape.keepers || sim_audit_somebody_waits())
        return;
    sim_advance(the_shape.retention + 26 * HOUR);
    for (int i = 1; i <= (int)the_shape.processes; i++)
        sim_set_wall_offset(i, 0);
    unsigned until = sim_process_rounds() + ROUNDS_TO_CLEAN_UP;
    start_the_dead();
    while (sim_process_rounds() < until && !sim_audit_is_clean())
        look_around(the_shape.keeper_interval);
    sim_audit_old();
    sim_drive_stop();
}

void sim_drive(void)
{
    published = 0;
    storm();
    sim_drive_calm(CALM_PATIENCE);
    sim_drive_stop();
    sim_audit();
    age();
}
