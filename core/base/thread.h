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

#endif
