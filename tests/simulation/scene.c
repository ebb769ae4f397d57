/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/simulation/scene.h"

#include <string.h>

#include "core/recover/attempts.h"
#include "tests/simulation/audit.h"
#include "tests/simulation/broker.h"
#include "tests/simulation/driver.h"
#include "tests/simulation/population.h"
#include "tests/simulation/process.h"
#include "tests/simulation/random.h"
#include "tests/simulation/scheduler.h"
#include "tests/simulation/shape.h"
#include "tests/simulation/verdict.h"

/* ---- material ---- */

void sim_scene_add(unsigned count, sim_fate fate)
{
    for (unsigned i = 0; i < count; i++)
        for (unsigned endpoint = 0; endpoint < the_shape.endpoints; endpoint++)
            (void)sim_populate_one(endpoint, fate, 0);
}

/* One that an earlier life handled; of its operations one is pending for that destination. */
void sim_scene_add_pending(const char *destination, int64_t age)
{
    sim_scene_add_row(&destination, 1, age);
}

void sim_scene_add_row(const char *const *destinations, unsigned count, int64_t age)
{
    const unsigned first = sim_message_count;
    for (unsigned i = 0; i < count; i++) {
        sim_message *m = sim_populate_one(0, SIM_GOOD, 0);
        m->place = SIM_GONE;
        m->commits = 1;
        m->asked = strcmp(destinations[i], SIM_SINK) == 0 ? 1u << SIM_LABEL_FIRST : 0;
    }
    sim_process_store_row(0, sim_process_batch(sim_true_wall() - age, first), destinations, first, count);
}

/* ---- courses ---- */

static void drive_for(int64_t patience)
{
    sim_drive_start();
    sim_scene_end(patience);
}

void sim_scene_plainly(void)
{
    drive_for(6 * SIM_HOUR);
}

void sim_scene_by_chance(void)
{
    sim_scene_plainly();
}

void sim_scene_killers(void)
{
    const unsigned each = the_shape.outbox ? WB_SUSPECT_DELIVERIES + WB_NOTED_ATTEMPTS_MIN : WB_DELIVERIES_MAX;
    unsigned killers = 0;
    sim_scene_plainly();
    for (unsigned i = 0; i < sim_message_count; i++) {
        killers += sim_messages[i].fate == SIM_KILLER;
        if (sim_messages[i].moved > 1)
            sim_violation("message %u is in the error queue %u times", i, sim_messages[i].moved);
    }
    if (sim_process_deaths() > killers * each)
        sim_violation("%u messages ended %u processes", killers, sim_process_deaths());
}

/* Good messages do not wait for the bad ones: they are done in a minute. */
static int good_are_done(void *argument)
{
    (void)argument;
    for (unsigned i = 0; i < sim_message_count; i++)
        if (!(sim_fates[sim_messages[i].fate].flags & SIM_MAY_FAIL) &&
            sim_messages[i].fate != SIM_HANGS && sim_messages[i].place != SIM_GONE &&
            sim_messages[i].place != SIM_EXPIRED)
            return 0;
    return 1;
}

void sim_scene_end(int64_t patience)
{
    sim_drive_calm(patience);
    sim_drive_stop();
    sim_audit();
}

void sim_scene_expect_good(int64_t within)
{
    if (!sim_wait("the good ones", sim_now() + within, good_are_done, NULL))
        sim_violation("good messages are not done after %.0f s", (double)within / 1e9);
}

void sim_scene_good_first(void)
{
    sim_drive_start();
    sim_scene_expect_good(120 * WB_SECOND);
    sim_scene_end(6 * SIM_HOUR);
}

/* What nobody can finish must still let the process end, time and again. */
void sim_scene_stops(void)
{
    sim_drive_start();
    for (int i = 0; i < 5; i++) {
        sim_sleep(sim_random_between(100 * WB_MILLISECOND, 3 * WB_SECOND));
        sim_drive_stop();
        sim_drive_start();
    }
    sim_scene_end(6 * SIM_HOUR);
}

void sim_scene_soon(void)
{
    drive_for(SIM_SOON);
}

void sim_scene_deaths(void)
{
    for (int i = 0; i < 20; i++) {
        sim_drive_start();
        sim_arm_death(1 + (int)sim_random(2), 1 + (long)sim_random(200));
        sim_sleep(sim_random_between(0, 3 * WB_SECOND));
    }
    sim_arm_death(1, 0);
    sim_arm_death(2, 0);
    drive_for(SIM_SOON);
}

void sim_scene_faults(void)
{
    sim_drive_start();
    sim_faults_storm(1);
    sim_sleep(60 * WB_SECOND);
    sim_faults_storm(0);
    sim_scene_end(SIM_SOON);
}

void sim_scene_outages(sim_outage outage)
{
    sim_drive_start();
    for (int i = 0; i < 4; i++) {
        sim_sleep(sim_random_between(500 * WB_MILLISECOND, 4 * WB_SECOND));
        sim_outage_start(outage, sim_now() + sim_random_between(WB_SECOND, 8 * WB_SECOND));
    }
    sim_scene_end(SIM_SOON);
}

/* In between it was there for longer than anybody waits to look again. */
void sim_scene_renamed(sim_outage outage)
{
    sim_drive_start();
    for (int i = 0; i < 2; i++) {
        sim_sleep(sim_random_between(0, 500 * WB_MILLISECOND));
        sim_outage_start(outage, sim_now() + sim_random_between(WB_SECOND, 8 * WB_SECOND));
        sim_sleep(16 * WB_SECOND);
    }
    sim_scene_end(SIM_SOON);
    if (sim_process_gave_up())
        sim_violation("a worker gave up for a table that was renamed for some seconds");
}
