/* SPDX-License-Identifier: Apache-2.0
 *
 * In front of the C library: the wall clock of a process is off by as many seconds as the file
 * WB_CLOCK says (a number of eight bytes), and jumps when that is written.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define IN_FRONT __attribute__((visibility("default")))

static time_t offset(void)
{
    const char *path = getenv("WB_CLOCK");
    const int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    int64_t seconds = 0;
    if (file < 0)
        return 0;
    if (read(file, &seconds, sizeof seconds) != sizeof seconds)
        seconds = 0;
    close(file);
    return (time_t)seconds;
}

IN_FRONT int clock_gettime(clockid_t id, struct timespec *now)
{
    const int result = (int)syscall(SYS_clock_gettime, id, now);
    if (result == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        now->tv_sec += offset();
    return result;
}

IN_FRONT int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec at;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &at) != 0)
        return -1;
    *now = (struct timeval){ .tv_sec = at.tv_sec, .tv_usec = at.tv_nsec / 1000 };
    return 0;
}

IN_FRONT time_t time(time_t *ret)
{
    struct timespec at;
    if (clock_gettime(CLOCK_REALTIME, &at) != 0)
        return (time_t)-1;
    if (ret)
        *ret = at.tv_sec;
    return at.tv_sec;
}
