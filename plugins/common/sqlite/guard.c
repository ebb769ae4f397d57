/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/sqlite/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugins/common/sqlite/lockfile.h"

/* The bytes that SQLite locks: pending, reserved, and 510 of whoever has the file in use
 * (sqlite.org/fileformat.html, "The Lock-Byte Page"; SHARED_FIRST and SHARED_SIZE of os_unix.c). */
#define LOCKS_FIRST INT64_C(0x40000000)
#define LOCKS_COUNT 512
#define SHARED_FIRST (LOCKS_FIRST + 2)
#define SHARED_COUNT 510

/* The lowest that is free is what open() takes, unless another thread was quicker. */
void wb_sqlite_guard_fill_streams(void)
{
    for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++) {
        int fd = fcntl(i, F_GETFD) < 0 && errno == EBADF ? open("/dev/null", O_RDWR) : -1;
        if (fd > STDERR_FILENO)
            (void)close(fd);
    }
}

/* ---- whose descriptor ---------------------------------------------------------------------------- */

/* A handler that closes what is not its own may give away the number. Nobody reads or writes through the guard, so its offset is
 * a mark that no other descriptor has, of the same file neither. */
static int is_ours(const wb_sqlite_guard *guard)
{
    return guard->fd >= 0 && lseek(guard->fd, 0, SEEK_CUR) == SHARED_FIRST;
}

static int is_of_another(const wb_sqlite_guard *guard, const char *path)
{
    struct stat named;
    return stat(path, &named) == 0 && (named.st_dev != guard->device || named.st_ino != guard->inode);
}

/* The old file may be in use by another name: then its descriptor stays as it is. */
static void leave_replaced(wb_sqlite_guard *guard, const char *path)
{
    if (is_ours(guard) && !is_of_another(guard, path))
        return;
    wb_sqlite_guard_release(guard);
    (void)wb_sqlite_guard_close(guard);
    guard->fd = -1;
}

static int open_file(wb_sqlite_guard *guard, const char *path)
{
    struct stat it;
    wb_sqlite_guard_fill_streams();
    guard->fd = wb_sqlite_lockfile_find(path);
    if (guard->fd < 0 || fstat(guard->fd, &it) != 0 || lseek(guard->fd, SHARED_FIRST, SEEK_SET) != SHARED_FIRST)
        return -1;
    guard->device = it.st_dev;
    guard->inode = it.st_ino;
    return 0;
}

/* ---- taken, and given back ----------------------------------------------------------------------- */

int wb_sqlite_guard_take(wb_sqlite_guard *guard, const char *path)
{
    leave_replaced(guard, path);
    if (guard->fd < 0 && open_file(guard, path) < 0)
        return errno == EACCES || errno == EPERM || errno == EROFS ? SQLITE_OK : SQLITE_CANTOPEN;
    return wb_sqlite_lockfile_share(guard->fd, SHARED_FIRST, SHARED_COUNT) ? SQLITE_OK : SQLITE_IOERR_LOCK;
}

void wb_sqlite_guard_release(wb_sqlite_guard *guard)
{
    if (is_ours(guard))
        wb_sqlite_lockfile_release_all(guard->fd, SHARED_FIRST, SHARED_COUNT);
}

/* The lock on all bytes says that nobody has any. It is taken off before the descriptor is closed, since a child of fork() may have
 * that, too: else the lock would end with the child. */
int wb_sqlite_guard_close(wb_sqlite_guard *guard)
{
    if (is_ours(guard)) {
        if (wb_sqlite_lockfile_try_all(guard->fd, LOCKS_FIRST, LOCKS_COUNT) != 1)
            return 0;
        wb_sqlite_lockfile_release_all(guard->fd, LOCKS_FIRST, LOCKS_COUNT);
        (void)close(guard->fd);
    }
    guard->fd = -1;
    return 1;
}
