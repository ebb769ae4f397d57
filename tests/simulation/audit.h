/* SPDX-License-Identifier: Apache-2.0
 *
 * The audit: what must hold after every run, from the ledger alone. What breaks an invariant ends
 * the run with a violation.
 */
#ifndef WB_SIMULATION_AUDIT_H
#define WB_SIMULATION_AUDIT_H

#include <stddef.h>

#include "tests/simulation/ledger.h"

/** Whether it, or its copy for the error queue, is whole in a pending row. */
int sim_audit_is_parked(const sim_message *message);
/** Whether all is done that can be; else `what` says what is missing. */
int sim_audit_is_finished(char *what, size_t size);
/** No loss, one effect, no zombie, no ghost, identical duplicates, no innocent in the error queue,
 *  no run that nobody counted. */
void sim_audit(void);
/** After the retention: nothing is kept without need. */
int sim_audit_is_clean(void);
void sim_audit_old(void);

/** Whether a message is not done and need not be: it waits for a server as far as anybody knows. */
int sim_audit_somebody_waits(void);

#endif
