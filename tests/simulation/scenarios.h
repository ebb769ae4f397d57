/* SPDX-License-Identifier: Apache-2.0
 *
 * Directed runs: one for each class of defect that was found, so that it stays found.
 */
#ifndef WB_SIMULATION_SCENARIOS_H
#define WB_SIMULATION_SCENARIOS_H

#include <stddef.h>
#include <stdint.h>

typedef struct sim_scenario {
    const char *name;
    const char *what;
    void (*prepare)(void); /* shape and messages */
    void (*drive)(void);
} sim_scenario;

/** NULL beyond the last. */
const sim_scenario *sim_scenario_at(size_t index);
/** So many seeds of it show what is wrong: 25, and more where chance decides. */
unsigned sim_scenario_seeds(const sim_scenario *scenario);
void sim_scenario_run(const sim_scenario *scenario, uint64_t seed);

#endif
