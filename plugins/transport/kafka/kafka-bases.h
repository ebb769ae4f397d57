/* SPDX-License-Identifier: Apache-2.0
 *
 * Events that are derived from others: one topic a type, and a record in each.
 */
#ifndef WB_KAFKA_BASES_H
#define WB_KAFKA_BASES_H

#include "plugins/transport/kafka/kafka-send.h"

/** wb_transport_ops.send: as wb_kafka_producer_send(), and what is published goes to the topics of
 *  all types its header NServiceBus.EnclosedMessageTypes names. It is sent when it is in all;
 *  a base without a topic, which cannot be made, is passed over. One that some of them refused is in
 *  the others: sent again, by whichever session of the process, it goes to those only that do not have
 *  it yet, as long as it is among the newest WB_KAFKA_DONE records of such events and has an id. */
int wb_kafka_bases_send(wb_kafka_producer *producer, wb_operation *const *operations, size_t count,
                        int64_t deadline, wb_error *error);

#endif
