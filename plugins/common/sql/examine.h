/* SPDX-License-Identifier: Apache-2.0
 *
 * examine() of all SQL servers: the dialect's questions, each a statement that answers with findings.
 */
#ifndef WB_COMMON_SQL_EXAMINE_H
#define WB_COMMON_SQL_EXAMINE_H

#include "plugins/common/sql/driver.h"

/** wb_persistence_ops.examine; on a connection of its own. A question that the user may not ask is passed over. */
int wb_sql_examine(wb_persistence *persistence, const wb_examination *examination, wb_error *error);

#endif
