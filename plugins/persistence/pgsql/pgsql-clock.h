/* SPDX-License-Identifier: Apache-2.0
 *
 * The server's time, and records that are ahead of it. Outside of a transaction only.
 */
#ifndef PGSQL_CLOCK_H
#define PGSQL_CLOCK_H

#include "plugins/persistence/pgsql/pgsql-session.h"

/** wb_persistence_ops.clock: one round trip. */
int pgsql_clock(wb_storage_session *session, int64_t *ret_wall, wb_error *error);

/** Warn of records from the future, once a session: two round trips.
 *  @return WB_OK, or the class in session->sql.failure. */
int pgsql_clock_look_ahead(wb_storage_session *session);

#endif
