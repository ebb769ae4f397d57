/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/cli/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "core/base/clock.h"

/* A path, or a name in the abstract name space, which is written with @ and sent with a NUL byte.
 * @return whether it is one. */
static int read_address(cli_notify *notify, const char *name)
{
    size_t size = strlen(name);
    if (size < 2 || size >= sizeof notify->address.sun_path || (name[0] != '/' && name[0] != '@'))
        return 0;
    notify->address.sun_family = AF_UNIX;
    memcpy(notify->address.sun_path, name, size + 1);
    notify->address_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size + (name[0] == '/'));
    if (name[0] == '@')
        notify->address.sun_path[0] = '\0';
    return 1;
}

/* @return a positive number, or 0. */
static int64_t read_number(const char *variable)
{
    const char *text = getenv(variable);
    char *end;
    if (!text || *text < '0' || *text > '9')
        return 0;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    return errno == 0 && *end == '\0' ? value : 0;
}

/* $WATCHDOG_PID says whose it is: a child of the service inherits the environment. */
static int64_t read_watchdog(void)
{
    int64_t microseconds = read_number("WATCHDOG_USEC");
    if (getenv("WATCHDOG_PID") && read_number("WATCHDOG_PID") != getpid())
        return 0;
    return microseconds < WB_NEVER / 1000 ? microseconds * 1000 : 0;
}

void cli_notify_open(cli_notify *notify)
{
    const char *name = getenv("NOTIFY_SOCKET");
    *notify = (cli_notify){ .socket = -1 };
    if (!name || !read_address(notify, name))
        return;
    notify->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (notify->socket >= 0) /* READY is said once: a full socket is waited for, a dead one not for long */
        (void)setsockopt(notify->socket, SOL_SOCKET, SO_SNDTIMEO, &(struct timeval){ .tv_sec = 1 },
                         sizeof(struct timeval));
    notify->watchdog = read_watchdog();
}

void cli_notify_close(cli_notify *notify)
{
    if (notify->socket >= 0)
        (void)close(notify->socket);
    notify->socket = -1;
}

void cli_notify_send(const cli_notify *notify, const char *text)
{
    if (notify->socket >= 0)
        (void)sendto(notify->socket, text, strlen(text), MSG_NOSIGNAL,
                     (const struct sockaddr *)&notify->address, notify->address_size);
}
