/* SPDX-License-Identifier: Apache-2.0
 *
 * How MySQL is asked (wb_sql_driver): over mysql-exchange.c.
 */
#ifndef MYSQL_DRIVER_H
#define MYSQL_DRIVER_H

#include "plugins/common/sql/driver.h"

extern const wb_sql_driver mys_driver;

/** Wants the lock of installations. */
int mys_prepare_install(wb_storage_session *session, unsigned *ret_holds);
int mys_rename_tables(wb_storage_session *session, const wb_sql_names *former);
int mys_has_tables(wb_storage_session *session, const wb_sql_names *names, int *ret_has);
/** What verify looks at, up to NULL. */
extern int (*const mys_checks[])(wb_storage_session *session, wb_error *error);
/** What examine asks, up to NULL (mysql-examine.c). */
extern const char *const mys_questions[];

/** Rows of the client library. */
int mys_fetch(wb_sql_answer *answer, wb_sql_cell *ret_cells, size_t count);
uint64_t mys_number(const wb_sql_cell *cell);
void mys_clear(wb_sql_answer *answer);

#endif
