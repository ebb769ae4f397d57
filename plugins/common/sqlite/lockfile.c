/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/sqlite/lockfile.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static struct flock bytes(int64_t first, int64_t count, short type)
{
    return (struct flock){
        .l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)first, .l_len = (off_t)count
    };
}

static struct flock one_byte(int64_t byte, short type)
{
    return bytes(byte, 1, type);
}

int wb_sqlite_lockfile_open(const char *path)
{
    return open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
}

int wb_sqlite_lockfile_find(const char *path)
{
    return open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
}

int wb_sqlite_lockfile_try(int fd, int64_t byte)
{
    return wb_sqlite_lockfile_try_all(fd, byte, 1);
}

int wb_sqlite_lockfile_try_all(int fd, int64_t first, int64_t count)
{
    struct flock lock = bytes(first, count, F_WRLCK);
    if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
        return 1;
    return errno == EAGAIN || errno == EACCES ? 0 : -1;
}

int wb_sqlite_lockfile_share(int fd, int64_t first, int64_t count)
{
    struct flock lock = bytes(first, count, F_RDLCK);
    return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

void wb_sqlite_lockfile_release_all(int fd, int64_t first, int64_t count)
{
    struct flock lock = bytes(first, count, F_UNLCK);
    (void)fcntl(fd, F_OFD_SETLK, &lock);
}

void wb_sqlite_lockfile_release(int fd, int64_t byte)
{
    wb_sqlite_lockfile_release_all(fd, byte, 1);
}

int wb_sqlite_lockfile_is_held(int fd, int64_t byte)
{
    struct flock lock = one_byte(byte, F_WRLCK);
    return fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

/* The kernel names one of them, whichever: the others are before and behind it. */
unsigned wb_sqlite_lockfile_count(int fd, int64_t first, int64_t end)
{
    unsigned before = 0;
    while (first < end) {
        struct flock lock = bytes(first, end - first, F_WRLCK);
        if (fcntl(fd, F_OFD_GETLK, &lock) != 0)
            return before + 1;
        if (lock.l_type == F_UNLCK)
            break;
        before += wb_sqlite_lockfile_count(fd, first, lock.l_start) + 1;
        first = lock.l_len ? lock.l_start + lock.l_len : end;
    }
    return before;
}

int wb_sqlite_lockfile_is_deleted(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 && status.st_nlink == 0;
}
