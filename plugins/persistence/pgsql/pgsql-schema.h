/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables: their SQL, their installation, their verification.
 */
#ifndef PGSQL_SCHEMA_H
#define PGSQL_SCHEMA_H

#include "plugins/persistence/pgsql/pgsql-session.h"

/** The SQL an installation runs on an empty database, in memory of malloc(), or NULL:
 *  out of memory. */
char *pgsql_schema_text(const wb_sql_names *names);

/** wb_persistence_ops.install and verify; both open a connection of their own. */
int pgsql_install(wb_persistence *persistence, wb_error *error);
int pgsql_verify(wb_persistence *persistence, wb_error *error);

/** The version that {endpoints} must have for this endpoint. */
#define PGSQL_SCHEMA_VERSION 1

/** Run one statement by itself, text in and out; {names} in it are replaced. */
int pgsql_schema_run(wb_storage_session *session, const char *template, const char *const *values,
                     int value_count, PGresult **ret_result);
/** Compare a row (endpoint, version) of {endpoints} with what must be there; without rows
 *  there is nothing to compare. @return WB_OK, or WB_FATAL with a filled error. */
int pgsql_schema_compare(wb_persistence *persistence, const PGresult *row, int *ret_version,
                         wb_error *error);

#define PGSQL_SCHEMA_SELECT_VERSION                                                                \
    "SELECT endpoint, version FROM {endpoints} WHERE prefix = {prefix}"

#endif
