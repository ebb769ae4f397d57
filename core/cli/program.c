/* SPDX-License-Identifier: Apache-2.0
 *
 * Verbs that are programs of their own. They lie beside this one, in the build tree as where
 * they are installed, wherever that was moved to.
 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "core/cli/cli.h"

/* @return 0: it does not fit. */
static int find_beside(const char *program, char *path, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", path, size);
    if (length <= 0 || (size_t)length >= size)
        return 0;
    path[length] = '\0';
    char *name = strrchr(path, '/');
    if (!name)
        return 0;
    name++;
    const size_t room = size - (size_t)(name - path);
    return (size_t)snprintf(name, room, "%s", program) < room;
}

int cli_become(const cli_verb *verb, char **argv)
{
    char path[PATH_MAX];
    if (!find_beside(verb->program, path, sizeof path))
        return cli_fail(EX_SOFTWARE, "cannot tell where \"%s\" is", verb->program);
    (void)execv(path, argv);
    return cli_fail(EX_SOFTWARE, "cannot start \"%s\": %s", path, strerror(errno));
}
