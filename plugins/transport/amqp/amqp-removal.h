/* SPDX-License-Identifier: Apache-2.0
 *
 * What an operator undoes: wb_transport_ops.depth, uninstall, unsubscribe, take_over.
 *
 * The exchanges of event types stay: others publish to them. So do the levels of delays.
 */
#ifndef WB_AMQP_REMOVAL_H
#define WB_AMQP_REMOVAL_H

#include "plugins/transport/amqp/amqp-transport.h"

int wb_amqp_depth(wb_transport *transport, wb_transport_depth *depth, wb_error *error);
int wb_amqp_uninstall(wb_transport *transport, uint32_t flags, wb_error *error);
int wb_amqp_unsubscribe(wb_transport *transport, const char *const *types, size_t count, wb_error *error);
int wb_amqp_take_over(wb_transport *transport, const char *former, wb_error *error);

#endif
