/* SPDX-License-Identifier: Apache-2.0
 *
 * A session: what receives and what sends, as its purpose asks for. Where the mode has transactions
 * both have clients of their own; else all sessions of the process share one for each.
 */
#ifndef WB_KAFKA_SESSION_H
#define WB_KAFKA_SESSION_H

#include "plugins/transport/kafka/kafka-consumer.h"
#include "plugins/transport/kafka/kafka-transaction.h"

struct wb_transport_session {
    wb_transport *transport;
    int slot; /* -1: none */
    char name[WB_KAFKA_NAME_SIZE];
    wb_kafka_receiver receiver;
    wb_kafka_producer producer;
};

/* The functions of wb_transport_ops. */
int wb_kafka_session_open(wb_transport *transport, uint32_t purpose, uint32_t prefetch,
                          wb_transport_session **ret_session, wb_error *error);
void wb_kafka_session_close(wb_transport_session *session);
int wb_kafka_session_set_prefetch(wb_transport_session *session, uint32_t prefetch,
                                  wb_error *error);
int wb_kafka_session_receive(wb_transport_session *session, int64_t deadline,
                             const wb_incoming **ret_messages, size_t max, size_t *ret_count,
                             wb_error *error);
int wb_kafka_session_acknowledge(wb_transport_session *session, const wb_incoming *const *messages,
                                 size_t count, wb_error *error);
int wb_kafka_session_give_back(wb_transport_session *session, const wb_incoming *const *messages,
                               size_t count, wb_error *error);
int wb_kafka_session_send(wb_transport_session *session, wb_operation *const *operations,
                          size_t count, int64_t deadline, wb_error *error);
int wb_kafka_session_begin(wb_transport_session *session, wb_error *error);
int wb_kafka_session_commit(wb_transport_session *session, wb_error *error);
int wb_kafka_session_rollback(wb_transport_session *session, wb_error *error);
void wb_kafka_session_interrupt(wb_transport_session *session);
int wb_kafka_session_stop_receiving(wb_transport_session *session, wb_error *error);
/* kafka-position.c */
int wb_kafka_session_position_end(wb_transport_session *session, const char *partition, size_t partition_size,
                                  uint64_t *ret_end, wb_error *error);

#endif
