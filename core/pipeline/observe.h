/* SPDX-License-Identifier: Apache-2.0
 *
 * What an endpoint's observer (sys/observer.h) is told, and when: where the same is counted, tally.h. Without one each
 * of these costs a comparison.
 */
#ifndef WB_PIPELINE_OBSERVE_H
#define WB_PIPELINE_OBSERVE_H

#include "core/pipeline/worker.h"

/** Handlers are about to be called for these; where they stand in traces is known from now on. */
void wb_observe_started(const wb_pipeline *p, wb_item *const *items, size_t count);
/** The wall clock, no earlier than `since`, if somebody wants to know; else 0. */
int64_t wb_observe_now(const wb_pipeline *p, int64_t since);
/** These took effect; of those that a handler discarded nothing did, and they are passed over. */
void wb_observe_handled(const wb_pipeline *p, wb_item *const *items, size_t count);
/** An attempt failed. */
void wb_observe_failed(const wb_pipeline *p, wb_item *item, const char *reason);
/** Of a window that was handed to the transport then, by the wall clock, what is confirmed was sent. */
void wb_observe_sent(const wb_pipeline *p, const wb_window *window, int64_t begin);

#endif
