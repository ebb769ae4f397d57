/* SPDX-License-Identifier: Apache-2.0
 *
 * A VFS of SQLite that passes everything on to the default one and remembers what the disk
 * refused. SQLite keeps an error only until the next call of a connection succeeds, and a
 * handler makes the next call; what a full or failing disk did to its transaction is known
 * here whatever the handler made of it.
 *
 * Kept a thread: a connection is used by one thread from BEGIN to COMMIT.
 *
 * It also sees who takes a file's write lock, and keeps what the process knows of a file's
 * log. The plugins are compiled with a copy each of this file; whichever comes first
 * registers its own, and both use that one.
 */
#ifndef WB_SQLITE_DISK_H
#define WB_SQLITE_DISK_H

#include <sqlite3.h>
#include <stdatomic.h>
#include <stdint.h>

typedef struct wb_sqlite_disk_trouble {
    uint64_t count; /* of refusals so far, on this thread; 0 also for another VFS */
    int code;       /* the last one, as an extended result code */
    int no_room;    /* the same of the last call that failed for want of room, whatever SQLite calls that; 0: did not */
} wb_sqlite_disk_trouble;

/** What the process knows of the log of a file, over all its connections; wal.c uses it.
 *  Nanoseconds of the host's clock; 0 for never. [any thread] */
typedef struct wb_sqlite_disk_log {
    _Atomic int64_t insist_at;  /* not before */
    _Atomic int64_t pause;      /* before the last insistence */
    _Atomic int64_t held_since; /* readers were in the way of each since then */
    _Atomic int64_t told_at;
} wb_sqlite_disk_log;

/** Name of the VFS to open connections with, registered at the first call. NULL, which is
 *  the default VFS, when memory is out. [any thread] */
const char *wb_sqlite_disk_vfs(void);

/** What the disk refused to the calling thread on connections like this one. The
 *  connection may be of the other plugin, which has a copy of this file of its own. */
wb_sqlite_disk_trouble wb_sqlite_disk_trouble_of(sqlite3 *handle);

/** Whether the calling thread holds the write lock of this connection's file, on whichever
 *  connection of either plugin. */
int wb_sqlite_disk_is_written_here(sqlite3 *handle);
/** How often this connection got the write lock of its file. */
uint64_t wb_sqlite_disk_write_locks(sqlite3 *handle);
/** Of this connection's file; lives as long as the connection. NULL for another VFS. */
wb_sqlite_disk_log *wb_sqlite_disk_log_of(sqlite3 *handle);

#endif
