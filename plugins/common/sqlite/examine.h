/* SPDX-License-Identifier: Apache-2.0
 *
 * examine() of both sqlite plugins: there is no server, so what can bite is the disk, and what it is asked to survive.
 */
#ifndef WB_SQLITE_EXAMINE_H
#define WB_SQLITE_EXAMINE_H

#include "plugins/common/sqlite/database.h"

/** Look at the file at the canonical `path`, which may not be there yet. `lost` says what a power loss may take with
 *  synchronous = "normal". @return WB_OK, or why the file system could not be asked. */
int wb_sqlite_examine(const wb_host *host, const wb_sqlite_db_config *config, const char *path, const char *lost,
                      const wb_examination *examination, wb_error *error);

#endif
