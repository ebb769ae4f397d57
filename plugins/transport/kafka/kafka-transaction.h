/* SPDX-License-Identifier: Apache-2.0
 *
 * Kafka transactions, for sends_atomic_with_receive: the messages sent and the offsets of
 * those received become visible together or not at all.
 */
#ifndef WB_KAFKA_TRANSACTION_H
#define WB_KAFKA_TRANSACTION_H

#include "plugins/transport/kafka/kafka-consumer.h"
#include "plugins/transport/kafka/kafka-send.h"

/** Take over the transactional id: ends what a predecessor left open, and fences it.
 *  @return WB_OK, or a result with `error` filled. */
int wb_kafka_transaction_init(wb_kafka_producer *producer, wb_error *error);

/** wb_transport_ops.begin, commit, rollback. */
int wb_kafka_transaction_begin(wb_kafka_producer *producer, wb_kafka_receiver *receiver,
                               wb_error *error);
int wb_kafka_transaction_commit(wb_kafka_producer *producer, wb_kafka_receiver *receiver,
                                wb_error *error);
int wb_kafka_transaction_rollback(wb_kafka_producer *producer, wb_kafka_receiver *receiver,
                                  wb_error *error);

/** Before closing: what is open is aborted, if that goes quickly. Its timeout would do it,
 *  and keep everybody who reads the topics waiting until then. */
void wb_kafka_transaction_abandon(wb_kafka_producer *producer);

#endif
