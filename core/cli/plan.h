/* SPDX-License-Identifier: Apache-2.0
 *
 * What an endpoint does, as it was negotiated, for people and programs.
 */
#ifndef WB_CLI_PLAN_H
#define WB_CLI_PLAN_H

#include <jansson.h>

#include "core/endpoint/setup.h"

/** When and by whom outgoing operations leave. */
const char *cli_plan_who_sends(const wb_plan *plan);
/** Whether a message can have a time to be received; what nobody can do is refused when a handler asks for it. */
int cli_plan_can_expire(const wb_endpoint_setup *endpoint);
int64_t cli_plan_delayed_retries(const wb_endpoint_setup *endpoint);
json_t *cli_plan_json(const wb_endpoint_setup *endpoint);

#endif
