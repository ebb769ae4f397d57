/* SPDX-License-Identifier: Apache-2.0
 *
 * What an operator undoes: wb_transport_ops.depth, uninstall, take_over. Subscriptions are none of it: a group that
 * does not read a topic any more has nothing at the brokers but the offsets it once committed.
 */
#ifndef WB_KAFKA_REMOVAL_H
#define WB_KAFKA_REMOVAL_H

#include "plugins/transport/kafka/kafka-transport.h"

int wb_kafka_depth(wb_transport *transport, wb_transport_depth *depth, wb_error *error);
int wb_kafka_uninstall(wb_transport *transport, uint32_t flags, wb_error *error);
int wb_kafka_take_over(wb_transport *transport, const char *former, wb_error *error);

#endif
