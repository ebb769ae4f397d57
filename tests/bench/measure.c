/* SPDX-License-Identifier: Apache-2.0
 *
 * Run a command and say what it cost: when it ends, a line
 * "<cpu microseconds> <peak resident KiB> <exit status>" goes to FILE.
 * SIGTERM is passed on. Both sides of a comparison run under this program, so that both
 * are measured from the outside in the same way.
 */
#include "config.h"

#include "tests/bench/common.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile pid_t child;

static void pass_on(int number)
{
    if (child > 0)
        kill(child, number);
}

static long long microseconds(const struct timeval *time)
{
    return (long long)time->tv_sec * 1000000 + time->tv_usec;
}

static int report(const char *path, int status, const struct rusage *usage)
{
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    FILE *file = fopen(path, "w");
    if (!file)
        bench_die("%s: %s", path, strerror(errno));
    fprintf(file, "%lld %ld %d\n",
            microseconds(&usage->ru_utime) + microseconds(&usage->ru_stime), usage->ru_maxrss,
            code);
    if (fclose(file))
        bench_die("%s: %s", path, strerror(errno));
    return code;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fputs("usage: measure FILE COMMAND [ARGUMENT...]\n", stderr);
        return 64;
    }
    sigset_t term, old;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, &old);
    sigaction(SIGTERM, &(struct sigaction){ .sa_handler = pass_on }, NULL);
    child = fork();
    if (child < 0)
        bench_die("fork: %s", strerror(errno));
    if (child == 0) {
        signal(SIGTERM, SIG_DFL);
        sigprocmask(SIG_SETMASK, &old, NULL);
        execvp(argv[2], argv + 2);
        bench_die("%s: %s", argv[2], strerror(errno));
    }
    sigprocmask(SIG_SETMASK, &old, NULL);
    int status = 0;
    struct rusage usage;
    while (wait4(child, &status, 0, &usage) < 0)
        if (errno != EINTR)
            bench_die("wait: %s", strerror(errno));
    return report(argv[1], status, &usage);
}
