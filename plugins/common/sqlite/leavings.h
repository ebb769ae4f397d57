/* SPDX-License-Identifier: Apache-2.0
 *
 * What somebody who shares a connection, a handler, may leave on it, and the statements of others and ours would be refused
 * for, or do nothing, or something else:
 *
 * - settings: a progress handler, limits (but for that of threads), result codes that are not extended. To end them costs nothing.
 * - an authorizer, which is asked whenever a statement is compiled: one that answers SQLITE_IGNORE makes an INSERT, or a COMMIT, a
 *   statement that does nothing and succeeds. SQLite cannot be asked whether there is one, and to end it has all
 *   statements compiled anew.
 * - temporary tables, views and triggers that stand in front of a table of ours.
 * - pragmas: query_only, count_changes, locking_mode, max_page_count.
 *
 * All but the first and the last two pragmas have SQLite compile all statements anew. So one that nobody else runs, the sentinel, tells: as long
 * as it was not compiled anew nothing of that was done. It is found by its text, since a connection is seen by two plugins,
 * and then where it was.
 */
#ifndef WB_SQLITE_LEAVINGS_H
#define WB_SQLITE_LEAVINGS_H

#include <sqlite3.h>
#include <stdint.h>

#define WB_SQLITE_LEAVINGS_SENTINEL "select 'waybill'"

void wb_sqlite_leavings_end_settings(sqlite3 *handle);
/** All but settings, whether they are there or not; all statements are compiled anew. @return a result code of SQLite's. */
int wb_sqlite_leavings_end_all(sqlite3 *handle);
/** The same if the sentinel tells, or `is_known` says, that there may be something. Each statement that is in the midst of its
 *  rows is reset before: a cursor that a handler left open would keep its old view of the file alive, and the next BEGIN
 *  IMMEDIATE would be refused for it. The last error of the connection is forgotten. *where: the sentinel's address when it was
 *  looked for last, 0 at first; somebody may have finalized it since. */
int wb_sqlite_leavings_end(sqlite3 *handle, uintptr_t *where, int is_known);

#endif
