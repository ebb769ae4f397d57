/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/sqlite/lockfile.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static struct flock one_byte(int64_t byte, short type)
{
    return (struct flock){
        .l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)byte, .l_len = 1
    };
}

int wb_sqlite_lockfile_open(const char *path)
{
    return open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
}

int wb_sqlite_lockfile_try(int fd, int64_t byte)
{
    struct flock lock = one_byte(byte, F_WRLCK);
    if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
        return 1;
    return errno == EAGAIN || errno == EACCES ? 0 : -1;
}

void wb_sqlite_lockfile_release(int fd, int64_t byte)
{
    struct flock lock = one_byte(byte, F_UNLCK);
    (void)fcntl(fd, F_OFD_SETLK, &lock);
}

int wb_sqlite_lockfile_is_held(int fd, int64_t byte)
{
    struct flock lock = one_byte(byte, F_WRLCK);
    return fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

int wb_sqlite_lockfile_is_deleted(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 && status.st_nlink == 0;
}
