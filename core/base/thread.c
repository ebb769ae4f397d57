/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/base/thread.h"

#include <pthread.h>

/* A fault that is blocked when it is met would end the process without the program's handler. */
void wb_thread_block(sigset_t *ret_before)
{
    static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT };
    sigset_t all;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(&all, faults[i]);
    (void)pthread_sigmask(SIG_SETMASK, &all, ret_before);
}

void wb_thread_unblock(const sigset_t *before)
{
    (void)pthread_sigmask(SIG_SETMASK, before, NULL);
}

void wb_thread_remember(wb_thread_own *ret_own)
{
    (void)pthread_sigmask(SIG_SETMASK, NULL, &ret_own->blocked);
    ret_own->locale = uselocale((locale_t)0);
}

void wb_thread_put_back(const wb_thread_own *own)
{
    (void)pthread_sigmask(SIG_SETMASK, &own->blocked, NULL);
    (void)uselocale(own->locale);
}
