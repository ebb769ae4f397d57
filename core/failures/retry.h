/* SPDX-License-Identifier: Apache-2.0
 *
 * A failed message goes back to the queue it failed in: in one transaction it is marked as being
 * retried, and what sends it is an operation of the endpoint's outbox. Whoever dies before the commit
 * has done nothing; what is committed is sent, by this process or by the sweeper of whoever
 * runs the endpoint. Of two who retry one message, one finds that it waits no longer.
 */
#ifndef WB_FAILURES_RETRY_H
#define WB_FAILURES_RETRY_H

#include <waybill/sys/failed.h>

#include "core/failures/edit.h"
#include "core/session/sessions.h"

/** Of messages in one transaction. */
#define WB_FAILED_RETRY_LOT 100

/** One that is to be retried. */
typedef struct wb_failed_retry {
    const char *key;
    size_t key_size;
    int was_waiting; /* filled: 1 if it is sent back by this call */
    const wb_failed_edit *edit; /* NULL: it goes back as it came */
} wb_failed_retry;

/** Retry those of them that wait, in one transaction; at most WB_FAILED_RETRY_LOT. `queue`, which lives longer, gets the
 *  answers of those that were handled.
 *  @return WB_OK; or the class of what failed, and none of them is retried (but for WB_IN_DOUBT: nobody
 *  knows, and to try again is safe). */
int wb_failed_retry_all(wb_sessions *sessions, const char *queue, wb_failed_retry *retries, size_t count, wb_error *error);

#endif
