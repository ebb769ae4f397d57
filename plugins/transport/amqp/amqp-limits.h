/* SPDX-License-Identifier: Apache-2.0
 *
 * wb_transport_ops.limits: how often the broker delivers a message of the endpoint's queue
 * before it drops it. The management interface knows, when the option names it; otherwise
 * the broker's refusal of another limit tells the queue's argument, and its version what
 * holds without one. Policies are then not seen.
 */
#ifndef WB_AMQP_LIMITS_H
#define WB_AMQP_LIMITS_H

#include "plugins/transport/amqp/amqp-transport.h"

int wb_amqp_limits_of_queue(wb_transport *transport, wb_transport_limits *limits, wb_error *error);

#endif
