/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables: their SQL, their installation, their verification.
 */
#ifndef MYSQL_SCHEMA_H
#define MYSQL_SCHEMA_H

#include "plugins/persistence/mysql/mysql-session.h"

/** The SQL an installation runs on an empty database, in memory of malloc(), or NULL:
 *  out of memory. */
char *mys_schema_text(const wb_sql_names *names);

/** wb_persistence_ops.install and verify; both open a connection of their own. */
int mys_install(wb_persistence *persistence, wb_error *error);
int mys_verify(wb_persistence *persistence, wb_error *error);

/** The version that {endpoints} must have for this endpoint. */
#define MYS_SCHEMA_VERSION 1

/** Run one statement by itself; {names} in it are replaced. Its rows go to *ret_rows, if
 *  somebody wants them. @return WB_OK, or the class in session->sql.failure. */
int mys_schema_run(wb_storage_session *session, const char *template, MYSQL_RES **ret_rows);
/** The version of the tables of this endpoint, 0 if none are recorded.
 *  @return WB_OK, or WB_FATAL with a filled error: they are another endpoint's, or newer. */
int mys_schema_read_version(wb_storage_session *session, int *ret_version, wb_error *error);

#endif
