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

/* Never one of the standard three: whoever prints would write into the database. */
static int above_streams(int fd)
{
    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    const int moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    (void)close(fd);
    return moved;
}

/* One that may only be read can be attached. */
static int open_file(const char *path)
{
    int fd = wb_sqlite_lockfile_find(path);
    if (fd < 0 && (errno == EACCES || errno == EROFS))
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return above_streams(fd);
}

static int is_of(int fd, const char *path)
{
    struct stat held, named;
    return fstat(fd, &held) == 0 && stat(path, &named) == 0 && held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

/* What has no name any more nobody else can open. */
static void forget_replaced(wb_sqlite_guard *guard, const char *path)
{
    if (guard->fd < 0 || is_of(guard->fd, path))
        return;
    (void)close(guard->fd);
    guard->fd = -1;
}

int wb_sqlite_guard_take(wb_sqlite_guard *guard, const char *path)
{
    forget_replaced(guard, path);
    if (guard->fd < 0)
        guard->fd = open_file(path);
    if (guard->fd < 0)
        return SQLITE_CANTOPEN;
    return wb_sqlite_lockfile_share(guard->fd, SHARED_FIRST, SHARED_COUNT) ? SQLITE_OK : SQLITE_IOERR_LOCK;
}

void wb_sqlite_guard_release(wb_sqlite_guard *guard)
{
    if (guard->fd >= 0)
        wb_sqlite_lockfile_release_all(guard->fd, SHARED_FIRST, SHARED_COUNT);
}

int wb_sqlite_guard_close(wb_sqlite_guard *guard)
{
    if (guard->fd < 0)
        return 1;
    if (wb_sqlite_lockfile_try_all(guard->fd, LOCKS_FIRST, LOCKS_COUNT) != 1)
        return 0;
    (void)close(guard->fd);
    guard->fd = -1;
    return 1;
}
