/* SPDX-License-Identifier: Apache-2.0
 *
 * What handlers' statements tell that nothing else does: which savepoints they set (plugins/common/savepoints.h), and some pragmas.
 */
#ifndef WB_SQLITE_HEARD_H
#define WB_SQLITE_HEARD_H

#include <sqlite3.h>
#include <stddef.h>

#include "plugins/common/savepoints.h"

typedef struct wb_sqlite_heard {
    int is_handed;  /* statements are a handler's */
    int has_pragma; /* of the file's lock, or its size */
    wb_common_savepoints savepoints;
} wb_sqlite_heard;

/** A transaction begins, and its statements are heard (by sqlite3_trace_v2()); `of` outlives the connection. NULL, here and below:
 *  the thread's, for a joined connection, which may outlive the session. */
void wb_sqlite_heard_begin(wb_sqlite_heard *of, sqlite3 *handle);
/** The handler of this message gets the connection; until wb_sqlite_heard_went_back() statements are its own. */
void wb_sqlite_heard_hand_out(wb_sqlite_heard *of, size_t item);
/** Its handler returned. @return whether it may have rolled back to a savepoint that was set for another message. */
int wb_sqlite_heard_went_back(wb_sqlite_heard *of);
/** Asked behind that. @return whether it ran PRAGMA locking_mode or max_page_count. */
int wb_sqlite_heard_had_pragma(wb_sqlite_heard *of);

#endif
