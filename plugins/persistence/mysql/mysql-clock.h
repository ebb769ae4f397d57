/* SPDX-License-Identifier: Apache-2.0
 *
 * The server's time, and records that are ahead of it. Outside of a transaction only.
 */
#ifndef MYSQL_CLOCK_H
#define MYSQL_CLOCK_H

#include "plugins/persistence/mysql/mysql-session.h"

/** wb_persistence_ops.clock: one round trip. A handler that sets the session variable
 *  `timestamp` sets this clock, too. */
int mys_clock(wb_storage_session *session, int64_t *ret_wall, wb_error *error);

/** Warn of records from the future, once a session: two round trips.
 *  @return WB_OK, or the class in session->sql.failure. */
int mys_clock_look_ahead(wb_storage_session *session);

#endif
