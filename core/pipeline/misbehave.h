/* SPDX-License-Identifier: Apache-2.0
 *
 * Built-in bugs (WAYBILL_BUG), in test builds only: each breaks one arrow of the pipeline, and
 * the crash suite must catch each. The others sit where they break something (wb_bug): skip_dedup,
 * not_mandatory, forgotten_before_remembered for the crash suite; blame, unmovable, poison_operation, wrong_fault, lost_copy,
 * shared_retry, unknown_is_given_back, stored_behind, sweep_stops, uncounted_attempt, immediate_id,
 * suspect_across_endpoints, no_scout, one_handler, other_takes_all, delay_needs_outbox, retry_needs_outbox, poller_apart,
 * delay_by_database, delay_by_host, delay_insisted, refused_is_cleared, end_of_store, copy_expires, audit_expires,
 * span_lost, delay_not_made_good, noted_twice, sweep_waits,
 * delay_runs_again for the simulation.
 */
#ifndef WB_PIPELINE_MISBEHAVE_H
#define WB_PIPELINE_MISBEHAVE_H

#include "core/pipeline/worker.h"

#ifdef WB_TEST_HOOKS
/** ack_before_commit, dispatch_before_commit. */
void wb_misbehave_before_commit(wb_worker *w);
/** mark_before_confirm, remembered_before_dispatch. */
void wb_misbehave_after_commit(wb_worker *w);
/** asked_before_claimed, and what was answered then. */
int wb_misbehave_before_claim(wb_worker *w, wb_error *error);
int wb_misbehave_after_claim(wb_worker *w);
#else
static inline void wb_misbehave_before_commit(wb_worker *w)
{
    (void)w;
}
static inline void wb_misbehave_after_commit(wb_worker *w)
{
    (void)w;
}
static inline int wb_misbehave_before_claim(wb_worker *w, wb_error *error)
{
    (void)w, (void)error;
    return WB_OK;
}
static inline int wb_misbehave_after_claim(wb_worker *w)
{
    (void)w;
    return WB_OK;
}
#endif

#endif
