/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/sqlite/usable.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugins/common/sqlite/map.h"
#include "plugins/common/sqlite/path.h"

static int refuse_file(const wb_host *host, const char *file, int number, wb_error *error)
{
    const wb_sqlite_db_meaning meaning = wb_sqlite_db_meaning_of_errno(number);
    if (meaning.result != WB_FATAL)
        return WB_OK;
    return host->fail(host, error, meaning.result, meaning.cause, number, "file = \"%s\" cannot be used: %s%s", file,
                      strerror(number), meaning.remedy);
}

/* What `install` would make there. */
static int check_directory(const wb_host *host, const char *file, const char *path, wb_error *error)
{
    char directory[PATH_MAX];
    (void)snprintf(directory, sizeof directory, "%s", path);
    *strrchr(directory, '/') = '\0'; /* canonical paths have one */
    if (!wb_sqlite_path_has_directory(path))
        return host->fail(host, error, WB_FATAL, WB_CAUSE_MISSING, ENOENT,
                          "file = \"%s\" cannot be used: there is no directory \"%s\": create it", file, directory);
    if (faccessat(AT_FDCWD, *directory ? directory : "/", W_OK | X_OK, AT_EACCESS) == 0)
        return WB_OK;
    return refuse_file(host, file, errno, error);
}

int wb_sqlite_usable(const wb_host *host, const char *file, const char *path, wb_error *error)
{
    struct stat status;
    if (stat(path, &status) < 0)
        return errno == ENOENT || errno == ENOTDIR ? check_directory(host, file, path, error)
                                                   : refuse_file(host, file, errno, error);
    if (!S_ISREG(status.st_mode))
        return host->fail(host, error, WB_FATAL, WB_CAUSE_CONFIG, 0, "file = \"%s\" is not the path of a file", file);
    return faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) == 0 ? WB_OK : refuse_file(host, file, errno, error);
}
