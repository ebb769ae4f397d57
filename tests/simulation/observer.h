/* SPDX-License-Identifier: Apache-2.0
 *
 * The observer of each endpoint: what it is told must be true when it is told, and, where nothing went wrong, all there is.
 */
#ifndef WB_SIMULATION_OBSERVER_H
#define WB_SIMULATION_OBSERVER_H

#include "core/message/trace.h"

/** Whether there are any, before anything starts. */
void sim_observer_attach(int is_there);
/** That of an endpoint, in all its processes; NULL: it has none. */
const wb_tracing *sim_observer_of(unsigned endpoint);

/** What was told, against the ledger. */
void sim_observer_audit(void);

#endif
