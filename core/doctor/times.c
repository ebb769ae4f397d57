/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/doctor/times.h"

#include <stdio.h>

#include "core/base/clock.h"
#include "core/config/units.h"

int64_t wb_times_of_retries(const wb_endpoint_setup *setup)
{
    const wb_endpoint_config *config = setup->config;
    int64_t all = 0;
    for (int64_t i = 1; i <= setup->plan.delayed_retries; i++) {
        int64_t delay = 0, jitter = 0; /* which makes a delay longer or shorter by so much */
        if (__builtin_mul_overflow(config->recoverability.delay_increment, i, &delay) ||
            __builtin_mul_overflow(delay / 100, config->recoverability.delay_jitter, &jitter) ||
            __builtin_add_overflow(all, delay, &all) || __builtin_add_overflow(all, jitter, &all))
            return INT64_MAX;
    }
    return all;
}

static void find_short(const wb_endpoint_setup *setup, int64_t needed, const char *why, wb_findings *findings)
{
    const wb_finding_place at = { setup->config->name, "configuration", NULL };
    char kept[WB_UNIT_TEXT_SIZE], wanted[WB_UNIT_TEXT_SIZE], remedy[128];
    if (needed < INT64_MAX - WB_SECOND) /* as people write it */
        needed += (WB_SECOND - needed % WB_SECOND) % WB_SECOND;
    (void)wb_duration_format(needed, wanted);
    (void)snprintf(remedy, sizeof remedy, "outbox = { retention = \"%s\"; } or more", wanted);
    wb_findings_add(findings, &at, WB_FINDING_DANGER, "retention-too-short", remedy,
                    "ids are forgotten after %s (outbox.retention), and a copy of a message that was handled can still "
                    "come after %s, %s: it would be handled twice",
                    wb_duration_format(setup->config->outbox.retention, kept), wanted, why);
}

void wb_times_compare(const wb_endpoint_setup *setup, int64_t outage, wb_findings *findings)
{
    const int64_t retention = setup->config->outbox.retention, retries = wb_times_of_retries(setup);
    int64_t needed = 0;
    /* those of a send-only endpoint are its processor's */
    if (!setup->plan.outbox || setup->plan.send_only || !setup->plan.by_id)
        return;
    if (__builtin_add_overflow(retries, outage, &needed))
        needed = INT64_MAX;
    if (retention <= retries)
        find_short(setup, retries, "behind all delayed retries", findings);
    else if (retention < needed)
        find_short(setup, needed, "behind an outage and all delayed retries", findings);
}
