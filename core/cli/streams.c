/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/cli/streams.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "core/base/log.h"

static int is_closed(int descriptor)
{
    return fcntl(descriptor, F_GETFD) < 0 && errno == EBADF;
}

/* The lowest that is free is what open() takes; another thread may have been quicker. */
static int fill(int descriptor)
{
    int opened = open("/dev/null", O_RDWR);
    if (opened > STDERR_FILENO)
        (void)close(opened);
    return opened == descriptor;
}

void cli_streams_keep(void)
{
    for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++)
        if (is_closed(i))
            (void)fill(i);
    wb_log_keep_stderr();
}

void cli_streams_look(void)
{
    static const char *const names[] = { "standard input", "standard output", "standard error" };
    for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++)
        if (is_closed(i) && fill(i))
            wb_log_event(WB_LOG_ERROR, "a descriptor was closed that is the program's: it is /dev/null now",
                         { "descriptor", names[i] });
}
