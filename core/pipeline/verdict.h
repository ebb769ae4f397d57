/* SPDX-License-Identifier: Apache-2.0
 *
 * What becomes of a message whose attempt failed: tried again, or the error queue. The only
 * place that counts attempts, and the only one that gives a verdict.
 */
#ifndef WB_PIPELINE_VERDICT_H
#define WB_PIPELINE_VERDICT_H

#include "core/pipeline/worker.h"

/** How an attempt failed. */
typedef struct wb_attempt {
    const char *kind; /* WB_FAILURE_x */
    const char *reason;
    int final;   /* another attempt cannot succeed, or not now */
    int is_sure; /* it ran alone or first in its transaction: no neighbour had a part in it. Only
                    then is there a verdict */
    int counts;  /* it is sure, or the handler said so in a transaction that was as it must be */
    const wb_wish *wish; /* of the handler, when the attempt is the last; or NULL */
} wb_attempt;

void wb_verdict_attempt_failed(wb_worker *w, wb_item *item, const wb_attempt *attempt);

/** A message, alone, met the server's trouble. If others did not since it last did, it is
 *  counted; often enough, and the message fails. It is set aside for a growing while. */
void wb_verdict_met_trouble(wb_worker *w, wb_item *item, const wb_error *error);

/** What it sends was refused, for good or for want of a privilege. The first is an attempt. The
 *  second is somebody else's to mend: it is waited for as a server's trouble is, and counts only
 *  if others, whose destinations are open, are done in between. What was committed stays so. */
void wb_verdict_was_refused(wb_worker *w, wb_item *item, const wb_operation *refused);

/** The connection to the database broke while this message was handled, alone, or its session was
 *  given up (distrust.h). A statement that ends its server process does that each time; a server
 *  that is ill does it to everybody. So it is counted when the database is seen to be well
 *  (witness.c). */
void wb_verdict_broke_connection(wb_worker *w, wb_item *item, const wb_error *error);
/** It is: that was the message's doing. */
void wb_verdict_count_loss(wb_item *item);
/** It cannot tell now: the message is asked about again in a while. */
void wb_verdict_wait(const wb_worker *w, wb_item *item);
/** Whether others committed since this message last met the server's trouble, or a broken
 *  connection. */
int wb_verdict_is_proved(const wb_worker *w, const wb_item *item);

/** A message fails for good, and with it the copies of its id in hand: they would all take
 *  effect or none. But for those that have had more or fewer delayed retries: each has the tries
 *  that it has left. */
void wb_verdict_condemn(wb_worker *w, wb_item *item, const char *kind, const char *reason);

#endif
