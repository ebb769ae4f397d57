/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "conformance/watches.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

/* One of fdinfo's lines; those of an epoll descriptor alone read like this. A number may have been
 * another file's, which somebody still has open. */
static int read_watch(const char *line, int fd, unsigned long file, wb_watch *watch)
{
    int watched;
    unsigned long of_file;
    return sscanf(line, "tfd: %d events: %" SCNx32 " data: %" SCNx64 " pos:%*d ino:%lx", &watched, &watch->events,
                  &watch->data, &of_file) == 4 &&
           watched == fd && of_file == file;
}

/* The same epoll may have several descriptors: the first one finds it. */
static size_t lift_from(int epoll, int fd, wb_watch *watches, size_t max)
{
    char path[64], line[200];
    size_t count = 0;
    struct stat file;
    (void)snprintf(path, sizeof path, "/proc/self/fdinfo/%d", epoll);
    FILE *in = fopen(path, "re");
    if (!in)
        return 0;
    if (fstat(fd, &file) != 0)
        max = 0;
    while (count < max && fgets(line, sizeof line, in)) {
        wb_watch *watch = &watches[count];
        *watch = (wb_watch){ .epoll = epoll };
        count += read_watch(line, fd, file.st_ino, watch) && epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL) == 0;
    }
    (void)fclose(in);
    return count;
}

size_t wb_watches_lift(int fd, wb_watch *watches, size_t max)
{
    size_t count = 0;
    const struct dirent *entry;
    DIR *all = opendir("/proc/self/fdinfo");
    if (!all)
        return 0;
    while ((entry = readdir(all)) != NULL)
        if (entry->d_name[0] != '.')
            count += lift_from(atoi(entry->d_name), fd, watches + count, max - count);
    (void)closedir(all);
    return count;
}

void wb_watches_put(int fd, const wb_watch *watches, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct epoll_event event = { .events = watches[i].events, .data.u64 = watches[i].data };
        (void)epoll_ctl(watches[i].epoll, EPOLL_CTL_ADD, fd, &event);
    }
}
