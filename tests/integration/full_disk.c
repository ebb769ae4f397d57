/* SPDX-License-Identifier: Apache-2.0
 *
 * In front of the C library: below each directory of WB_DISKS (a list with colons) nothing
 * can be written while it holds a file "filler". For tests where nobody may mount.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_below(const char *path, const char *directory, size_t size)
{
    char filler[PATH_MAX];
    if (strncmp(path, directory, size) != 0 || path[size] != '/')
        return 0;
    (void)snprintf(filler, sizeof filler, "%.*s/filler", (int)size, directory);
    return access(filler, F_OK) == 0;
}

static int is_full(int file)
{
    char link[64];
    char path[PATH_MAX];
    int before = errno;
    const char *disks = getenv("WB_DISKS");
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t size = readlink(link, path, sizeof path - 1);
    errno = before;
    if (size < 0 || !disks)
        return 0;
    path[size] = '\0';
    for (size_t length; *disks; disks += length + (disks[length] == ':')) {
        length = strcspn(disks, ":");
        if (is_below(path, disks, length)) {
            errno = ENOSPC;
            return 1;
        }
    }
    return 0;
}

#define IN_FRONT __attribute__((visibility("default")))
#define NEXT(result, name, ...)                                                                    \
    union {                                                                                        \
        void *object;                                                                              \
        result (*function)(__VA_ARGS__);                                                           \
    } next = { dlsym(RTLD_NEXT, name) }

IN_FRONT ssize_t write(int file, const void *data, size_t size)
{
    NEXT(ssize_t, "write", int, const void *, size_t);
    return is_full(file) ? -1 : next.function(file, data, size);
}

IN_FRONT ssize_t pwrite(int file, const void *data, size_t size, off_t at)
{
    NEXT(ssize_t, "pwrite", int, const void *, size_t, off_t);
    return is_full(file) ? -1 : next.function(file, data, size, at);
}

IN_FRONT ssize_t pwrite64(int file, const void *data, size_t size, off64_t at)
{
    NEXT(ssize_t, "pwrite64", int, const void *, size_t, off64_t);
    return is_full(file) ? -1 : next.function(file, data, size, at);
}
