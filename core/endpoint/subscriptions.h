/* SPDX-License-Identifier: Apache-2.0
 *
 * What an endpoint subscribes to: the types of its handlers, but those that the configuration
 * calls commands. A handler of all other types ("*") has none.
 */
#ifndef WB_ENDPOINT_SUBSCRIPTIONS_H
#define WB_ENDPOINT_SUBSCRIPTIONS_H

#include "core/plugin/handlers.h"

/** List them, in the order of the handlers, as long as the arena lives. Commands that no handler
 *  is for are added to `problems`, unless that is NULL: not all handlers are known. */
void wb_subscriptions_make(wb_arena *arena, const wb_endpoint_config *config,
                           const wb_handler_set *handlers, wb_problems *problems,
                           const char *const **ret_types, size_t *ret_count);

#endif
