/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/simulation/scenarios.h"

#include "tests/simulation/random.h"
#include "tests/simulation/scheduler.h"
#include "tests/simulation/shape.h"

static const sim_scenario scenarios[] = { { NULL, NULL, NULL, NULL } };

const sim_scenario *sim_scenario_at(size_t index)
{
    return scenarios[index].name ? &scenarios[index] : NULL;
}

void sim_scenario_run(const sim_scenario *scenario, uint64_t seed)
{
    sim_random_start(seed);
    scenario->prepare();
    sim_scheduler_limit(the_shape.steps_max);
    sim_scheduler_run(scenario->drive, the_shape.switching);
}
