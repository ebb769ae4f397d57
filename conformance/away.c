/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "conformance/away.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

/* That of <sys/socket.h>, where its second parameter is a union of all kinds of addresses. */
struct sockaddr;
EXPORTED int connect(int fd, const struct sockaddr *address, socklen_t size);

static atomic_int is_out_of_reach;

void wb_away(int is_away)
{
    atomic_store(&is_out_of_reach, is_away);
}

int connect(int fd, const struct sockaddr *address, socklen_t size)
{
    int (*next)(int, const struct sockaddr *, socklen_t) = NULL;
    void *function = dlsym(RTLD_NEXT, "connect");
    memcpy(&next, &function, sizeof next);
    if (!next || atomic_load(&is_out_of_reach)) {
        errno = ECONNREFUSED;
        return -1;
    }
    return next(fd, address, size);
}
