/* SPDX-License-Identifier: Apache-2.0
 *
 * The delayed message store of the database: rows of each endpoint with leases by the database's
 * clock, and the SPI's functions and faults on top. It outlives every process.
 */
#ifndef WB_SIMULATION_DELAYED_H
#define WB_SIMULATION_DELAYED_H

#include <stddef.h>
#include <stdint.h>
#include <waybill/sys/delayed.h>

#include "tests/simulation/database.h"

const wb_delayed_ops *sim_delayed_ops(void);

/** What a commit stores. */
void sim_delayed_add(unsigned endpoint, const wb_delayed *messages, size_t count);
/** How many messages wait in an endpoint's store; and one more while somebody changes it. */
size_t sim_delayed_count(unsigned endpoint);
/** Whether the next delayed retry of that message waits there. */
int sim_delayed_has_retry(const sim_message *message);
/** Whether something of its id waits there. */
int sim_delayed_has_id(const sim_message *message);
/** Whether something waits there that a handler of that message delayed. */
int sim_delayed_holds(const sim_message *message, int label);
/** A transaction ends that may have joined changes of it. */
void sim_delayed_end(const sim_transaction *transaction, int commits);

/** Cancel one that waits, if it may be: nobody has it, or may have sent it. @return whether it was. */
int sim_delayed_cancel(unsigned endpoint);
/** Nothing that was cancelled has arrived. */
void sim_delayed_audit(void);

/** The database's clock, and how far it is set off from the true one. */
int64_t sim_database_wall(void);
void sim_database_set_clock(int64_t offset);
/** The sum of all its jumps, whatever their direction: so much too early a message may arrive. */
int64_t sim_database_jumped(void);

#endif
