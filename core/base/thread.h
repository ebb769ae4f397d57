/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads of a library in somebody else's program: signals are the program's.
 */
#ifndef WB_BASE_THREAD_H
#define WB_BASE_THREAD_H

#include <signal.h>

/** Threads that are started until wb_thread_unblock() take no signals, but those of their own doing. */
void wb_thread_block(sigset_t *ret_before);
void wb_thread_unblock(const sigset_t *before);

/** What is the calling thread's own and a handler may have changed, and what it must be: the signals
 *  that are blocked. Its locale is put back to the process's. */
void wb_thread_put_back(const sigset_t *blocked);

#endif
