/* SPDX-License-Identifier: Apache-2.0
 *
 * Watches: who waits for a descriptor of this process with epoll. The kernel tells in
 * /proc/self/fdinfo, whoever made the epoll descriptor: a plugin's runtime, say.
 */
#ifndef WB_CONFORMANCE_WATCHES_H
#define WB_CONFORMANCE_WATCHES_H

#include <stddef.h>
#include <stdint.h>

#define WB_WATCHES_MAX 16

typedef struct wb_watch {
    int epoll;       /* the epoll descriptor */
    uint32_t events; /* what is waited for, and how: EPOLLx */
    uint64_t data;   /* what it is known by */
} wb_watch;

/** Nobody waits for `fd` any more. Writes at most `max`. @return how many did. */
size_t wb_watches_lift(int fd, wb_watch *watches, size_t max);

/** They wait for what is now behind `fd`, as they did before. What is ready is an edge. */
void wb_watches_put(int fd, const wb_watch *watches, size_t count);

#endif
