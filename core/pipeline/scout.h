/* SPDX-License-Identifier: Apache-2.0
 *
 * The scout: after an unclean end one worker looks first at what comes back.
 *
 * A message whose handler ends the process comes back, and so does all that was in the hands of the
 * other workers; each death counts a delivery for all of them. Where the broker drops what it delivered
 * too often, two such messages in the hands of two workers would use up each other's deliveries. So of
 * an endpoint that starts, worker 0 receives alone, one message at a time, until it gets one that was
 * never delivered before, half a second after it began and after what came back last: what comes
 * back is ahead of those, unless the broker noticed late that a process is no more. (One that says
 * WB_LIMITS_RETURNS_FIRST never does, and there is no half second.) Then, or after
 * some seconds (what comes back may be slow, or much), the others begin. What comes back behind a slow
 * handler of the scout's, or still later, finds them at work: it may go to the error queue for others'
 * deaths, but is not lost (core/recover/attempts.h).
 */
#ifndef WB_PIPELINE_SCOUT_H
#define WB_PIPELINE_SCOUT_H

#include "core/pipeline/worker.h"

/** Whether the worker may receive; one that may not asks again. With the outbox, where the broker
 *  sets no limit, every worker may; and where keys keep their order. */
int wb_scout_lets_receive(const wb_worker *w);
/** Whether the worker may take more at a time than it does: the scout may not. */
int wb_scout_lets_grow(const wb_worker *w);
/** Tell of what the worker received; before it receives for the first time of nothing. */
void wb_scout_look(wb_worker *w, const wb_incoming *const *messages, size_t count);
/** The worker gives up: nobody waits for it. */
void wb_scout_end(wb_worker *w);

#endif
