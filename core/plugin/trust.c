/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/plugin/trust.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOT_OURS_TO_WRITE (S_IWGRP | S_IWOTH)

static int refuse(wb_error *error, const char *path, const char *part, const char *reason)
{
    if (strcmp(path, part) == 0)
        return wb_error_set(error, WB_FATAL, WB_CAUSE_CONFIG, 0, "\"%s\" is not trusted: it %s",
                            path, reason);
    return wb_error_set(error, WB_FATAL, WB_CAUSE_CONFIG, 0,
                        "\"%s\" is not trusted: the directory \"%s\" %s", path, part, reason);
}

static int check_part(const char *path, const char *part, int may_be_sticky, wb_error *error)
{
    struct stat st;
    if (lstat(part, &st) != 0)
        return wb_error_set(error, WB_FATAL, WB_CAUSE_CONFIG, errno, "cannot read \"%s\": %s",
                            part, strerror(errno));
    if (st.st_uid != 0 && st.st_uid != geteuid())
        return refuse(error, path, part,
                      "belongs neither to root nor to the user that runs this; change its owner");
    if (!(st.st_mode & NOT_OURS_TO_WRITE))
        return WB_OK;
    if (may_be_sticky && S_ISDIR(st.st_mode) && (st.st_mode & S_ISVTX))
        return WB_OK;
    return refuse(error, path, part, "can be written by others; use chmod go-w");
}

/* Everything above the file, nearest first. */
static int check_directories(const char *path, wb_error *error)
{
    char part[PATH_MAX];
    (void)snprintf(part, sizeof part, "%s", path);
    for (int is_own = 1;; is_own = 0) {
        char *slash = strrchr(part, '/');
        slash[slash == part ? 1 : 0] = '\0';
        int result = check_part(path, part, !is_own, error);
        if (result != WB_OK || slash == part)
            return result;
    }
}

int wb_trust_check(const char *path, char ret_canonical[PATH_MAX], wb_error *error)
{
    struct stat st;
    if (lstat(path, &st) != 0 || (!S_ISLNK(st.st_mode) && !realpath(path, ret_canonical)))
        return wb_error_set(error, WB_FATAL, WB_CAUSE_CONFIG, errno, "cannot read \"%s\": %s",
                            path, strerror(errno));
    if (S_ISLNK(st.st_mode))
        return refuse(error, path, path, "is a symbolic link; name the file itself");
    if (!S_ISREG(st.st_mode))
        return refuse(error, path, path, "is not a regular file");
    int result = check_part(ret_canonical, ret_canonical, 0, error);
    return result == WB_OK ? check_directories(ret_canonical, error) : result;
}
