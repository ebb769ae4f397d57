/* SPDX-License-Identifier: Apache-2.0
 *
 * A broker whose queues have partitions, as Kafka's: a message has a place in one, each partition is one
 * session's, and may be taken away at any moment. Then its messages come again from what was
 * acknowledged, or a little before, though the session that lost it has them still in hand.
 */
#ifndef WB_SIMULATION_PARTITIONS_H
#define WB_SIMULATION_PARTITIONS_H

#include "tests/simulation/broker.h"

#define SIM_PARTITIONS 3

/** The name of the partition of that number: "queue/0". */
const char *sim_partition_name(unsigned number);
/** Its number; SIM_PARTITIONS: there is none of that name. */
unsigned sim_partition_find(const void *name, size_t size);

/** Whether queues have such. */
int sim_has_partitions(void);
/** The key of a message, or "". */
const char *sim_partition_key(const sim_message *message);
/** It takes effect: a violation if an earlier one of its key is not done. */
void sim_partition_check_order(const sim_message *message);

/** It comes into its queue for the first time. */
void sim_partition_place(sim_message *message);
/** The next one for that session, or NULL. */
sim_message *sim_partition_next(const wb_transport_session *session);
/** The session is handed no more. */
void sim_partition_leave(const wb_transport_session *session);
/** By chance one is taken away. */
void sim_partition_rebalance(void);
/** Where it ends. */
uint64_t sim_partition_end(unsigned endpoint, unsigned number);
/** All are made anew, and are empty. */
void sim_partition_make_anew(void);

#endif
