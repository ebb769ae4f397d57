/* SPDX-License-Identifier: Apache-2.0
 *
 * What a run comes to: nothing, or the first violation, at which it ends.
 */
#ifndef WB_SIMULATION_VERDICT_H
#define WB_SIMULATION_VERDICT_H

#include <stddef.h>
#include <waybill/sys/plugin.h>

#define SIM_VERDICT_SIZE 240

/** Where the text goes (shared with the parent process), and whether the run tells what it
 *  does, line by line on stdout. */
void sim_verdict_start(char *slot, int tells);
/** The run broke an invariant: ends the process, from any thread. */
void sim_violation(const char *format, ...) WB_PRINTF(1, 2) __attribute__((noreturn));
/** A line of the story, if it is told. */
void sim_tell(const char *format, ...) WB_PRINTF(1, 2);

/** How many lines the core has logged. */
unsigned long sim_log_lines(void);

#endif
