/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/sqlite/examine.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "plugins/common/finding.h"

#define MEBIBYTE (UINT64_C(1) << 20)
/* A log of the last readers' time, a burst of messages, a clean-up that is late: all of it is in the one file. */
#define SCARCE (1024 * MEBIBYTE)
#define SHORT (128 * MEBIBYTE)

static void examine_durability(const wb_sqlite_db_config *config, const char *lost, const wb_examination *examination)
{
    if (config->synchronous != 0)
        wb_common_find(examination, WB_FINDING_WARNING, "synchronous", "synchronous = \"full\"",
                       "synchronous = \"normal\": a power loss may take back the last %s of \"%s\"", lost, config->file);
}

static void find_scarce(const wb_examination *examination, const char *path, uint64_t free)
{
    char remedy[PATH_MAX + 100];
    (void)snprintf(remedy, sizeof remedy, "make room on that file system (df -h '%s'), or move the file to a larger one", path);
    wb_common_find(examination, free < SHORT ? WB_FINDING_DANGER : WB_FINDING_WARNING, "disk-space", remedy,
                   "the file system of \"%s\" has %" PRIu64 " MiB left: when it is full nothing is received, sent or handled",
                   path, free / MEBIBYTE);
}

static int examine_space(const wb_host *host, const char *path, const wb_examination *examination, wb_error *error)
{
    char directory[PATH_MAX];
    struct statvfs space;
    (void)snprintf(directory, sizeof directory, "%s", path);
    *(strrchr(directory, '/') + 1) = '\0'; /* canonical paths have one */
    if (statvfs(directory, &space) < 0)
        return wb_sqlite_db_fail_file(host, errno, "ask for the space of", directory, error);
    const uint64_t free = (uint64_t)space.f_bavail * space.f_frsize;
    if (free < SCARCE)
        find_scarce(examination, path, free);
    return WB_OK;
}

int wb_sqlite_examine(const wb_host *host, const wb_sqlite_db_config *config, const char *path, const char *lost,
                      const wb_examination *examination, wb_error *error)
{
    examine_durability(config, lost, examination);
    return examine_space(host, path, examination, error);
}
