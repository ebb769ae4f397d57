/* SPDX-License-Identifier: Apache-2.0
 *
 * A process: a host that runs endpoints of workers and housekeepers as the product does, is told
 * to stop, or dies with all its threads. The one file that knows the core's insides; all else
 * knows the SPIs.
 */
#ifndef WB_SIMULATION_PROCESS_H
#define WB_SIMULATION_PROCESS_H

#include <stdint.h>

#include "core/base/clock.h"

/** Of delayed retries. */
#define SIM_DELAY_INCREMENT (2 * WB_SECOND)

/** Start it: nothing of an earlier one of that number is alive. */
void sim_process_start(int process);
/** Tell it to stop, and see that it does in time. */
void sim_process_stop(int process);
/** Whether it runs (or is stopping). */
int sim_process_is_alive(int process);
/** For a handler: until its process is told to stop (unless it hangs hard), or `until`. */
void sim_process_hang(int64_t until);

/** A pending row as an earlier life left it: an operation for each destination, of message `first` and
 *  those after it. */
void sim_process_store_row(unsigned endpoint, uint64_t batch, const char *const *destinations,
                           unsigned first, unsigned count);
/** The number of a batch that began at that time (by the true clock). */
uint64_t sim_process_batch(int64_t wall, unsigned serial);
/** The largest number of pending rows that hold one operation; copies for the error queue aside,
 *  of which each failure of a message makes one. */
unsigned sim_process_most_rows(unsigned endpoint);
/** How many processes died. */
unsigned sim_process_deaths(void);
/** How often workers gave up. */
unsigned sim_process_gave_up(void);
/** How many housekeeping rounds have ended. */
unsigned sim_process_rounds(void);

/** Somebody asks an endpoint's sweeper for all that is parked. */
void sim_process_want_parked(int process, unsigned number);

#endif
