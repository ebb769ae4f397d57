/* SPDX-License-Identifier: Apache-2.0
 *
 * In front of the C library: who asks for the address of slow.example waits for eight seconds, and is told that there is none.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <string.h>
#include <unistd.h>

typedef int (*asked)(const char *, const char *, const struct addrinfo *, struct addrinfo **);

__attribute__((visibility("default"))) int getaddrinfo(const char *restrict name, const char *restrict service,
                                                        const struct addrinfo *restrict hints,
                                                        struct addrinfo **restrict result)
{
    if (name && strcmp(name, "slow.example") == 0) {
        sleep(8);
        return EAI_NONAME;
    }
    asked next;
    *(void **)&next = dlsym(RTLD_NEXT, "getaddrinfo");
    return next(name, service, hints, result);
}
