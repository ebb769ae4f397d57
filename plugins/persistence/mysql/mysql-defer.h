/* SPDX-License-Identifier: Apache-2.0
 *
 * What handlers get to write business data with: the plain connection and deferred
 * statements (waybill/mysql.h), and the check of what they did with it.
 */
#ifndef MYSQL_DEFER_H
#define MYSQL_DEFER_H

#include <waybill/mysql.h>
#include <waybill/sys/persistence.h>

/** wb_persistence_ops.interface. */
const void *mys_interface(wb_storage_session *session, const char *name);

/** Is the transaction still as it must be, as far as this side knows? Records what is
 *  wrong in session->sql.failure. */
int mys_defer_inspect(wb_storage_session *session);

#endif
