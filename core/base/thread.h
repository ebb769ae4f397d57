/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads of a library in somebody else's program: signals are the program's.
 */
#ifndef WB_BASE_THREAD_H
#define WB_BASE_THREAD_H

#include <locale.h>
#include <signal.h>

/** Threads that are started until wb_thread_unblock() take no signals, but those of their own doing. */
void wb_thread_block(sigset_t *ret_before);
void wb_thread_unblock(const sigset_t *before);

/** What is a thread's own, and a module that is called on it may change. */
typedef struct wb_thread_own {
    sigset_t blocked; /* signals */
    locale_t locale;
} wb_thread_own;

/** The calling thread's, as it is. */
void wb_thread_remember(wb_thread_own *ret_own);
/** As it was. */
void wb_thread_put_back(const wb_thread_own *own);

#endif
