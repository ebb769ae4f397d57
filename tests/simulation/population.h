/* SPDX-License-Identifier: Apache-2.0
 *
 * The messages of a run: made before it begins, put into the queues when the driver says.
 */
#ifndef WB_SIMULATION_POPULATION_H
#define WB_SIMULATION_POPULATION_H

#include "tests/simulation/ledger.h"

/** A new message, nowhere yet. */
sim_message *sim_populate_one(unsigned endpoint, sim_fate fate, int batch_handler);
/** One with the id of another: the same message once more, or (other than -1) of another fate
 *  and with another body. */
sim_message *sim_populate_copy(const sim_message *of, int fate);
/** What a delayed retry brings back to its queue: a message of the same body and id, with the
 *  headers of the operation. Not yet published. */
sim_message *sim_populate_retry(const sim_message *of, const wb_operation *operation);
/** What a control message of a session is in its queue. Not yet published. */
sim_message *sim_populate_control(const sim_message *session, const wb_operation *operation);
/** As the shape says. */
void sim_populate(void);

#endif
