/* SPDX-License-Identifier: Apache-2.0
 *
 * The write-ahead log stays small. SQLite starts it anew only at a moment when all of it is
 * in the file and nobody reads it; with sessions enough some read always overlaps the next,
 * and that moment never comes by itself. So a writer that finds the log long makes it: it
 * keeps the write lock until those who read have left, for 50 ms at most, and when that was
 * too short, on a machine with more to do than processors, for longer the next time, up to
 * 400 ms. Waybill's own reads take less. Others may not: then the log grows, and a line a
 * minute says so.
 */
#ifndef WB_SQLITE_WAL_H
#define WB_SQLITE_WAL_H

#include "plugins/common/sqlite/database.h"

/** A log that was started anew is cut to this. */
#define WB_SQLITE_WAL_BYTES_KEPT "16777216"

/** Note how long the log is when this transaction has been committed. Before each COMMIT,
 *  since a handler may have set PRAGMA wal_autocheckpoint, which ends the noting. */
void wb_sqlite_wal_watch(wb_sqlite_database *db);
/** After a COMMIT: carry a log of 16 MiB into the file as far as its readers let us, and
 *  one of 32 MiB whole. Never an error: the commit stands. May take 100 ms more than the
 *  writing, seldom 800: half of it for another connection that is at it, at each commit for as
 *  long as that one is slow, half of it for readers, and not at each commit. */
void wb_sqlite_wal_bound(wb_sqlite_database *db);

#endif
