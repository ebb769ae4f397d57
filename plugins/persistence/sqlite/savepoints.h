/* SPDX-License-Identifier: Apache-2.0
 *
 * Savepoints that handlers set. Messages of a batch share one transaction, and so the names in it: a handler that rolls
 * back to one which another message's left undoes what was done in between, also others' work, and nothing fails. So it is
 * noted which statements set, release and roll back; who went back without one of his own has the batch run again, in
 * parts, until each of the two is alone, where neither harms anybody.
 */
#ifndef WB_SQLITE_SAVEPOINTS_H
#define WB_SQLITE_SAVEPOINTS_H

#include <sqlite3.h>
#include <stddef.h>

typedef struct wb_sqlite_savepoints {
    int is_handed; /* statements are a handler's */
    int has_item;
    size_t item;   /* whose it is, or was last */
    int count;     /* that were set and not released, as far as statements tell */
    int inherited; /* so many of them when the handler got the connection */
    int went_back;
} wb_sqlite_savepoints;

/** A transaction begins, and its statements are watched (by sqlite3_trace_v2()); `of` outlives the connection. NULL, here and below:
 *  the thread's, for a joined connection, which may outlive the session. */
void wb_sqlite_savepoints_begin(wb_sqlite_savepoints *of, sqlite3 *handle);
/** The handler of this message gets the connection; until wb_sqlite_savepoints_went_back() statements are its own. */
void wb_sqlite_savepoints_hand_out(wb_sqlite_savepoints *of, size_t item);
/** Its handler returned. @return whether it may have rolled back to a savepoint that was set for another message. */
int wb_sqlite_savepoints_went_back(wb_sqlite_savepoints *of);

#endif
