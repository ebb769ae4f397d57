/* SPDX-License-Identifier: Apache-2.0
 *
 * Is a dialect whole? What is missing would be met later, by the first sweep, say.
 */
#ifndef WB_COMMON_SQL_DIALECT_H
#define WB_COMMON_SQL_DIALECT_H

#include "plugins/common/sql/driver.h"

/** Whether the dialect has what the functions here and this driver ask it for.
 *  @return WB_OK, or WB_FATAL: the plugin is not finished, and `error` says what it lacks. */
int wb_sql_dialect_check(const wb_host *host, const wb_sql_dialect *dialect,
                         const wb_sql_driver *driver, wb_error *error);

#endif
