/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/sqlite/path.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The directory part of `file` ("." when there is none) and its base name. */
static int split(const char *file, char *directory, size_t size, const char **ret_base)
{
    const char *slash = strrchr(file, '/');
    const char *base = slash ? slash + 1 : file;
    if (*base == '\0')
        return -1;
    size_t length = slash ? (size_t)(slash - file) : 1;
    const char *from = slash ? file : ".";
    if (slash == file)
        length = 1; /* the root itself */
    if (length >= size)
        return -1;
    memcpy(directory, from, length);
    directory[length] = '\0';
    *ret_base = base;
    return 0;
}

static int join_to(char *buffer, size_t size, const char *directory, const char *base)
{
    const char *separator = strcmp(directory, "/") == 0 ? "" : "/";
    int length = snprintf(buffer, size, "%s%s%s", directory, separator, base);
    return length < 0 || (size_t)length >= size ? -1 : 0;
}

int wb_sqlite_path_canonical(const char *file, char *buffer, size_t size)
{
    char directory[PATH_MAX];
    char resolved[PATH_MAX];
    const char *base;
    if (!file || *file != '/' || split(file, directory, sizeof directory, &base) < 0)
        return -1;
    if (realpath(file, resolved)) /* a link to the file is the file */
        return join_to(buffer, size, "", resolved + 1);
    if (realpath(directory, resolved))
        return join_to(buffer, size, resolved, base);
    return join_to(buffer, size, "", file + 1);
}

int wb_sqlite_path_has_directory(const char *path)
{
    char directory[PATH_MAX];
    const char *base;
    struct stat status;
    return split(path, directory, sizeof directory, &base) == 0 && stat(directory, &status) == 0 &&
           S_ISDIR(status.st_mode);
}

char *wb_sqlite_path_join(const char *path, const char *suffix)
{
    size_t size = strlen(path) + strlen(suffix) + 1;
    char *joined = malloc(size);
    if (joined)
        (void)snprintf(joined, size, "%s%s", path, suffix);
    return joined;
}
