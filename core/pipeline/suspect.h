/* SPDX-License-Identifier: Apache-2.0
 *
 * Suspects: messages that may have ended a process before (core/recover/attempts.h says how they
 * are told from those that were merely beside one). A suspect runs as a batch of its own, one
 * at a time in the whole process, whatever endpoint it belongs to, and for its first second with no other
 * batch beside it: so when the process ends, the one that was running did it. With the outbox its
 * attempt is written down and committed first, and the record goes when the message is done and
 * acknowledged for good. So it is when one is moved to the error queue: a process that ended
 * in between would have the message come again, and be moved again.
 */
#ifndef WB_PIPELINE_SUSPECT_H
#define WB_PIPELINE_SUSPECT_H

#include "core/pipeline/worker.h"

int wb_item_is_suspect(const wb_pipeline *p, const wb_item *item);

/** Whether the broker drops it when it comes back once more: nothing else goes before it. */
int wb_suspect_is_last_delivery(const wb_pipeline *p, const wb_item *item);

/** Whether it has to wait for the suspect before it. One that nobody will handle any more does not:
 *  it leaves before that one ends the process, which would be a delivery more. */
int wb_suspect_needs_lock(const wb_pipeline *p, const wb_item *item);

/** Whether it has failed for good, and may have ended a process before. */
int wb_suspect_leaves(const wb_pipeline *p, const wb_item *item);

/** The process's one place for suspects. Never waits: who does not get it does something else
 *  for a moment, so that a suspect that hangs stops nobody. */
int wb_suspect_try_lock(void);
void wb_suspect_unlock(void);
/** A batch of others begins, and ends. It waits while a suspect has that place, and before the next one gets it;
 *  a second at most, for a handler may hang, or the error queue confirm nothing. */
void wb_suspect_enter(void);
void wb_suspect_exit(void);
/** How many have begun and not ended, in the process. */
unsigned wb_suspect_others(void);
/** Set aside for that moment. */
void wb_suspect_wait(wb_item *item);

/** Its attempt is over: its record goes with the next marks. */
void wb_suspect_done(wb_worker *w, const wb_item *item);
/** The message is done: its record goes when it is acknowledged for good (wb_worker.record). */
void wb_suspect_settled(wb_worker *w, const wb_item *item);

/** The session was lost while it was handled: its record stays, with no attempt more. One that loses
 *  its session time and again is given up before the broker drops it, if that has a limit. */
void wb_suspect_lost_session(wb_worker *w, const wb_item *item);

/** NULL, or why an item whose id was free is not handled any more: it has used up its
 *  attempts. The text is written to `reason`. */
const char *wb_suspect_why_given_up(const wb_pipeline *p, const wb_item *item, char *reason, size_t size);

#endif
