/* SPDX-License-Identifier: Apache-2.0
 *
 * What the broker delays by itself: it waits there, durably, by a clock that nobody sets.
 */
#ifndef WB_SIMULATION_WAITING_H
#define WB_SIMULATION_WAITING_H

#include <stddef.h>
#include <stdint.h>
#include <waybill/sys/transport.h>

#include "tests/simulation/ledger.h"

/** It arrives after that; at least once, where the broker's own faults are drawn. */
void sim_waiting_add(const wb_operation *operation, int64_t delay);
size_t sim_waiting_count(void);
/** Whether the next delayed retry of that message waits there. */
int sim_waiting_has_retry(const sim_message *message);
/** Whether something of its id waits there for an endpoint. */
int sim_waiting_has_id(const sim_message *message);
/** Whether something waits there that a handler of that message delayed. */
int sim_waiting_holds(const sim_message *message, int label);

#endif
