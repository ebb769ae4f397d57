/* SPDX-License-Identifier: Apache-2.0
 *
 * exit(), _exit(), _Exit() and quick_exit() of the program: ours stand in front of the C library's, for handler
 * modules too, since the program exports them. A handler or a hook that calls one would end all endpoints with a number of its
 * choice, 0 perhaps, which a service manager takes for an orderly stop: it is named, and the process ends with 70. So does it
 * when a thread of a module's own or a client library calls one. In a child of fork() they do what they do everywhere.
 *
 * What the C library calls by itself does not come by here: errx() there is met by a function that
 * core/pipeline/call.c registers, daemon() and system calls are not met.
 */
#include "config.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sysexits.h>
#include <unistd.h>

#include "core/cli/exits.h"
#include "core/pipeline/call.h"

#define EXPORTED __attribute__((visibility("default")))

void cli_exits_watch(void)
{
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL); /* a hook's cancellation would end this thread alone */
    wb_call_ends_process();
}

/* Safe where little is: in a signal handler, in a child of vfork(). */
static _Noreturn void end_now(int code)
{
    for (;;)
        (void)syscall(SYS_exit_group, code);
}

static void look(const char *function, int code)
{
    char how[32];
    (void)snprintf(how, sizeof how, "%s(%d)", function, code);
    if (wb_call_leaves(how) || wb_call_is_left_by_others(how))
        end_now(EX_SOFTWARE);
}

/* The C library's function of this name. */
static _Noreturn void pass_on(const char *function, int code)
{
    void (*next)(int code) = NULL;
    void *address = dlsym(RTLD_NEXT, function);
    memcpy(&next, &address, sizeof next);
    if (next)
        next(code);
    end_now(code);
}

EXPORTED void exit(int code)
{
    look("exit", code);
    pass_on("exit", code);
}

EXPORTED void quick_exit(int code)
{
    look("quick_exit", code);
    pass_on("quick_exit", code);
}

EXPORTED void _exit(int code)
{
    look("_exit", code);
    end_now(code);
}

EXPORTED void _Exit(int code)
{
    look("_Exit", code);
    end_now(code);
}
