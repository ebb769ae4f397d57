/* SPDX-License-Identifier: Apache-2.0
 *
 * Locks that the kernel releases when their holder dies: open file description locks on
 * single bytes of the file FILE-sessions beside the database.
 *
 * On the database itself only guard.c has one: SQLite holds process-wide POSIX locks there, which
 * vanish when any descriptor of that file is closed. Descriptors here are close-on-exec; a
 * child that was forked without exec keeps its parent's locks.
 */
#ifndef WB_SQLITE_LOCKFILE_H
#define WB_SQLITE_LOCKFILE_H

#include <stdint.h>

#define WB_SQLITE_LOCKFILE_SUFFIX "-sessions"

/** Open, made with mode 0600 when absent. @return a descriptor or -1 with errno. */
int wb_sqlite_lockfile_open(const char *path);
/** Open what is there. @return a descriptor or -1 with errno, ENOENT when there is none. */
int wb_sqlite_lockfile_find(const char *path);
/** Take the lock on a byte for this descriptor, without waiting.
 *  @return 1 taken, 0 held by another descriptor, -1 with errno. */
int wb_sqlite_lockfile_try(int fd, int64_t byte);
void wb_sqlite_lockfile_release(int fd, int64_t byte);
/** Whether another descriptor, of this or another process, holds it. On an error the
 *  answer is yes: a live holder must never be taken for dead. */
int wb_sqlite_lockfile_is_held(int fd, int64_t byte);
/** The same for `count` bytes, all or none of them. */
int wb_sqlite_lockfile_try_all(int fd, int64_t first, int64_t count);
void wb_sqlite_lockfile_release_all(int fd, int64_t first, int64_t count);
/** A lock on `count` bytes that others may have as well, but not one of the above. @return whether it is taken. */
int wb_sqlite_lockfile_share(int fd, int64_t first, int64_t count);
/** How many locks other descriptors hold on bytes of [first, end). On an error it is one. */
unsigned wb_sqlite_lockfile_count(int fd, int64_t first, int64_t end);
/** Whether the file was deleted under its users. */
int wb_sqlite_lockfile_is_deleted(int fd);

#endif
