/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/cli/streams.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/log.h"
#include "core/base/log_sink.h"

static int is_closed(int descriptor)
{
    return fcntl(descriptor, F_GETFD) < 0 && errno == EBADF;
}

static int is_null(int descriptor)
{
    struct stat null, it;
    return stat("/dev/null", &null) == 0 && fstat(descriptor, &it) == 0 && S_ISCHR(it.st_mode) && it.st_rdev == null.st_rdev;
}

/* The lowest that is free is what open() takes. */
static int fill(int descriptor)
{
    int opened = open("/dev/null", O_RDWR);
    if (opened > STDERR_FILENO)
        (void)close(opened);
    return opened == descriptor;
}

static int was_null[STDERR_FILENO + 1];

void cli_streams_keep(void)
{
    for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++) {
        if (is_closed(i))
            (void)fill(i);
        was_null[i] = is_null(i);
    }
    wb_log_sink_keep_stderr();
}

/* Another thread may have been quicker: SQLite, too, leaves none of the three to a database. */
static int became_null(int descriptor)
{
    if (is_closed(descriptor) && fill(descriptor))
        return was_null[descriptor] = 1;
    int is_new = !was_null[descriptor] && is_null(descriptor);
    was_null[descriptor] |= is_new;
    return is_new;
}

/* The line goes to where all go from now on. */
static void look_at_log(void)
{
    int code;
    if (wb_log_sink_was_closed(&code))
        wb_log_event(WB_LOG_ERROR, code == 0 ? "the log file was closed by a handler: it was opened anew"
                                             : "the log file was closed by a handler: lines go to standard error",
                     { "reason", code == 0 ? NULL : strerror(code) });
}

void cli_streams_look(void)
{
    static const char *const names[] = { "standard input", "standard output", "standard error" };
    for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++)
        if (became_null(i))
            wb_log_event(WB_LOG_ERROR, "a descriptor was closed that is the program's: it is /dev/null now",
                         { "descriptor", names[i] });
    look_at_log();
}
