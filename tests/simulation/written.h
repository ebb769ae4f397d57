/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages that programs in any language write in SQL: writers beside the processes, whose transactions commit, roll
 * back and take long; the table, which outlives every process; the SPI's functions and faults on top. A row is a
 * sim_message that no queue ever has: what is committed and what arrives is in the ledger as a handler's.
 */
#ifndef WB_SIMULATION_WRITTEN_H
#define WB_SIMULATION_WRITTEN_H

#include <stddef.h>
#include <waybill/sys/written.h>

#include "tests/simulation/ledger.h"

const wb_written_ops *sim_written_ops(void);

/** Writers begin, the first time that is called: as many as the_shape.writers, at each endpoint. */
void sim_written_start(void);
/** How many rows of an endpoint wait, those of open transactions included. */
size_t sim_written_count(unsigned endpoint);
/** Something of that message arrives, and has not been counted yet: it was committed, under its own id, and what was
 *  committed before it with its key is out. */
void sim_written_arrives(const sim_message *message, const sim_sent *sent);
/** A session is no more. */
void sim_written_leave(const wb_storage_session *session);

#endif
