/* SPDX-License-Identifier: Apache-2.0
 *
 * How long a thread waits for the log. A log that nobody reads, a full pipe, holds up whoever writes a line, and who waits
 * behind him: that is right for workers, and wrong for the threads that have to end the process in time. Their lines are lost then,
 * and counted.
 */
#ifndef WB_BASE_PATIENCE_H
#define WB_BASE_PATIENCE_H

#include <pthread.h>
#include <stdint.h>

#include "core/base/clock.h"

/** For who has to go on: ns. */
#define WB_LOG_PATIENCE WB_SECOND

/** From now on this thread waits at most so long (ns) for its turn and for who reads, and after a line that was lost not at all
 *  until one is taken; WB_NEVER, as at first: as long as it takes. Also in a signal handler, that may have interrupted its own
 *  thread in a line. */
void wb_log_set_patience(int64_t duration);

/** Lock, as patiently as the thread is. @return 0: it was not to be had. */
int wb_log_lock(pthread_mutex_t *lock);
/** Wait until a descriptor takes WB_LOG_LINE_SIZE bytes; at once where the thread has all the time. @return 0: it does not. */
int wb_log_wait_for(int descriptor);
/** Whether this thread does not wait for ever. */
int wb_log_is_hurried(void);

#endif
