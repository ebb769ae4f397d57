/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables: the text of their installation, their installation, their version.
 */
#ifndef WB_COMMON_SQL_SCHEMA_H
#define WB_COMMON_SQL_SCHEMA_H

#include "plugins/common/sql/driver.h"

/** The SQL an installation runs on an empty database, in memory of malloc(), or NULL:
 *  out of memory. */
char *wb_sql_schema_text(const wb_sql_outbox *outbox);

/** wb_persistence_ops.schema, install and verify; the last two open a connection of their own. */
const char *wb_sql_schema(wb_persistence *persistence);
int wb_sql_install(wb_persistence *persistence, wb_error *error);
int wb_sql_verify(wb_persistence *persistence, wb_error *error);

/** Run one statement by itself; {names} in it are replaced. `ret_rows` may be NULL, and is to be
 *  cleared whatever the result. @return WB_OK, or the class in the session's failure. */
int wb_sql_schema_run(wb_storage_session *session, const char *template, wb_sql_answer *ret_rows);

/** One of the checks of verify, and asked by each session that is opened: the tables have a version
 *  that is known. Says whether their keys are compact. Outside of a transaction. */
int wb_sql_check_version(wb_storage_session *session, wb_error *error);

#endif
