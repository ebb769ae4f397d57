/* SPDX-License-Identifier: Apache-2.0
 *
 * What scenarios are made of: messages, and courses of a run.
 */
#ifndef WB_SIMULATION_SCENE_H
#define WB_SIMULATION_SCENE_H

#include <stdint.h>

#include "core/base/clock.h"
#include "tests/simulation/fate.h"
#include "tests/simulation/faults.h"
#include "tests/simulation/scenarios.h"

#define SIM_HOUR (3600 * WB_SECOND)
#define SIM_DAY (24 * SIM_HOUR)
/* All that is delayed has arrived by then, whatever was the matter. */
#define SIM_SOON (30 * 60 * WB_SECOND)

/** So many messages, at each endpoint. */
void sim_scene_add(unsigned count, sim_fate fate);
/** A message that an earlier life handled; one of its operations is pending for that destination. */
void sim_scene_add_pending(const char *destination, int64_t age);
/** Several of them, whose operations are in one row. */
void sim_scene_add_row(const char *const *destinations, unsigned count, int64_t age);

/** Start, wait until all is done that can be, stop, audit. */
void sim_scene_plainly(void);
/** The same, for what one seed in some hundred shows. */
void sim_scene_by_chance(void);
/** The same: each is in the error queue once, and killers end no more processes
 *  than one after the other would. */
void sim_scene_killers(void);
/** The same; good messages do not wait for the bad ones: they are done in two minutes. */
void sim_scene_good_first(void);
/** The same with five stops on the way. */
void sim_scene_stops(void);
/** The same, and all is done soon. */
void sim_scene_soon(void);
/** The same with processes that die at any step. */
void sim_scene_deaths(void);
/** The same with a minute of faults by chance. */
void sim_scene_faults(void);
/** The same with four outages. */
void sim_scene_outages(sim_outage outage);
/** The same with a table that is renamed twice, for some seconds: nobody gives up. */
void sim_scene_renamed(sim_outage outage);
/** Calm until all is done that can be, stop, audit. A violation if it takes longer. */
void sim_scene_end(int64_t patience);
/** A violation if good messages take longer. */
void sim_scene_expect_good(int64_t within);

/* The lists, each with an entry without name at its end. */
extern const sim_scenario sim_scenarios_dispatch[];
extern const sim_scenario sim_scenarios_sweep[];
extern const sim_scenario sim_scenarios_storage[];
extern const sim_scenario sim_scenarios_process[];
extern const sim_scenario sim_scenarios_delayed[];
extern const sim_scenario sim_scenarios_native[];
extern const sim_scenario sim_scenarios_expiry[];
extern const sim_scenario sim_scenarios_sessions[];
extern const sim_scenario sim_scenarios_positions[];
extern const sim_scenario sim_scenarios_keys[];
extern const sim_scenario sim_scenarios_apart[];
extern const sim_scenario sim_scenarios_written[];

#endif
