/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/common/dial.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MILLISECONDS INT64_C(1000000)

/* @return 0, or an errno. */
static int await(int descriptor, int64_t patience)
{
    struct pollfd wanted = { .fd = descriptor, .events = POLLOUT };
    int code = 0;
    socklen_t size = sizeof code;
    int r = poll(&wanted, 1, (int)(patience / MILLISECONDS));
    if (r == 0)
        return ETIMEDOUT;
    return r < 0 || getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &size) != 0 ? errno : code;
}

static int connect_to(const struct addrinfo *at, int64_t patience)
{
    int descriptor = socket(at->ai_family, at->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, at->ai_protocol);
    if (descriptor < 0)
        return errno;
    int code = connect(descriptor, at->ai_addr, at->ai_addrlen) == 0 ? 0 : errno;
    if (code == EINPROGRESS)
        code = await(descriptor, patience);
    (void)close(descriptor);
    return code;
}

int wb_common_dial(const char *host, int port, int64_t patience, char *ret_reason, size_t size)
{
    const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
    struct addrinfo *found = NULL;
    char service[12], text[128];
    (void)snprintf(service, sizeof service, "%d", port);
    int code = getaddrinfo(host, service, &hints, &found);
    if (code != 0) {
        (void)snprintf(ret_reason, size, "%s", code == EAI_SYSTEM ? strerror_r(errno, text, sizeof text) : gai_strerror(code));
        return 1;
    }
    code = ETIMEDOUT;
    for (const struct addrinfo *at = found; at && code != 0; at = at->ai_next)
        code = connect_to(at, patience);
    freeaddrinfo(found);
    (void)snprintf(ret_reason, size, "%s", strerror_r(code, text, sizeof text));
    return code != 0;
}
