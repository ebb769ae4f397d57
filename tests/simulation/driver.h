/* SPDX-License-Identifier: Apache-2.0
 *
 * The course of a run: it storms, it is calm until everything is done, everybody stops, and
 * after a long time what is old is cleaned up.
 */
#ifndef WB_SIMULATION_DRIVER_H
#define WB_SIMULATION_DRIVER_H

#include <stdint.h>

/** The whole of it, for the messages there are. */
void sim_drive(void);

/* The parts, for scenarios. */
void sim_drive_start(void);
/** Until everything is done that can be. */
void sim_drive_calm(int64_t patience);
void sim_drive_stop(void);

#endif
