/* SPDX-License-Identifier: Apache-2.0
 *
 * The list `types` of an endpoint: what its types are derived from.
 */
#ifndef WB_CONFIG_CONFIG_TYPES_H
#define WB_CONFIG_CONFIG_TYPES_H

#include "core/base/arena.h"
#include "core/config/conf_node.h"
#include "core/base/type_bases.h"

/** Read it; `node` may be NULL. All problems are added, each with its line; `subject` stands before
 *  them. What is right lives as long as the arena. */
void wb_config_read_types(wb_arena *arena, wb_problems *problems, const char *subject,
                          const wb_conf_node *node, const wb_type_bases **ret_types, size_t *ret_count);

#endif
