/* SPDX-License-Identifier: Apache-2.0
 *
 * A full disk for those who may not mount one: preloaded into a server, it makes each write fail
 * with ENOSPC that would lengthen a file below WB_FULL_DISK/space while the file
 * WB_FULL_DISK/full is there. What a file has it keeps, as on a real disk. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))

static int is_there(int file, const char *directory)
{
    char link[64], path[PATH_MAX], space[PATH_MAX];
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    const int space_size = snprintf(space, sizeof space, "%s/space/", directory);
    const ssize_t size = readlink(link, path, sizeof path);
    return size > space_size && memcmp(path, space, (size_t)space_size) == 0;
}

/* Would the file become longer, and may it not? */
static int is_full(int file, off_t end)
{
    const char *directory = getenv("WB_FULL_DISK");
    char full[PATH_MAX];
    struct stat status;
    if (!directory)
        return 0;
    (void)snprintf(full, sizeof full, "%s/full", directory);
    return access(full, F_OK) == 0 && is_there(file, directory) && fstat(file, &status) == 0 &&
           end > status.st_size;
}

static off_t size_of(const struct iovec *parts, int count)
{
    off_t size = 0;
    for (int i = 0; i < count; i++)
        size += (off_t)parts[i].iov_len;
    return size;
}

static ssize_t refuse(void)
{
    errno = ENOSPC;
    return -1;
}

PUBLIC ssize_t pwrite64(int file, const void *data, size_t size, off_t at)
{
    return is_full(file, at + (off_t)size) ? refuse() : syscall(SYS_pwrite64, file, data, size, at);
}

PUBLIC ssize_t pwrite(int file, const void *data, size_t size, off_t at)
{
    return pwrite64(file, data, size, at);
}

PUBLIC ssize_t pwritev64(int file, const struct iovec *parts, int count, off_t at)
{
    return is_full(file, at + size_of(parts, count))
               ? refuse()
               : syscall(SYS_pwritev, file, parts, (long)count, at, 0L);
}

PUBLIC ssize_t pwritev(int file, const struct iovec *parts, int count, off_t at)
{
    return pwritev64(file, parts, count, at);
}

PUBLIC ssize_t write(int file, const void *data, size_t size)
{
    const off_t at = lseek(file, 0, SEEK_CUR);
    return at >= 0 && is_full(file, at + (off_t)size) ? refuse()
                                                      : syscall(SYS_write, file, data, size);
}

PUBLIC int fallocate64(int file, int mode, off_t at, off_t size)
{
    if (!(mode & FALLOC_FL_PUNCH_HOLE) && is_full(file, at + size))
        return (int)refuse();
    return (int)syscall(SYS_fallocate, file, (long)mode, at, size);
}

PUBLIC int fallocate(int file, int mode, off_t at, off_t size)
{
    return fallocate64(file, mode, at, size);
}

PUBLIC int posix_fallocate64(int file, off_t at, off_t size)
{
    return fallocate64(file, 0, at, size) == 0 ? 0 : errno;
}

PUBLIC int posix_fallocate(int file, off_t at, off_t size)
{
    return posix_fallocate64(file, at, size);
}
