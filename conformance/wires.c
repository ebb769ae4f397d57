/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "conformance/wires.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

void wb_wires_remember(wb_wires *before)
{
    for (int fd = 0; fd < WB_WIRES_MAX; fd++)
        before->there[fd] = fcntl(fd, F_GETFD) != -1;
}

/* A pair of sockets within the process is no connection to a server: it has no name. */
static int is_wire(int fd)
{
    struct sockaddr_storage peer;
    socklen_t size = sizeof peer, type_size = sizeof(int);
    int type = 0;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_size) == 0 && type == SOCK_STREAM &&
           getpeername(fd, (struct sockaddr *)&peer, &size) == 0 &&
           (peer.ss_family != AF_UNIX || size > sizeof peer.ss_family);
}

size_t wb_wires_find(const wb_wires *before, int *fds, size_t max)
{
    size_t count = 0;
    for (int fd = 0; fd < WB_WIRES_MAX; fd++)
        if (!before->there[fd] && is_wire(fd)) {
            if (count < max)
                fds[count] = fd;
            count++;
        }
    return count;
}

int wb_wires_settle(wb_wires *before, const wb_wires *first)
{
    if (wb_wires_find(before, NULL, 0) == 0)
        *before = *first;
    return wb_wires_find(before, NULL, 0) > 0;
}

size_t wb_wires_cut(const wb_wires *before)
{
    int fds[WB_WIRES_MAX];
    size_t count = wb_wires_find(before, fds, WB_WIRES_MAX);
    for (size_t i = 0; i < count; i++)
        (void)shutdown(fds[i], SHUT_RDWR);
    return count;
}
