/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/negotiate/negotiate.h"

#include <string.h>

#include "core/negotiate/rules.h"

static void add_conflict(const wb_negotiation_input *input, int kind, size_t index,
                         wb_negotiation *negotiation)
{
    if (negotiation->conflict_count == WB_CONFLICTS_MAX)
        return;
    wb_conflict *conflict = &negotiation->conflicts[negotiation->conflict_count++];
    conflict->kind = kind;
    conflict->modes = wb_rule_modes(input, kind);
    wb_rule_describe(input, index, conflict);
}

static void collect_conflicts(const wb_negotiation_input *input, wb_negotiation *negotiation)
{
    for (int kind = 0; kind < WB_CONFLICT_KINDS; kind++) {
        size_t times = kind == WB_CONFLICT_SEND_ONLY_SETTING ? input->input_setting_count : 1;
        if (!wb_rule_is_broken(input, kind))
            continue;
        for (size_t i = 0; i < times; i++)
            add_conflict(input, kind, i, negotiation);
    }
}

/* The default is silent where a request would be a conflict. */
static int64_t immediate_retries(const wb_negotiation_input *input)
{
    return input->mode == WB_MODE_NONE ? 0 : input->immediate_retries;
}

static int64_t delayed_retries(const wb_negotiation_input *input, const wb_plan *plan)
{
    const int are_unsafe = plan->by_position && !plan->by_id;
    return input->mode == WB_MODE_NONE || plan->delay_by == WB_DELAYS_BY_NOBODY || are_unsafe ? 0
                                                                                               : input->delayed_retries;
}

static wb_plan make_plan(const wb_negotiation_input *input)
{
    wb_plan plan = { .mode = WB_MODE_NONE, .delay_by = wb_rule_delay_by(input), .send_only = 1 };
    plan.sessions = input->outbox && (input->persistence.capabilities & WB_CAP_CLAIM_WITH_COMMIT) != 0;
    if (input->send_only) {
        plan.outbox = input->outbox;
        plan.mode = input->outbox ? WB_MODE_RECEIVE_ONLY : WB_MODE_NONE;
        return plan;
    }
    plan.send_only = 0;
    plan.mode = input->mode;
    plan.outbox = input->outbox;
    plan.by_position = input->outbox && input->by_at.is_set && input->by_position;
    plan.by_id = input->outbox && !(plan.by_position && !input->by_id);
    plan.immediate_retries = immediate_retries(input);
    plan.delayed_retries = delayed_retries(input, &plan);
    plan.joined = input->mode == WB_MODE_TRANSACTION_SCOPE;
    return plan;
}

int wb_negotiate(const wb_negotiation_input *input, wb_negotiation *ret_negotiation)
{
    memset(ret_negotiation, 0, sizeof *ret_negotiation);
    collect_conflicts(input, ret_negotiation);
    ret_negotiation->plan = make_plan(input);
    return ret_negotiation->conflict_count ? WB_FATAL : WB_OK;
}
