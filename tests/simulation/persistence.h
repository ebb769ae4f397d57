/* SPDX-License-Identifier: Apache-2.0
 *
 * The SPI's persistence over the database of the world; without the functions that the shape
 * leaves out.
 */
#ifndef WB_SIMULATION_PERSISTENCE_H
#define WB_SIMULATION_PERSISTENCE_H

#include <waybill/sys/persistence.h>

/** The instance of an endpoint in a process. */
struct wb_persistence {
    unsigned endpoint;
};

wb_persistence_ops sim_persistence_ops(void);

/** By which a handler gets at its session. */
#define SIM_INTERFACE "simulation.1"

#endif
