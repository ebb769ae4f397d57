/* SPDX-License-Identifier: Apache-2.0
 *
 * The list `types` of an endpoint's recoverability: what is different for messages of one type.
 */
#ifndef WB_CONFIG_CONFIG_POLICIES_H
#define WB_CONFIG_CONFIG_POLICIES_H

#include "core/config/configuration.h"

/** Read it into `endpoint`; `node` may be NULL. `scope` says where problems go, each with its line. */
void wb_config_read_policies(const wb_option_scope *scope, const wb_conf_node *node,
                             wb_endpoint_config *endpoint);

#endif
