/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/simulation/scenarios.h"

#include "tests/simulation/random.h"
#include "tests/simulation/scene.h"
#include "tests/simulation/scheduler.h"
#include "tests/simulation/shape.h"

static const sim_scenario *const lists[] = { sim_scenarios_dispatch, sim_scenarios_sweep,
                                             sim_scenarios_storage, sim_scenarios_process, sim_scenarios_delayed,
                                             sim_scenarios_native, sim_scenarios_expiry, sim_scenarios_sessions,
                                             sim_scenarios_positions, sim_scenarios_keys, sim_scenarios_apart,
                                             sim_scenarios_written };
static const sim_scenario *running;

const sim_scenario *sim_scenario_at(size_t index)
{
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        for (const sim_scenario *at = lists[i]; at->name; at++)
            if (index-- == 0)
                return at;
    return NULL;
}

static void drive_running(void)
{
    running->drive();
}

/* Whatever is changed in the simulation changes what a seed does: what one alone showed is then shown by another. */
unsigned sim_scenario_seeds(const sim_scenario *scenario)
{
    return scenario->drive == sim_scene_by_chance ? 500 : 25;
}

void sim_scenario_run(const sim_scenario *scenario, uint64_t seed)
{
    running = scenario;
    sim_random_start(seed);
    scenario->prepare();
    sim_scheduler_limit(the_shape.steps_max);
    sim_scheduler_run(drive_running, the_shape.switching);
}
