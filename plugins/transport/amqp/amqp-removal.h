/* SPDX-License-Identifier: Apache-2.0
 *
 * What an operator undoes: wb_transport_ops.depth, uninstall, unsubscribe, take_over.
 *
 * The exchanges of event types stay: others publish to them. So do the levels of delays, and what leads from there to
 * somewhere else (amqp-former.h). An exchange is removed with the queue of its name only, and only if it is as
 * install() declares it: any other of that name is somebody else's.
 */
#ifndef WB_AMQP_REMOVAL_H
#define WB_AMQP_REMOVAL_H

#include "plugins/transport/amqp/amqp-connection.h"

int wb_amqp_depth(wb_transport *transport, wb_transport_depth *depth, wb_error *error);
int wb_amqp_uninstall(wb_transport *transport, uint32_t flags, wb_error *error);
int wb_amqp_unsubscribe(wb_transport *transport, const char *const *types, size_t count, wb_error *error);
int wb_amqp_take_over(wb_transport *transport, const char *former, wb_error *error);

/** install() has made all that a removal that did not end may have taken. */
int wb_amqp_removal_end(wb_amqp_connection *connection, wb_error *error);
/** @return WB_FATAL with WB_CAUSE_MISSING when a removal has begun and did not end. */
int wb_amqp_removal_verify(wb_amqp_connection *connection, wb_error *error);

#endif
