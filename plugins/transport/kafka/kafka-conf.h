/* SPDX-License-Identifier: Apache-2.0
 *
 * The configuration of librdkafka's clients: where they connect, what the user asks for,
 * and what the transport promises, in this order.
 */
#ifndef WB_KAFKA_CONF_H
#define WB_KAFKA_CONF_H

#include <librdkafka/rdkafka.h>

#include "plugins/transport/kafka/kafka-transport.h"

/* What a client is for. */
#define WB_KAFKA_ROLE_ADMIN 0
#define WB_KAFKA_ROLE_CONSUMER 1
#define WB_KAFKA_ROLE_PRODUCER 2

/** Room for what the error queue adds to a message. */
#define WB_KAFKA_ERROR_ROOM (1 << 20)

/** Make one. `name` is the session's: a consumer's group.instance.id, a producer's
 *  transactional.id; NULL: a producer without transactions.
 *  @return NULL with `error` filled: WB_FATAL, WB_CAUSE_CONFIG. */
rd_kafka_conf_t *wb_kafka_conf_make(const wb_transport *transport, int role, const char *name,
                                    wb_error *error);

/** A number among the properties, or `otherwise`. */
int64_t wb_kafka_conf_number(const rd_kafka_conf_t *conf, const char *property, int64_t otherwise);

/** Sessions that receive at a time, at least 1: they share the fetch buffer. */
size_t wb_kafka_conf_workers(const wb_transport *transport);
/** How many bytes of bodies each may have ahead. */
int64_t wb_kafka_conf_share_of_buffer(const wb_transport *transport);

#endif
