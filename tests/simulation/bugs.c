/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/simulation/bugs.h"

#include <stddef.h>
#include <waybill/sys/plugin.h>

const sim_bug sim_bugs[] = {
    { "skip_dedup", NULL, WB_MODE_RECEIVE_ONLY },
    { "ack_before_commit", NULL, WB_MODE_RECEIVE_ONLY },
    { "mark_before_confirm", NULL, WB_MODE_RECEIVE_ONLY },
    { "dispatch_before_commit", NULL, WB_MODE_RECEIVE_ONLY },
    { "not_mandatory", "unroutable", 0 },
    { "blame", "blame", 0 },
    { "unmovable", "unmovable_outbox", 0 },
    { "poison_operation", "poison_send", 0 },
    { "wrong_fault", "disk_full", 0 },
    { "lost_copy", "copies", 0 },
    { "sweep_stops", "sweep_first_fails", 0 },
    { "uncounted_attempt", "commit_aborts", 0 },
    { "immediate_id", "immediate_ids", 0 },
    { "suspect_across_endpoints", "suspect_across_endpoints", 0 },
    { "no_scout", "limit_killers_plain", 0 },
    { "short_scout", "limit_killers_late_plain", 0 },
    { "last_waits", "limit_last", 0 },
    { "handle_the_last", "limit_killers_late", 0 },
    { "parked_twice", "two_sweepers", 0 },
    { "believe_fatal", "forbids", 0 },
    { "twice_in_none", "ends_none", 0 },
    { "one_handler", NULL, WB_MODE_RECEIVE_ONLY },
    { "no_audit", "audited", 0 },
    { "audit_failed", "audited_atomic", 0 },
    { "limited_for_ever", "rate_limit", 0 },
    { "remove_before_dispatch", "delayed_broker_down", 0 },
    { "remove_before_dispatch", NULL, WB_MODE_RECEIVE_ONLY },
    { "no_lease", "delayed_two_pollers", 0 },
    { "due_by_host", "delayed_host_ahead", 0 },
    { "due_by_host", "delayed_host_behind", 0 },
    { "poller_not_woken", "delayed_punctual", 0 },
    { "poller_gives_up", "delayed_broker_down", 0 },
    { "poller_gives_up", NULL, WB_MODE_RECEIVE_ONLY },
    { "store_believed", "delayed_behind", 0 },
    { "store_believed", NULL, WB_MODE_RECEIVE_ONLY },
    { "store_believed", "delayed_retries_database_down", 0 },
    { "key_without_retries", "delayed_retries_slow", 0 },
    { "unknown_is_given_back", "delayed_cancels", 0 },
    { "stored_behind", "delayed_cancels", 0 },
    { "shared_retry", "delayed_retries_copies", 0 },
    { NULL, NULL, 0 },
};
