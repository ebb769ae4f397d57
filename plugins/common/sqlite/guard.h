/* SPDX-License-Identifier: Apache-2.0
 *
 * That a database is in use, in a way that nobody in the process can undo.
 *
 * SQLite says so to other processes by a POSIX lock, which belongs to the process: whoever in it closes any descriptor of the
 * file takes it off, and SQLite does not notice. (A handler that copies the file does, and SQLite itself where the file got
 * the number of a standard stream that somebody closed.) The next process that closes the database then finds itself alone, and
 * removes the log under our connections: what they commit from then on nobody else sees, and it is gone with them; connections
 * that are opened later fail. See sqlite.org/howtocorrupt.html, 2.2.
 *
 * So a second lock says the same: an open file description lock on the same bytes, which is of its descriptor alone.
 */
#ifndef WB_SQLITE_GUARD_H
#define WB_SQLITE_GUARD_H

#include <sys/types.h>

/** Of a file, for all connections of a process. Not for two threads at once. */
typedef struct wb_sqlite_guard {
    int fd; /* -1: not open */
    dev_t device; /* and inode: the file that it is of */
    ino_t inode;
} wb_sqlite_guard;

/** Others can no longer have the file for themselves. They must not have it now. A file that may only be read has no guard.
 *  @return SQLITE_OK, SQLITE_CANTOPEN or SQLITE_IOERR_LOCK */
int wb_sqlite_guard_take(wb_sqlite_guard *guard, const char *path);
/** They can. */
void wb_sqlite_guard_release(wb_sqlite_guard *guard);
/** Close it, which takes off all POSIX locks of the process: not while anybody has one.
 *  @return whether it is closed; if not, it may be taken again. */
int wb_sqlite_guard_close(wb_sqlite_guard *guard);
/** Before a database is opened: what is closed of the standard streams becomes the null device. SQLite closes, and with it takes off
 *  the locks of, what gets one of their numbers. */
void wb_sqlite_guard_fill_streams(void);

#endif
