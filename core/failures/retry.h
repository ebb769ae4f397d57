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

/** Of messages in one transaction; and of bytes of their bodies and headers, unless the first one alone has more: they
 *  become one row of the outbox, which has to fit into what a server takes at once (MariaDB: 16 MiB as it comes). */
#define WB_FAILED_RETRY_LOT 100
#define WB_FAILED_RETRY_BYTES ((size_t)2 * 1024 * 1024)

/** One that is to be retried. */
typedef struct wb_failed_retry {
    const char *key;
    size_t key_size;
    int was_waiting; /* filled: 1 if it is sent back by this call */
    int unread;      /* filled: why it cannot be read (record.h), and waits as before; 0: it can */
    const wb_failed_edit *edit; /* NULL: it goes back as it came */
} wb_failed_retry;

/** Retry those that wait and can be read of the first of them, as many as make a lot, in one transaction; their order may change. `queue`, which lives
 *  longer, gets the answers of those that were handled. *ret_taken is how many were looked at, one at least: the rest is for the
 *  next call.
 *  @return WB_OK; or the class of what failed, and none of them is retried (but for WB_IN_DOUBT: nobody
 *  knows, and to try again is safe). */
int wb_failed_retry_some(wb_sessions *sessions, const char *queue, wb_failed_retry *retries, size_t count, size_t *ret_taken,
                         wb_error *error);

#endif
