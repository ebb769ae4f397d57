/* SPDX-License-Identifier: Apache-2.0
 *
 * The SPI's persistence over the database of the world; without the functions that the shape
 * leaves out.
 */
#ifndef WB_SIMULATION_PERSISTENCE_H
#define WB_SIMULATION_PERSISTENCE_H

#include <waybill/sys/persistence.h>

#include "tests/simulation/faults.h"

/** The instance of an endpoint in a process. */
struct wb_persistence {
    unsigned endpoint;
};

wb_persistence_ops sim_persistence_ops(void);
/** Of a deduplication store: an instance of that has the number sim_apart(). */
wb_persistence_ops sim_store_ops(void);
/** Every call of a session: a scheduling point, then what goes wrong. */
sim_fault sim_persistence_enter(wb_storage_session *session, sim_call call, const char *where);

/** By which a handler gets at its session. */
#define SIM_INTERFACE "simulation.1"

#endif
