/* SPDX-License-Identifier: Apache-2.0
 *
 * Which savepoints handlers set (plugins/common/savepoints.h), by what SQLite tells of each statement.
 */
#ifndef WB_SQLITE_SAVEPOINTS_H
#define WB_SQLITE_SAVEPOINTS_H

#include <sqlite3.h>
#include <stddef.h>

#include "plugins/common/savepoints.h"

typedef struct wb_sqlite_savepoints {
    int is_handed; /* statements are a handler's */
    wb_common_savepoints seen;
} wb_sqlite_savepoints;

/** A transaction begins, and its statements are watched (by sqlite3_trace_v2()); `of` outlives the connection. NULL, here and below:
 *  the thread's, for a joined connection, which may outlive the session. */
void wb_sqlite_savepoints_begin(wb_sqlite_savepoints *of, sqlite3 *handle);
/** The handler of this message gets the connection; until wb_sqlite_savepoints_went_back() statements are its own. */
void wb_sqlite_savepoints_hand_out(wb_sqlite_savepoints *of, size_t item);
/** Its handler returned. @return whether it may have rolled back to a savepoint that was set for another message. */
int wb_sqlite_savepoints_went_back(wb_sqlite_savepoints *of);

#endif
