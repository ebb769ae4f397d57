/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "config.h"

#include "tests/integration/sqlite_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

#include "tests/integration/sqlite_support.h"

static int is_mounted;

/* ---- without a mount --------------------------------------------------------------- */

/* SQLite lets a test replace its system calls. */
static atomic_int is_full;

static ssize_t write_at(int file, const void *data, size_t size, off_t at)
{
    if (!atomic_load(&is_full))
        return pwrite(file, data, size, at);
    errno = ENOSPC;
    return -1;
}

static void replace_writes(void)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find("unix");
    union {
        ssize_t (*ours)(int, const void *, size_t, off_t);
        sqlite3_syscall_ptr call;
    } as = { write_at };
    assert_non_null(vfs);
    assert_int_equal(vfs->xSetSystemCall(vfs, "pwrite", as.call), SQLITE_OK);
    assert_int_equal(vfs->xSetSystemCall(vfs, "pwrite64", as.call), SQLITE_OK);
}

/* ---- with one ---------------------------------------------------------------------- */

static void write_map(const char *path, unsigned id)
{
    FILE *map = fopen(path, "w");
    if (!map)
        return;
    (void)fprintf(map, "0 %u 1", id);
    (void)fclose(map);
}

/* Root of a name space of users, as whom anybody may mount; where that is allowed. */
static int become_root(void)
{
    unsigned user = (unsigned)getuid();
    unsigned group = (unsigned)getgid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
        return -1;
    FILE *groups = fopen("/proc/self/setgroups", "w");
    if (groups) {
        (void)fputs("deny", groups);
        (void)fclose(groups);
    }
    write_map("/proc/self/uid_map", user);
    write_map("/proc/self/gid_map", group);
    return 0;
}

/* A name space of our own: what is mounted in it goes with the process. */
static int enter_name_space(void)
{
    if (unshare(CLONE_NEWNS) != 0 && become_root() != 0)
        return -1;
    return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

void disk_mount(const char *directory, size_t bytes)
{
    char options[64];
    (void)snprintf(options, sizeof options, "size=%zu,mode=0700", bytes);
    is_mounted =
        enter_name_space() == 0 && mount("none", directory, "tmpfs", 0, options) == 0;
    if (!is_mounted)
        replace_writes();
}

void disk_unmount(const char *directory)
{
    if (is_mounted)
        assert_int_equal(umount2(directory, MNT_DETACH), 0);
}

void disk_fill(const char *directory)
{
    static const char block[4096] = { 1 };
    char *path = test_file(directory, "filler");
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    while (is_mounted && write(file, block, sizeof block) > 0)
        ;
    (void)close(file);
    free(path);
    atomic_store(&is_full, 1);
}

void disk_free(const char *directory)
{
    char *path = test_file(directory, "filler");
    (void)unlink(path);
    free(path);
    atomic_store(&is_full, 0);
}
