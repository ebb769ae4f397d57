/* SPDX-License-Identifier: Apache-2.0
 *
 * A VFS of SQLite that passes everything on to the default one and remembers what the disk
 * refused. SQLite keeps an error only until the next call of a connection succeeds, and a
 * handler makes the next call; what a full or failing disk did to its transaction is known
 * here whatever the handler made of it.
 *
 * Kept a thread: a connection is used by one thread from BEGIN to COMMIT.
 */
#ifndef WB_SQLITE_DISK_H
#define WB_SQLITE_DISK_H

#include <sqlite3.h>
#include <stdint.h>

typedef struct disk_trouble {
    uint64_t count; /* of refusals so far, on this thread; 0 also for another VFS */
    int code;       /* the last one, as an extended result code */
} disk_trouble;

/** Name of the VFS to open connections with, registered at the first call. NULL, which is
 *  the default VFS, when memory is out. [any thread] */
const char *disk_vfs(void);

/** What the disk refused to the calling thread on connections like this one. The
 *  connection may be of the other plugin, which has a copy of this file of its own. */
disk_trouble disk_trouble_of(sqlite3 *handle);

#endif
