/* SPDX-License-Identifier: Apache-2.0
 *
 * How PostgreSQL is asked (wb_sql_driver): over pgsql-exchange.c.
 */
#ifndef PGSQL_DRIVER_H
#define PGSQL_DRIVER_H

#include "plugins/common/sql/driver.h"

extern const wb_sql_driver pgsql_driver;

/** Wants the lock of installations, and looks what is there. */
int pgsql_prepare_install(wb_storage_session *session, unsigned *ret_holds);
/** What verify looks at, up to NULL. */
extern int (*const pgsql_checks[])(wb_storage_session *session, wb_error *error);
/** What examine asks, up to NULL (pgsql-examine.c). */
extern const char *const pgsql_questions[];

/** Rows of libpq. */
int pgsql_fetch(wb_sql_answer *answer, wb_sql_cell *ret_cells, size_t count);
void pgsql_clear(wb_sql_answer *answer);

#endif
