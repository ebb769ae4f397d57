/* SPDX-License-Identifier: Apache-2.0
 *
 * The one source of chance: everything that may happen one way or another in a run asks here,
 * so that a seed replays it.
 */
#ifndef WB_SIMULATION_RANDOM_H
#define WB_SIMULATION_RANDOM_H

#include <stdint.h>

void sim_random_start(uint64_t seed);
uint64_t sim_random_bits(void);
/** A number from 0 to limit - 1. */
unsigned sim_random(unsigned limit);
/** Whether it strikes, so many times in a hundred. */
int sim_chance(unsigned percent);
/** One of the two and all between. */
int64_t sim_random_between(int64_t low, int64_t high);

#endif
