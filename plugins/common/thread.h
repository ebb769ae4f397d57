/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads of plugins and of their libraries: signals are the host's business, so that they inherit
 * a mask of all.
 */
#ifndef WB_COMMON_THREAD_H
#define WB_COMMON_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

/** Start one with a stack of so many bytes, 0: as many as others have. @return 0, or an errno. */
int wb_common_thread_start(pthread_t *ret_thread, size_t stack_size, void *(*main)(void *),
                           void *argument);

/** For the threads that a library starts meanwhile. */
void wb_common_signals_block(sigset_t *ret_before);
void wb_common_signals_restore(const sigset_t *before);

#endif
